/** Finds the error in an answer of a Responses upstream: in a body, an error event or a failed response. */
import { asRecord, isRecord } from '../../../wire/json-record.ts';
import type { UpstreamError } from '../../upstream-failure.ts';

/**
 * `{error: {message, type, param, code}}`, the same object without its wrapper in events of type `error`, or
 * `{message}` and `{detail}` of gateways in front of the API.
 */
export function responsesError(body: unknown): UpstreamError | undefined {
  const { error, message, detail, code, param, type } = asRecord(Array.isArray(body) ? body[0] : body);
  if (isRecord(error)) {
    const { message: inner, type: kind, code: innerCode, param: innerParam } = error;
    return { message: inner, type: kind, code: innerCode, param: innerParam };
  }
  if (typeof error === 'string') return { message: error, code };
  // The type of such an event says only that it is one.
  if (typeof message === 'string') return { message, type: type === 'error' ? undefined : type, code, param };
  return typeof detail === 'string' ? { message: detail } : undefined;
}
