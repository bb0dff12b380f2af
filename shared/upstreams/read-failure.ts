/**
 * Reads an upstream's answer that is not a 2xx: decides whose fault it is and what the caller may see. Decides by
 * machine-readable fields; text only names a 400 or 413 `context_length_exceeded`.
 */
import { loopHeader } from '../wire/ids.ts';
import { parseJson } from '../wire/json.ts';
import type { ChannelType } from './channel-type.ts';
import type { Dialect } from './dialect.ts';
import { scrub, type Withheld } from './error-text.ts';
import { type UpstreamReply, CallerFault, UpstreamFailure, type UpstreamError } from './exchange.ts';

/** Statuses that mean that the caller's request is at fault. */
const callersFault = new Set([400, 404, 413, 422]);
const bodyBytesMax = 64 * 1024;
/** How long the body of a 429 is awaited: its code is worth little to a caller who waits for the next channel. */
const rateLimitBodyMs = 2_000;

const tooLong = 'context_length_exceeded';
/** Codes and types that say that our account at the upstream is empty. Vendors send them with a 429. */
const emptyAccount = new Set<unknown>([
  'insufficient_quota',
  'exceeded_current_quota_error',
  'billing_not_active',
  'billing_hard_limit_reached',
]);
/** How vendors say that a prompt is longer than the model's context. */
const tooLongTexts =
  /maximum context length|prompt is too long|input is too long|exceeds? (?:the |this model's )?(?:maximum )?context (?:length|limit|window|size)|exceeds the maximum number of (?:input )?tokens/i;

interface FailureReading {
  dialect: Pick<Dialect, 'error'>;
  /** Finds errors that our secret or the row causes, not the caller. */
  type: Pick<ChannelType, 'ownFault'>;
  /** What must not reach a client: the secret, the upstream's host and its name of the model. */
  withheld: readonly Withheld[];
  /** Absent: a Retry-After in the form of a date is not read, and the body of a 429 is awaited for any time. */
  clock?: FailureClock;
}

export interface FailureClock {
  /** Milliseconds since the epoch. */
  now(): number;
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** Statuses of an error inside an answer that mean what they mean as the status of a reply. */
const ownStatuses = new Set([401, 402, 403, 429, 503, 529]);

/**
 * The error of an answer with status 200, before or after its first content. What it says of itself decides as a status
 * would, so that no caller's request counts against the channel; an error that says nothing does.
 */
export function failureInAnswer(
  error: UpstreamError,
  withheld: readonly Withheld[],
  type: Pick<ChannelType, 'ownFault'> = {},
): CallerFault | UpstreamFailure {
  if (isTooLong(Number(error.code), error)) return callerFault(400, { ...error, code: tooLong }, withheld);
  const said = { vendorCode: vendorWord(error) };
  if (saysEmptyAccount(error)) return new UpstreamFailure('secret', undefined, said);
  const status = statusOfError(error) ?? 0;
  if (ownStatuses.has(status)) return new UpstreamFailure('status', status, said);
  if (!callersFault.has(status)) return new UpstreamFailure('error_in_answer', undefined, said);
  const own = type.ownFault?.(status, error);
  if (own) return new UpstreamFailure(own === 'secret' ? 'secret' : 'status', status, said);
  return callerFault(status, error, withheld);
}

const saysEmptyAccount = ({ code, type }: UpstreamError): boolean =>
  emptyAccount.has(code) || emptyAccount.has(type);

const isTooLong = (status: number, { code, message }: UpstreamError): boolean =>
  code === tooLong ||
  ((status === 400 || status === 413) &&
    typeof message === 'string' &&
    tooLongTexts.test(message.slice(0, bodyBytesMax)));

const callerFault = (status: number, error: UpstreamError, withheld: readonly Withheld[]): CallerFault =>
  new CallerFault({
    status,
    raw: error,
    message: scrub(error.message, withheld) ?? 'The upstream refused the request.',
    param: scrub(error.param, withheld) ?? null,
    code: wordOf(scrub(error.code, withheld)) ?? 'upstream_refused',
  });

export async function readFailure(
  reply: UpstreamReply,
  { dialect, type, withheld, clock }: FailureReading,
): Promise<CallerFault | UpstreamFailure> {
  const { status, headers } = reply;
  const kind = headers[loopHeader] === undefined ? 'status' : 'loop';
  const facts = { retryAfterSeconds: retryAfterSeconds(headers['retry-after'], clock?.now()) };
  const isRateLimit = status === 429;
  if (!isRateLimit && !callersFault.has(status)) {
    // Closes the connection: an unread answer would hold it for as long as the upstream likes.
    await reply.body[Symbol.asyncIterator]().return?.();
    return new UpstreamFailure(kind, status, facts);
  }
  const text = isRateLimit ? await readRateLimit(reply, clock) : await readText(reply);
  const read = dialect.error(parseJson(text));
  if (!read) return new UpstreamFailure(kind, status, facts);
  const error = withHeader(read, headers['x-amzn-errortype']);
  const said = { vendorCode: vendorWord(error) };
  // No status: the account is empty, which is no limit of rate that a client could wait for.
  if (saysEmptyAccount(error)) return new UpstreamFailure('secret', undefined, said);
  const own = isRateLimit ? 'channel' : type.ownFault?.(status, error);
  if (own === 'secret') return new UpstreamFailure('secret', status, said);
  if (own) return new UpstreamFailure(kind, status, { ...facts, ...said });
  return callerFault(status, isTooLong(status, error) ? { ...error, code: tooLong } : error, withheld);
}

/** AWS services name the exception in a header, as `ValidationException:http://...`. */
function withHeader(error: UpstreamError, header: string | undefined): UpstreamError {
  const [name = ''] = header?.split(':') ?? [];
  return name === '' ? error : { ...error, reasons: [...(error.reasons ?? []), name] };
}

/** Accepts only one word, because the code is also logged and the log must not hold upstreams' sentences. */
const wordOf = (text: string | undefined): string | undefined =>
  text !== undefined && /^[\w.-]{1,64}$/.test(text) ? text : undefined;

/** Never rejects: a 429 is one whether its body arrives or not. */
async function readRateLimit(reply: UpstreamReply, clock: FailureClock | undefined): Promise<string> {
  const read = new AbortController();
  try {
    return await readText(reply, clock?.sleep(rateLimitBodyMs, read.signal));
  } catch {
    return '';
  } finally {
    read.abort();
  }
}

/** The body as text; empty if it is too long, or if `over` resolves first. */
async function readText({ body }: UpstreamReply, over?: Promise<void>): Promise<string> {
  const utf8 = new TextDecoder();
  const pieces = body[Symbol.asyncIterator]();
  const ended = over?.then(() => undefined);
  let text = '';
  let bytes = 0;
  for (;;) {
    const piece = await (ended ? Promise.race([pieces.next(), ended]) : pieces.next());
    if (piece?.done) return text + utf8.decode();
    bytes += piece?.value.byteLength ?? 0;
    if (piece === undefined || bytes > bodyBytesMax) {
      // Not awaited: it may wait for the read that nobody awaits any more.
      void pieces.return?.();
      return '';
    }
    text += utf8.decode(piece.value, { stream: true });
  }
}

/** The statuses that errors inside an answer with status 200 would have had, by their machine-readable names. */

/** Vendors' codes, types and reasons, in any case of letters. The first pattern that fits counts. */
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

/** The longest name that is looked at. */
const nameLengthMax = 64;

/** The machine-readable fields of an error. */
interface NamedError {
  code?: unknown;
  type?: unknown;
  reasons?: readonly string[];
}

/** Undefined: nothing in the error says one. The code counts before the type, which is wider. */
export function statusOfError({ code, type, reasons = [] }: NamedError): number | undefined {
  for (const name of [code, type, ...reasons]) {
    const status = statusOfName(name);
    if (status !== undefined) return status;
  }
  return undefined;
}

/** A code may be the status itself, as a number or its digits. */
function statusOfName(name: unknown): number | undefined {
  if (typeof name !== 'string' && typeof name !== 'number') return undefined;
  const text = String(name);
  if (/^[45]\d\d$/.test(text)) return Number(text);
  if (text.length > nameLengthMax) return undefined;
  const word = text.toLowerCase().replace(/exception$/, '');
  return statuses.find(([pattern]) => pattern.test(word))?.[1];
}

/** Reads how long an upstream wants to be left alone. */

/** A time that no client or counter overflows on. */
const secondsMax = 366 * 86_400;

/**
 * The seconds of a Retry-After header, which holds seconds or an HTTP date.
 * @param nowMs milliseconds since the epoch; undefined: dates are not read
 */
function retryAfterSeconds(header: string | undefined, nowMs: number | undefined): number | undefined {
  const text = header?.trim() ?? '';
  if (text === '') return undefined;
  const seconds = Number(text);
  if (!Number.isNaN(seconds)) return bounded(seconds);
  const dateMs = Date.parse(text);
  return nowMs === undefined || Number.isNaN(dateMs) ? undefined : bounded((dateMs - nowMs) / 1000);
}

/** A date that is over means now; a negative number means nothing, as a date never gives one. */
const bounded = (seconds: number): number => Math.min(Math.max(seconds, 0), secondsMax);

/**
 * The words of vendors' errors that the log may have: fixed words, so that an upstream writes nothing of its own into it.
 */

/** Codes, types and reasons that vendors publish. */
const known: ReadonlySet<string> = new Set(
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

/** The first of an error's words that is known; `other`: it has words, none of which is known. */
export function vendorWord(error: {
  code?: unknown;
  type?: unknown;
  reasons?: readonly string[];
}): string | undefined {
  const said = [error.code, ...(error.reasons ?? []), error.type].filter((word) => typeof word === 'string');
  return said.find((word) => known.has(word)) ?? (said.length > 0 ? 'other' : undefined);
}
