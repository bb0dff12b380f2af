/** A stored response as clients see it. Its status is that of the store: the object is as the last writer left it. */
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { ErrorObject } from '../../../wire/public/error-body.ts';
import { responseError } from '../answer/response-error.ts';

/** What a response ends with whose run is gone, or was never begun. OpenAI's code, as clients know it. */
export const runLost = {
  message:
    'The run of this response stopped before its end, and what it had written is lost. Send the request again.',
  type: 'internal_error',
  param: null,
  code: 'server_error',
} as const;

export function shownResponse(status: string, response: JsonRecord): JsonRecord {
  if (response['status'] === status) return response;
  const shown = { ...response, status };
  return status === 'failed' ? { ...shown, error: response['error'] ?? runLost } : shown;
}

/** A response without an answer. */
export const failedResponse = (response: JsonRecord, error: ErrorObject): JsonRecord => ({
  ...response,
  status: 'failed',
  error: responseError(error),
});
