/**
 * Reads an upstream's answer that is not a 2xx, or the error inside one that is: decides whose fault it is and what
 * the caller may see. The words of vendors are in vocabulary.ts.
 */
import { loopHeader } from '../wire/ids.ts';
import { parseJson, textIn, type JsonRecord } from '../wire/json.ts';
import { scrub, type Withheld } from './error-text.ts';
import { type UpstreamReply, CallerFault, UpstreamFailure, type UpstreamError } from './exchange.ts';
import { findError } from './vendor-errors.ts';
import { findErrorMeaning, findPublishedWord, isTooLong, type ErrorFacts } from './vocabulary.ts';

export const contextTooLong = 'context_length_exceeded';
const callerFaultStatuses = new Set([400, 404, 413, 422]);
/** A word that stands for one of these overrides the reply's status: it is about our key, account or rate, or about the load. */
const upstreamFaultStatuses = new Set([401, 402, 403, 429, 503, 529]);
/** Further failures whose body is read, because it may say more than the status. */
const wordyStatuses = new Set([403, 412, 500]);
/** The vendor refused the operator's customer, so the key is not at fault [anthropic-sdk-typescript 1.14, UserProfile errors]. */
export const customerRefused = 'customer_refused';
const profileCode = /^user_profile_/;
const bodyBytesMax = 64 * 1024;
/** Validators repeat the input that they refuse. */
const refusalBytesMax = 1024 * 1024;
/** How long a failure's body may take. The caller is waiting for the next channel, which matters more. */
const failureBodyMs = 2_000;

interface RefusalReading extends ErrorFacts {
  /** Must not reach a client: the secret, the upstream's host and its name of the model. */
  withheld: readonly Withheld[];
}

interface FailureReading extends RefusalReading {
  /** The request named the operator's customer, so the refusal may be about that customer. */
  namesCustomer?: boolean;
  /** Without it, dates in Retry-After are not read and the body of a 429 is awaited without limit. */
  clock?: FailureClock;
}

