/**
 * Streams fragments of a live page as server-sent events, which live.js puts into the page. Streams are bounded in number (each
 * takes one of the six connections that a browser opens to a host), in rate (one look after another, and none while the browser
 * reads nothing) and in time. When a stream ends, the browser asks again: so a live page keeps its session, a hidden or paused one
 * does not, and an expired session shows.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
import { createHash } from 'node:crypto';
import { Failure } from '../../../../shared/operate/plan.ts';
import { watchMs } from '../../../../shared/operate/requests/list-requests.ts';
import type { Clock } from '../../../../shared/relay/ports/host.ts';
import { isSame } from '../guard.ts';
import { html, maskKeys, type Content, type Markup } from '../../markup.ts';
import type { Identity, LiveLook, Visit, LiveView } from './visit.ts';

const streamsMax = 3;
/** Waits after a failed look: the store may be throttled, or credentials are being renewed. */
const troubleMs = 10_000;

/** Returns a function that opens a stream; `begin` throws a Failure for a page that cannot be live. */
export function createLiveStreams(
  clock: Clock,
  onFault: (error: unknown, path: string) => void,
  streamMs = watchMs,
): (begin: () => LiveView, path: string) => Response {
  let count = 0;
  const troubleOf = (error: unknown, path: string) => {
    const isKnown = error instanceof Failure;
    if (!isKnown) onFault(error, path);
    const words = isKnown
      ? error.message
      : 'Console error: see the terminal that runs the console, or its log.';
    return { event: formatEvent({ trouble: maskKeys(words) }), isTrouble: true };
  };
  const bodyOf = (watched: LiveView, path: string): ReadableStream<Uint8Array> => {
    const ending = new AbortController();
    const { signal } = ending;
    signal.addEventListener('abort', () => (count -= 1), { once: true });
    const endMs = clock.now() + streamMs;
    const encoder = new TextEncoder();
    let waitMs = 0;
    count += 1;
    return new ReadableStream(
      {
        pull: async (controller) => {
          await clock.sleep(waitMs, signal);
          if (signal.aborted) return;
          if (clock.now() >= endMs) {
            ending.abort();
            return controller.close();
          }
          const looked = await watched
            .look()
            .then(eventOf)
            .catch((error: unknown) => troubleOf(error, path));
          waitMs = looked.isTrouble ? Math.max(troubleMs, watched.everyMs) : watched.everyMs;
          if (!signal.aborted) controller.enqueue(encoder.encode(looked.event));
        },
        cancel: () => ending.abort(),
      },
      { highWaterMark: 0 },
    );
  };
  return (begin, path) => {
    if (count >= streamsMax)
      return answerRefusal(503, `${streamsMax} pages are already live: close one, then try again`);
    try {
      const headers = { 'content-type': 'text/event-stream; charset=utf-8' };
      return new Response(bodyOf(begin(), path), { headers });
    } catch (error) {
      if (error instanceof Failure) return answerRefusal(400, error.message);
      throw error;
    }
  };
}

async function eventOf({ fragments, words, nowMs }: LiveLook) {
  const made = await Promise.all(
    fragments.map(async ({ markup, ...fragment }) => ({ ...fragment, html: maskKeys(String(await markup)) })),
  );
  return { event: formatEvent({ words, parts: made }, nowMs), isTrouble: false };
}

/** JSON has no line breaks, so it fits one `data:` line. */
const formatEvent = (data: object, id?: number): string =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;

const answerRefusal = (status: number, words: string): Response =>
  new Response(`${words}\n`, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });

/** A watch that costs money ends after a night. */
const paidHours = 12;

/** A script that fetches a stream looks like a page that opens it, so the address holds a key that only this session's pages know. */
const watchKeyOf = ({ formToken }: Identity): string =>
  createHash('sha256').update(`watch ${formToken}`).digest('hex');

/** @param counted returns false when there are too many */
export async function refuseWatch(
  { identity, query }: Pick<Visit, 'identity' | 'query'>,
  counted?: (identity: Identity) => Promise<boolean>,
): Promise<Response | undefined> {
  if (!isSame(query('watch'), watchKeyOf(identity)))
    return answerRefusal(403, 'this page belongs to another session');
  return (await counted?.(identity)) === false
    ? answerRefusal(503, 'too many live pages: try again in five minutes')
    : undefined;
}

interface LiveBarInput {
  /** The stream's, with a query. */
  address: string;
  isOn: boolean;
  rowsMax?: number;
  isPaid: boolean;
  words: Content;
}

/** live.js starts from this element and reports in it. Without script it has no button. */
export const renderLiveBar = (
  { identity, nowMs }: Pick<Visit, 'identity' | 'nowMs'>,
  { address, isOn, rowsMax = 0, isPaid, words }: LiveBarInput,
): Markup =>
  html`<div
    class="live"
    data-live="${address}&watch=${watchKeyOf(identity)}"
    data-after="${nowMs}"
    data-rows="${rowsMax}"
    ${isOn && html`data-on`}
    ${isPaid && html`data-hours="${paidHours}"`}
  >
    <button type="button" hidden>Watch live</button> <span role="status"></span>
    <span class="soft" data-words>${words}</span>
  </div>`;
