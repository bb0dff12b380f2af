/** Finds the error in an answer of a Chat Completions upstream. */
import { asRecord, isRecord } from '../../../wire/json-record.ts';
import type { UpstreamError } from '../../upstream-failure.ts';

/** OpenAI's error object, or one of the shapes that servers behind compatible upstreams use. */
export function chatError(body: unknown): UpstreamError | undefined {
  // Some upstreams wrap the error in a list.
  const { error, message, detail, code, param } = asRecord(Array.isArray(body) ? body[0] : body);
  if (isRecord(error)) return error;
  if (typeof error === 'string') return { message: error };
  if (typeof message === 'string') return { message, code, param };
  if (typeof detail === 'string') return { message: detail };
  return Array.isArray(detail) ? { message: asRecord(detail[0])['msg'] } : undefined;
}
