/** Errors in the form of Messages: Claude Code acts on their types and statuses, and on some of their words. */
import type { ErrorObject } from '../../wire/invalid-request.ts';
import type { JsonRecord } from '../../wire/json.ts';
import type { Endpoint, RefusedAnswer } from '../endpoint.ts';

const typeOfStatus: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/** By the relay's types. A balance that does not cover the call is no limit that ends by itself: on 429 clients would wait. */
const statusOfType: Readonly<Record<ErrorObject['type'], number>> = {
  access_denied_error: 403,
  authentication_error: 401,
  invalid_request_error: 400,
  quota_exceeded_error: 402,
  rate_limit_error: 429,
  upstream_error: 502,
  internal_error: 500,
};

/** Anthropic's codes for refusals of the relay. The relay's other codes are sent unchanged [anthropic-sdk-typescript 1.14]. */
const errorCodes: Readonly<Record<string, string>> = {
  invalid_encoding: 'request_body_encoding_invalid',
  unsupported_content_encoding: 'request_body_encoding_unsupported',
};

/**
 * SDKs since November 2026 choose the class of an error by `details.error_code`.
 * @param status undefined once the answer has begun
 * @param details the vendor's
 */
export function renderErrorBody(
  error: ErrorObject,
  requestId: string,
  status?: number,
  details?: JsonRecord,
): object {
  const known = status ?? (error.code === 'upstream_timeout' ? 504 : statusOfType[error.type]);
  const type = typeOfStatus[known] ?? (known >= 500 ? 'api_error' : 'invalid_request_error');
  const { code, param } = error;
  // The relay's placeholder for a vendor's refusal without a code means nothing to clients.
  const own = code === 'upstream_refused' ? {} : { error_code: errorCodes[code] ?? code };
  const shown = { ...own, ...details };
  const isShown = Object.keys(shown).length > 0;
  return {
    type: 'error',
    error: { type, message: messageOf(error), code, param, ...(isShown && { details: shown }) },
    request_id: requestId,
  };
}

/** The words by which Claude Code finds that it has to shorten the conversation. */
function messageOf({ code, message }: ErrorObject): string {
  const isTooLong = code === 'context_length_exceeded' && !/prompt is too long/i.test(message);
  return isTooLong ? `prompt is too long: ${message}` : message;
}

export function answerRefusal(
  { status: own, error, isOverloaded, details }: Parameters<NonNullable<Endpoint['refused']>>[0],
  requestId: string,
): RefusedAnswer {
  const isUnpaid = error.type === 'quota_exceeded_error';
  const status = isOverloaded ? 529 : isUnpaid ? statusOfType[error.type] : own;
  // Claude Code asks ten times more with a key that is refused, unless it is told not to.
  const headers: Record<string, string> = status === 401 ? { 'x-should-retry': 'false' } : {};
  return { status, body: renderErrorBody(error, requestId, status, details), headers };
}
