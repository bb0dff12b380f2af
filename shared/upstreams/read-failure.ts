/**
 * Reads an upstream's answer that is not a 2xx: decides whose fault it is and what the caller may see. Decides by
 * machine-readable fields; text only names a 400 or 413 `context_length_exceeded`.
 */
import { loopHeader } from '../wire/hop-headers.ts';
import { parseJson } from '../wire/json-record.ts';
import type { ChannelType } from './channel-type.ts';
import type { Dialect } from './dialect.ts';
import { statusOfError } from './errors/error-statuses.ts';
import { scrub, type Withheld } from './errors/error-text.ts';
import type { UpstreamReply } from './exchange.ts';
import { retryAfterSeconds } from './errors/retry-after.ts';
import { vendorWord } from './errors/vendor-words.ts';
import { CallerFault, UpstreamFailure, type UpstreamError } from './upstream-failure.ts';

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

export interface FailureReading {
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
  const word = vendorWord(error);
  if (emptyAccount.has(error.code) || emptyAccount.has(error.type))
    return new UpstreamFailure('secret').saying(word);
  const status = statusOfError(error) ?? 0;
  if (ownStatuses.has(status)) return new UpstreamFailure('status', status).saying(word);
  if (!callersFault.has(status)) return new UpstreamFailure('error_in_answer').saying(word);
  const own = type.ownFault?.(status, error);
  if (own) return new UpstreamFailure(own === 'secret' ? 'secret' : 'status', status).saying(word);
  return callerFault(status, error, withheld);
}

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
  const wait = retryAfterSeconds(headers['retry-after'], clock?.now());
  const failure = new UpstreamFailure(headers[loopHeader] === undefined ? 'status' : 'loop', status, wait);
  const isRateLimit = status === 429;
  if (!isRateLimit && !callersFault.has(status)) {
    // Closes the connection: an unread answer would hold it for as long as the upstream likes.
    await reply.body[Symbol.asyncIterator]().return?.();
    return failure;
  }
  const text = isRateLimit ? await readRateLimit(reply, clock) : await readText(reply);
  const read = dialect.error(parseJson(text));
  if (!read) return failure;
  const error = withHeader(read, headers['x-amzn-errortype']);
  // Undefined status: the account is empty, which is no limit of rate that a client could wait for.
  failure.saying(vendorWord(error));
  if (emptyAccount.has(error.code) || emptyAccount.has(error.type))
    return new UpstreamFailure('secret').saying(failure.vendorCode);
  if (isRateLimit) return failure;
  const own = type.ownFault?.(status, error);
  if (own)
    return own === 'secret' ? new UpstreamFailure('secret', status).saying(failure.vendorCode) : failure;
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
