/** Sends one request to an upstream and reads the whole response. Text from `cleanText` is safe to show. */
import { TransportError, type UpstreamReply, type UpstreamRequest } from '../../upstreams/exchange.ts';
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';

const shownCharactersMax = 300;
/** The longest lists of models have some megabytes. What comes after this is not read. */
const bodyCharactersMax = 16 * 1024 * 1024;

export interface UpstreamAnswer {
  status: number;
  ok: boolean;
  /** The whole body, or the part that was received. */
  body: string;
}

/** Throws a Failure if the upstream does not respond. */
export async function callUpstream(
  { clock, upstreams }: Pick<OperatorPorts, 'clock' | 'upstreams'>,
  request: UpstreamRequest,
  { secret, timeoutMs }: { secret: string | undefined; timeoutMs: number },
): Promise<UpstreamAnswer> {
  const deadline = new AbortController();
  const finished = new AbortController();
  void clock.sleep(timeoutMs, finished.signal).then(() => {
    if (!finished.signal.aborted) deadline.abort();
  });
  try {
    const reply = await upstreams.send(request, deadline.signal);
    return {
      status: reply.status,
      ok: reply.status >= 200 && reply.status < 300,
      body: await textOf(reply),
    };
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    const why = deadline.signal.aborted ? 'time-out' : (error.code ?? error.message);
    throw new Failure(`no answer: ${cleanText(why, secret)}`);
  } finally {
    finished.abort();
  }
}

/** Returns the received part of a body that breaks off: the status is more useful than the error. */
async function textOf({ body }: UpstreamReply): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of body) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length >= bodyCharactersMax) return text;
    }
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
  }
  return text + decoder.decode();
}

/**
 * Removes the secret, because upstreams echo keys in errors, and control characters, because a terminal obeys
 * them. Shortens the text to `shownCharactersMax`.
 */
export function cleanText(text: string, secret: string | undefined): string {
  const hidden = secret === undefined ? text : text.replaceAll(secret, '(secret)');
  const printable = hidden.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return printable.length > shownCharactersMax ? `${printable.slice(0, shownCharactersMax)}…` : printable;
}