export interface FailureClock {
  /** Milliseconds since the epoch. */
  now(): number;
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

export async function readFailure(
  reply: UpstreamReply,
  { clock, namesCustomer = false, ...reading }: FailureReading,
): Promise<CallerFault | UpstreamFailure> {
  const { status, headers } = reply;
  const kind = headers[loopHeader] === undefined ? 'status' : 'loop';
  const facts = { retryAfterSeconds: retryAfterSeconds(headers['retry-after'], clock?.now()) };
  const isCallers = callerFaultStatuses.has(status);
  const mayMeanCustomer = namesCustomer && status === 403;
  const isWordy = clock !== undefined && wordyStatuses.has(status);
  if (!isCallers && status !== 429 && !mayMeanCustomer && !isWordy) {
    // Closes the connection: an unread answer would hold it for as long as the upstream likes.
    await reply.body[Symbol.asyncIterator]().return?.();
    return new UpstreamFailure(kind, status, facts);
  }
  const read = readBody(isCallers ? await readText(reply, refusalBytesMax) : await readInTime(reply, clock));
  // A 413 is not the channel's fault: the body is too long for the server, or the prompt for the model.
  if (!read && status === 413)
    return buildCallerFault(status, { code: contextTooLong, message: tooLongText }, reading.withheld);
  if (!read) return new UpstreamFailure(kind, status, facts);
  // AWS services name the exception in a header, as `ValidationException:http://...`.
  const [exception = ''] = headers['x-amzn-errortype']?.split(':') ?? [];
  const error = exception === '' ? read : { ...read, reasons: [...(read.reasons ?? []), exception] };
  const said = { vendorCode: findPublishedWord(error) };
  const meaning = findErrorMeaning(error, reading);
  // No status: a client cannot wait for our account to be filled.
  if (meaning === 'account') return new UpstreamFailure('secret', undefined, said);
  if (mayMeanCustomer || (namesCustomer && profileCode.test(textIn(error.details?.['error_code']))))
    return buildCallerFault(403, { ...error, code: customerRefused }, reading.withheld);
  const isNameless = status === 413 && [error.code, error.type].every((word) => (word ?? '') === '');
  if (status !== 429 && (meaning === 'too_long' || isNameless || isTooLong(status, error)))
    return buildTooLong(status, error, reading);
  const named = typeof meaning === 'number' && upstreamFaultStatuses.has(meaning) ? meaning : status;
  return named === status && isCallers && meaning !== 'failed'
    ? buildCallerFault(status, error, reading.withheld)
    : new UpstreamFailure(kind, named, { ...facts, ...said, raw: error });
}

/**
 * The error of an answer with status 200, before or after its first content. Its own words decide as a status would,
 * so that no caller's request counts against the channel; an error without known words does.
 */
export function readErrorInAnswer(
  error: UpstreamError,
  reading: RefusalReading,
): CallerFault | UpstreamFailure {
  const meaning = findErrorMeaning(error, reading);
  const said = { vendorCode: findPublishedWord(error) };
  if (meaning === 'account') return new UpstreamFailure('secret', undefined, said);
  const isOfStatus = meaning === undefined || typeof meaning === 'number';
  if (meaning === 'too_long' || (isOfStatus && isTooLong(meaning ?? 400, error)))
    return buildTooLong(400, error, reading);
  if (typeof meaning !== 'number') return new UpstreamFailure('error_in_answer', undefined, said);
  if (upstreamFaultStatuses.has(meaning)) return new UpstreamFailure('status', meaning, said);
  if (!callerFaultStatuses.has(meaning)) return new UpstreamFailure('error_in_answer', undefined, said);
  return buildCallerFault(meaning, error, reading.withheld);
}

/** Clients act on the code. A status that does not blame the client becomes 400. */
const buildTooLong = (status: number, error: UpstreamError, { withheld }: RefusalReading): CallerFault =>
  buildCallerFault(
    callerFaultStatuses.has(status) ? status : 400,
    { ...error, code: contextTooLong },
    withheld,
  );

const tooLongText = 'The request is too long for the upstream of this model.';
const textLengthMax = 4 * 1024;

/** Plain text is an error message, too. An HTML page is not: it comes from a proxy. */
function readBody(text: string): UpstreamError | undefined {
  const body = parseJson(text);
  const sentence = typeof body === 'string' ? body : body === undefined ? text.trim() : '';
  const isPage = sentence.startsWith('<') || sentence.length > textLengthMax;
  return findError(body) ?? (sentence === '' || isPage ? undefined : { message: sentence });
}

function buildCallerFault(status: number, error: UpstreamError, withheld: readonly Withheld[]): CallerFault {
  const code = scrub(error.code, withheld) ?? '';
  return new CallerFault({
    status,
    raw: error,
    message: scrub(error.message, withheld) ?? 'The upstream refused the request.',
    param: scrub(error.param, withheld) ?? null,
    // Only one word, because the code is logged and the log must not hold upstreams' sentences.
    code: wordPattern.test(code) ? code : 'upstream_refused',
    details: scrubDetails(error.details, withheld),
  });
}

const wordPattern = /^[\w.-]{1,64}$/;
const detailsMax = 16;

/** Keeps plain values and lists of texts. Drops the rest, because a vendor may put anything there. */
function scrubDetails(details: JsonRecord = {}, withheld: readonly Withheld[]): JsonRecord | undefined {
  const scrubValue = (name: string, value: unknown): unknown => {
    if (Array.isArray(value))
      return value.slice(0, detailsMax).flatMap((each) => scrub(each, withheld) ?? []);
    if (typeof value === 'number' || typeof value === 'boolean') return value;
    const text = scrub(value, withheld);
    return name === 'error_code' && !wordPattern.test(text ?? '') ? undefined : text;
  };
  const shown = Object.entries(details)
    .filter(([name]) => wordPattern.test(name))
    .slice(0, detailsMax)
    .map(([name, value]) => [name, scrubValue(name, value)] as const)
    .filter(([, value]) => value !== undefined);
  return shown.length > 0 ? Object.fromEntries(shown) : undefined;
}

/** Never rejects: the status counts even without the body. */
async function readInTime(reply: UpstreamReply, clock: FailureClock | undefined): Promise<string> {
  const read = new AbortController();
  try {
    return await readText(reply, bodyBytesMax, clock?.sleep(failureBodyMs, read.signal));
  } catch {
    return '';
  } finally {
    read.abort();
  }
}

/** Returns an empty text if the body is too long, or if `timeout` resolves first. */
export async function readText(
  { body }: UpstreamReply,
  bytesMax: number,
  timeout?: Promise<void>,
): Promise<string> {
  const pieces = body[Symbol.asyncIterator]();
  const read = async (): Promise<string | undefined> => {
    const utf8 = new TextDecoder();
    let text = '';
    for (let bytes = 0; bytes <= bytesMax;) {
      const { done, value } = await pieces.next();
      if (done) return text + utf8.decode();
      bytes += value.byteLength;
      text += utf8.decode(value, { stream: true });
    }
    return undefined;
  };
  const text = await (timeout ? Promise.race([read(), timeout]) : read());
  // Not awaited: it may wait for the abandoned read.
  if (text === undefined) void pieces.return?.();
  return text ?? '';
}

/** No client or counter overflows on it. */
const secondsMax = 366 * 86_400;

/**
 * Reads seconds or an HTTP date. A past date means now; a negative number is invalid, as a date never gives one.
 * @param nowMs milliseconds since the epoch; without it dates are not read
 */
function retryAfterSeconds(header: string | undefined, nowMs = NaN): number | undefined {
  const text = header?.trim() ?? '';
  if (text === '') return undefined;
  const stated = Number(text);
  const seconds = Number.isNaN(stated) ? (Date.parse(text) - nowMs) / 1000 : stated;
  return Number.isNaN(seconds) ? undefined : Math.min(Math.max(seconds, 0), secondsMax);
}
