/** Sends one small request to an upstream outside of a call, with limits on time and length. */
import { TransportError, type UpstreamReply, type UpstreamRequest } from '../../upstreams/exchange.ts';
import type { Clock, UpstreamTransport } from '../ports/host.ts';

/** `problem` contains no text of the upstream. */
export type TextReply = { status: number; body: string } | { problem: string };

/** `body`: the whole body, or the part that was received, up to `charactersMax`. */
export async function exchangeText(
  { clock, transport }: { clock: Clock; transport: UpstreamTransport },
  request: UpstreamRequest,
  { timeoutMs, charactersMax }: { timeoutMs: number; charactersMax: number },
): Promise<TextReply> {
  const deadline = new AbortController();
  const finished = new AbortController();
  void clock.sleep(timeoutMs, finished.signal).then(() => {
    if (!finished.signal.aborted) deadline.abort();
  });
  try {
    const reply = await transport.send(request, deadline.signal);
    return { status: reply.status, body: await readText(reply, charactersMax) };
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
    return { problem: deadline.signal.aborted ? 'timeout' : (error.code ?? error.message) };
  } finally {
    finished.abort();
  }
}

/** Returns the received part of a body that was cut off: the status is more useful than the error. */
async function readText({ body }: UpstreamReply, charactersMax: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  try {
    for await (const bytes of body) {
      text += decoder.decode(bytes, { stream: true });
      if (text.length >= charactersMax) return text;
    }
  } catch (error) {
    if (!(error instanceof TransportError)) throw error;
  }
  return text + decoder.decode();
}
