/** Reads an upstream's answer that is not a 2xx: decides whose fault it is and what the caller may see. */
import { parseJson } from '../wire/json-record.ts';
import type { ChannelType } from './channel-type.ts';
import type { Dialect } from './dialect.ts';
import { scrub } from './error-text.ts';
import type { UpstreamReply } from './exchange.ts';
import { CallerFault, UpstreamFailure, type UpstreamError } from './upstream-failure.ts';

/** Statuses that mean that the caller's request is at fault. */
const callersFault = new Set([400, 404, 413, 422]);
const bodyBytesMax = 64 * 1024;
const retryAfterSecondsMax = 3600;

export interface FailureReading {
  dialect: Pick<Dialect, 'error'>;
  /** Finds errors that our secret or the row causes, not the caller. */
  type: Pick<ChannelType, 'ownFault'>;
  /** Texts that must not reach a client: the secret, the upstream's host. */
  withheld: readonly string[];
}

/** The error of an answer with status 200, before or after its first content. */
export function failureInAnswer(
  error: UpstreamError,
  withheld: readonly string[],
): CallerFault | UpstreamFailure {
  return error.code === 'context_length_exceeded'
    ? callerFault(400, error, withheld)
    : new UpstreamFailure('error_in_answer');
}

const callerFault = (status: number, error: UpstreamError, withheld: readonly string[]): CallerFault =>
  new CallerFault({
    status,
    raw: error,
    message: scrub(error.message, withheld) ?? 'The upstream refused the request.',
    param: scrub(error.param, withheld) ?? null,
    code: wordOf(scrub(error.code, withheld)) ?? 'upstream_refused',
  });

export async function readFailure(
  reply: UpstreamReply,
  { dialect, type, withheld }: FailureReading,
): Promise<CallerFault | UpstreamFailure> {
  const { status } = reply;
  const failure = new UpstreamFailure('status', status, retryAfterSeconds(reply.headers['retry-after']));
  if (!callersFault.has(status)) {
    // Closes the connection: an unread answer would hold it for as long as the upstream likes.
    await reply.body[Symbol.asyncIterator]().return?.();
    return failure;
  }
  const error = dialect.error(parseJson(await readText(reply)));
  if (!error) return failure;
  const own = type.ownFault?.(status, error);
  if (own) return own === 'secret' ? new UpstreamFailure('secret', status) : failure;
  return callerFault(status, error, withheld);
}

/** Accepts only one word, because the code is also logged and the log must not hold upstreams' sentences. */
const wordOf = (text: string | undefined): string | undefined =>
  text !== undefined && /^[\w.-]{1,64}$/.test(text) ? text : undefined;

/** The seconds of a Retry-After header. Its date form is ignored, because it would need a clock. */
function retryAfterSeconds(header: string | undefined): number | undefined {
  const seconds = Number(header);
  return header !== undefined && Number.isFinite(seconds) && seconds >= 0
    ? Math.min(seconds, retryAfterSecondsMax)
    : undefined;
}

async function readText(reply: UpstreamReply): Promise<string> {
  const utf8 = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const piece of reply.body) {
    bytes += piece.byteLength;
    if (bytes > bodyBytesMax) return '';
    text += utf8.decode(piece, { stream: true });
  }
  return text + utf8.decode();
}
