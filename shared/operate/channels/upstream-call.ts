/** One exchange with an upstream, read whole. Nothing that is shown of it holds the secret or controls a terminal. */
import { TransportError, type UpstreamReply, type UpstreamRequest } from '../../upstreams/exchange.ts';
import { Failure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';

const shownCharactersMax = 300;

export interface UpstreamAnswer {
  status: number;
  ok: boolean;
  /** As far as it came. */
  body: string;
}

/** Throws a Failure when there is no answer. */
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

/** A body that breaks off is read as far as it came: its status says more than the break. */
async function textOf({ body }: UpstreamReply): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of body) text += decoder.decode(bytes, { stream: true });
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
  }
  return text + decoder.decode();
}

/** Upstreams echo keys in their errors; a terminal must not obey what an upstream sends. */
export function cleanText(text: string, secret: string | undefined): string {
  const hidden = secret === undefined ? text : text.replaceAll(secret, '(secret)');
  const printable = hidden.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim();
  return printable.length > shownCharactersMax ? `${printable.slice(0, shownCharactersMax)}…` : printable;
}
