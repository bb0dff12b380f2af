/**
 * Errors as vendors write them: one reading of their shapes, and the tables of their words. The dialects of all vendors share
 * both. Must never show or log a sentence of an upstream.
 */
import { asRecord, isRecord, listIn, textIn, type JsonRecord } from '../wire/json.ts';
import type { UpstreamError } from './exchange.ts';

// The shapes of errors.

const reasonsMax = 8;
const reasonPattern = /^[A-Za-z0-9_.-]{1,100}$/;

/**
 * Reads the error objects of OpenAI, Anthropic and Google, and the shapes of gateways and compatible servers. Returns
 * undefined if the body has no error, so it is not from the API.
 */
export function findError(body: unknown): UpstreamError | undefined {
  // Some upstreams wrap the error in a list.
  const whole = asRecord(firstOf(body));
  const { message, detail } = whole;
  const error = firstOf(whole['error']);
  if (isRecord(error)) return readError(error);
  if (typeof error === 'string') return readError({ ...whole, message: error });
  if (typeof message === 'string') return readError(whole);
  if (typeof detail === 'string') return { message: detail };
  return readDetailError(detail) ?? readDetailError(asRecord(message)['detail']);
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
function readError({ message, type, status, code, param, details }: JsonRecord): UpstreamError {
  const found = listIn(details).map((detail) => textIn(asRecord(detail)['reason']));
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

// The words of errors.

export const contextTooLong = 'context_length_exceeded';
/** Codes and types of an empty account of ours. Vendors send them with a 429. */
const emptyAccountWords = new Set<unknown>([
  'insufficient_quota',
  'exceeded_current_quota_error',
  'billing_not_active',
  'billing_hard_limit_reached',
]);
const messageLengthMax = 64 * 1024;
/** Sentences about a prompt that is longer than the model's context. */
const tooLongTexts =
  /maximum context length|prompt is too long|input is too long|exceeds? (?:the |this model's )?(?:maximum )?context (?:length|limit|window|size)|exceeds the maximum number of (?:input )?tokens/i;

export const meansEmptyAccount = ({ code, type }: UpstreamError): boolean =>
  emptyAccountWords.has(code) || emptyAccountWords.has(type);

export const isTooLong = (status: number, { code, message }: UpstreamError): boolean =>
  code === contextTooLong ||
  ((status === 400 || status === 413) &&
    typeof message === 'string' &&
    tooLongTexts.test(message.slice(0, messageLengthMax)));

type NamedError = Pick<UpstreamError, 'code' | 'type' | 'reasons'>;

/** Codes, types and reasons by the status that they stand for, in any case of letters. The first match counts. */
const statuses: readonly [RegExp, number][] = [
  [/^(?:authentication_error|invalid_api_key|incorrect_api_key|unauthenticated|unrecognizedclient)$/, 401],
  [/^billing_error$/, 402],
  [/^(?:permission_error|permission_denied|accessdenied|unsupported_country_region_territory)$/, 403],
  [/^(?:rate_limit_exceeded|rate_limit_error|too_many_requests|toomanyrequests|resource_exhausted)$/, 429],
  [/^throttling(?:_error)?$/, 429],
  [/^(?:service_unavailable|serviceunavailable|unavailable|slow_down)$/, 503],
  [/^(?:engine_)?overloaded(?:_error)?$/, 529],
  [/^(?:server_error|api_error|internal|internal_error|internal_server_error|internalserver)$/, 500],
  [/^(?:request_too_large|image_too_large|image_file_too_large)$/, 413],
  [/^(?:invalid_(?:request|request_error|argument|prompt|value|type)|validation|bad_request)$/, 400],
  [/^(?:invalid_image|invalid_base64|unsupported_|missing_required_)[a-z0-9_]*$/, 400],
  [/^image_(?:too_small|parse_error|file_not_found)$|^(?:empty_image_file|failed_to_download_image)$/, 400],
  [/^(?:[a-z_]*policy_violation|content_policy|content_filter|data_inspection_failed)$/, 400],
  [/^responsibleaipolicyviolation$/, 400],
];
const nameLengthMax = 64;

/** The code counts before the type, which is less specific. */
export function errorStatusOf({ code, type, reasons = [] }: NamedError): number | undefined {
  for (const name of [code, type, ...reasons]) {
    if (typeof name !== 'string' && typeof name !== 'number') continue;
    const text = String(name);
    // A code may be the status itself.
    if (/^[45]\d\d$/.test(text)) return Number(text);
    const word = text.length > nameLengthMax ? '' : text.toLowerCase().replace(/exception$/, '');
    const found = statuses.find(([pattern]) => pattern.test(word));
    if (found) return found[1];
  }
  return undefined;
}

/** Only published words are logged, so an upstream writes nothing of its own into the log. */
const knownWords: ReadonlySet<string> = new Set(
  [
    'insufficient_quota rate_limit_exceeded tokens requests invalid_api_key invalid_request_error server_error',
    'billing_hard_limit_reached billing_not_active exceeded_current_quota_error account_deactivated',
    'context_length_exceeded model_not_found unsupported_parameter unsupported_value invalid_value',
    'missing_required_parameter unknown_parameter invalid_type invalid_image_url content_policy_violation',
    'content_filter string_above_max_length integer_above_max_value invalid_json_schema invalid_function_parameters',
    'authentication_error permission_error not_found_error request_too_large rate_limit_error api_error',
    'overloaded_error timeout_error billing_error internal_server_error engine_overloaded_error',
    'INVALID_ARGUMENT FAILED_PRECONDITION PERMISSION_DENIED NOT_FOUND RESOURCE_EXHAUSTED INTERNAL UNAVAILABLE',
    'DEADLINE_EXCEEDED UNAUTHENTICATED API_KEY_INVALID ValidationException ThrottlingException',
    'AccessDeniedException ModelTimeoutException ModelNotReadyException ServiceUnavailableException',
    'ModelErrorException ServiceQuotaExceededException ResourceNotFoundException InternalServerException',
    'DeploymentNotFound OperationNotSupported upstream_refused',
  ].flatMap((line) => line.split(' ')),
);

/** For the log: the first known word of an error, or `other` if it has only unknown ones. */
export function findKnownWord({ code, type, reasons = [] }: NamedError): string | undefined {
  const said = [code, ...reasons, type].filter((word) => typeof word === 'string');
  return said.find((word) => knownWords.has(word)) ?? (said.length > 0 ? 'other' : undefined);
}
