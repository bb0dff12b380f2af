/** Finds the error in an answer of a Chat Completions upstream. */
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { UpstreamError } from '../../upstream-failure.ts';

const reasonsMax = 8;
const reasonPattern = /^[A-Za-z0-9_.-]{1,100}$/;

/** OpenAI's error object, or one of the shapes that servers behind compatible upstreams use. */
export function chatError(body: unknown): UpstreamError | undefined {
  // Some upstreams wrap the error in a list.
  const whole = asRecord(firstOf(body));
  const { message, detail } = whole;
  const error = firstOf(whole['error']);
  if (isRecord(error)) return readError(error);
  if (typeof error === 'string') return readError({ ...whole, message: error });
  if (typeof message === 'string') return readError(whole);
  if (typeof detail === 'string') return { message: detail };
  return detailError(detail) ?? detailError(asRecord(message)['detail']);
}

/** The first of the faults that validating servers list, each with the path of its field in `loc`. */
function detailError(detail: unknown): UpstreamError | undefined {
  if (!Array.isArray(detail)) return undefined;
  const { msg, loc } = asRecord(detail[0]);
  const path = Array.isArray(loc) ? loc.filter((step) => step !== 'body').join('.') : undefined;
  return { message: msg, ...(path && { param: path }) };
}

/**
 * The error in an event of an answer with status 200. Undefined: the event is none. Some servers send the error itself,
 * marked by its type.
 */
export function errorOfEvent(event: JsonRecord): UpstreamError | undefined {
  const marked = event['object'] === 'error' || event['type'] === 'error';
  if (!event['error'] && !(marked && !Array.isArray(event['choices']))) return undefined;
  return chatError(event) ?? {};
}

/** Codes stay numbers where they are: Google's and others' repeat the status there and say the rest in `status`. */
function readError(error: JsonRecord): UpstreamError {
  const { message, type, status, code, param, details } = error;
  const found = Array.isArray(details) ? details.map((detail) => asRecord(detail)['reason']) : [];
  const reasons = found.filter((reason) => typeof reason === 'string' && reasonPattern.test(reason));
  return {
    message,
    type: type ?? (typeof status === 'string' ? status : undefined),
    code,
    param,
    ...(reasons.length > 0 && { reasons: reasons.slice(0, reasonsMax) as string[] }),
  };
}

const firstOf = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value);
