/** Finds the error in an answer of a Messages upstream: `{type: 'error', error: {type, message}, request_id}`. */
import { asRecord, isRecord } from '../../../wire/json-record.ts';
import type { UpstreamError } from '../../upstream-failure.ts';

/** Bedrock's own errors, which the model never saw, have a `message` alone. */
export function messagesError(body: unknown): UpstreamError | undefined {
  const { error, message } = asRecord(body);
  if (isRecord(error)) {
    const { type, code, param } = error;
    return { message: error['message'], type, code, param };
  }
  if (typeof error === 'string') return { message: error };
  return typeof message === 'string' ? { message } : undefined;
}
