/** Reads errors in the shapes of all vendors, for every dialect. */
import { asRecord, isRecord, listIn, parseJson, textIn, type JsonRecord } from '../wire/json.ts';
import type { UpstreamError } from './exchange.ts';

const reasonsMax = 8;
const reasonPattern = /^[A-Za-z0-9_.-]{1,100}$/;

/**
 * Reads the error objects of OpenAI, Anthropic and Google, and the shapes of gateways and compatible servers: a text, FastAPI's
 * `detail`, Cloudflare's list of `errors` [developers.cloudflare.com/workers-ai, "Errors"], MiniMax's `base_resp` and Baidu's
 * `error_msg`. Returns undefined if the body has no error, so it is not from the API.
 */
export function findError(body: unknown): UpstreamError | undefined {
  // Some upstreams wrap the error in a list.
  const whole = asRecord(firstOf(body));
  const { message, detail, errors, base_resp: base, error_msg: text } = whole;
  const error = firstOf(whole['error']) ?? firstOf(errors);
  // Gateways wrap their vendor's error.
  if (isRecord(error))
    return readWrapped(error) ?? readError(isRecord(error['error']) ? error['error'] : error);
  if (typeof error === 'string') return readError({ ...whole, message: error });
  if (typeof message === 'string') return readError(whole);
  if (typeof text === 'string') return readError({ message: text, code: whole['error_code'] });
  if (isRecord(base) && base['status_code'])
    return readError({ message: base['status_msg'], code: base['status_code'] });
  if (typeof detail === 'string') return { message: detail };
  if (isRecord(detail)) return findError({ ...detail, detail: undefined }) ?? readError(detail);
  return readDetailError(detail) ?? readDetailError(asRecord(message)['detail']);
}

/** Unwraps a vendor's refusal from OpenRouter's error. The vendor's other failures say nothing about our account at OpenRouter. */
function readWrapped({ code, metadata }: JsonRecord): UpstreamError | undefined {
  const raw = textIn(asRecord(metadata)['raw']);
  if (raw === '' || ![400, 413, 422].includes(Number(code))) return undefined;
  return findError(parseJson(raw)) ?? { message: raw, code };
}

/** Validating servers list faults, each with the path of its field in `loc`. Reads the first. */
function readDetailError(detail: unknown): UpstreamError | undefined {
  if (!Array.isArray(detail)) return undefined;
  const { msg } = asRecord(detail[0]);
  const [path] = detail.map(pathOf);
  const unknown = detail.filter((fault) => asRecord(fault)['type'] === 'extra_forbidden').map(pathOf);
  return {
    message: msg,
    ...(path && { param: path }),
    ...(unknown.length > 0 && { unknownFields: unknown }),
  };
}

const pathOf = (fault: unknown): string =>
  listIn(asRecord(fault)['loc'])
    .filter((step) => step !== 'body')
    .join('.');

/** Keeps numeric codes: Google and others repeat the status there and put the word into `status`. */
function readError({ message, type, status, code, param, details, reason }: JsonRecord): UpstreamError {
  const found = [{ reason }, ...listIn(details)].map((detail) => textIn(asRecord(detail)['reason']));
  const reasons = found.filter((reason) => reasonPattern.test(reason)).slice(0, reasonsMax);
  const named = type ?? (typeof status === 'string' ? status : undefined);
  return {
    message,
    // The type of an event may only say that it is an error.
    type: named === 'error' ? undefined : named,
    code,
    param,
    ...(reasons.length > 0 && { reasons }),
    ...(isRecord(details) && { details }),
  };
}

const firstOf = (value: unknown): unknown => (Array.isArray(value) ? value[0] : value);
