/**
 * Parts of a page, made again while somebody watches it: server-sent events that live.js puts into the page. Bounded in number (each
 * takes one of the six connections that a browser has for one host), rate (one look after the other, each after a wait; a browser
 * that takes nothing is looked at no more) and time. Its end makes the browser ask anew: so a page that is watched is a
 * request every quarter of an hour and keeps its session, one that is hidden or paused is none, and whoever has no session any more
 * is told so.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
import { createHash } from 'node:crypto';
import { Failure } from '../../../../shared/operate/plan.ts';
import { watchMs } from '../../../../shared/operate/requests/list-requests.ts';
import type { Clock } from '../../../../shared/relay/ports/host.ts';
import { isSame } from '../guard.ts';
import { html, masked, type Content, type Markup } from '../../markup.ts';
import type { Identity, LiveLook, Visit, Watched } from './visit.ts';

type Watcher = Pick<Identity, 'formToken'>;

const streamsMax = 3;
/** After a look that did not work out: the store may be throttled, or credentials be renewed. */
const troubleMs = 10_000;
const retryMs = 500;

export class LiveStreams {
  readonly #clock: Clock;
  readonly #onFault: (error: unknown, path: string) => void;
  readonly #streamMs: number;
  #count = 0;

  constructor(clock: Clock, onFault: (error: unknown, path: string) => void, streamMs = watchMs) {
    [this.#clock, this.#onFault, this.#streamMs] = [clock, onFault, streamMs];
  }

  /** @param begin throws a Failure for what cannot be watched */
  open(begin: () => Watched, path: string): Response {
    if (this.#count >= streamsMax) return refusal(503, `${streamsMax} pages are watched already`);
    try {
      const headers = { 'content-type': 'text/event-stream; charset=utf-8' };
      return new Response(this.#bodyOf(begin(), path), { headers });
    } catch (error) {
      if (error instanceof Failure) return refusal(400, error.message);
      throw error;
    }
  }

  #bodyOf(watched: Watched, path: string): ReadableStream<Uint8Array> {
    const { signal, ...ending } = controllerOf(() => (this.#count -= 1));
    const endMs = this.#clock.now() + this.#streamMs;
    const encoder = new TextEncoder();
    let waitMs = 0;
    this.#count += 1;
    return new ReadableStream(
      {
        pull: async (controller) => {
          await this.#clock.sleep(waitMs, signal);
          if (signal.aborted) return;
          if (this.#clock.now() >= endMs) {
            ending.end();
            return controller.close();
          }
          const looked = await watched
            .look()
            .then(eventOf)
            .catch((error: unknown) => this.#troubleOf(error, path));
          waitMs = looked.isTrouble ? Math.max(troubleMs, watched.everyMs) : watched.everyMs;
          if (!signal.aborted) controller.enqueue(encoder.encode(looked.event));
        },
        cancel: ending.end,
      },
      { highWaterMark: 0 },
    );
  }

  #troubleOf(error: unknown, path: string) {
    const isKnown = error instanceof Failure;
    if (!isKnown) this.#onFault(error, path);
    const words = isKnown
      ? error.message
      : 'A mistake of this console: the terminal in which it runs has more.';
    return { event: framed({ trouble: masked(words) }), isTrouble: true };
  }
}

function controllerOf(onEnd: () => void) {
  const controller = new AbortController();
  const end = (): void => {
    if (controller.signal.aborted) return;
    controller.abort();
    onEnd();
  };
  return { signal: controller.signal, end };
}

async function eventOf({ parts, words, nowMs }: LiveLook) {
  const made = await Promise.all(
    parts.map(async ({ markup, ...part }) => ({ ...part, html: masked(String(await markup)) })),
  );
  return { event: framed({ words, parts: made }, nowMs), isTrouble: false };
}

/** JSON has no line breaks of its own. */
const framed = (data: object, id?: number): string =>
  `retry: ${retryMs}\n${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(data)}\n\n`;

const refusal = (status: number, words: string): Response =>
  new Response(`${words}\n`, { status, headers: { 'content-type': 'text/plain; charset=utf-8' } });

/** A watch that costs something ends by itself, after a night. */
export const paidHours = 12;

/** A stream cannot be told from a script that fetches it, so its address has what the pages of this session alone know. */
const watchKeyOf = ({ formToken }: Watcher): string =>
  createHash('sha256').update(`watch ${formToken}`).digest('hex');

export const refusedWatch = ({ identity, query }: Pick<Visit, 'identity' | 'query'>): Response | undefined =>
  isSame(query('watch'), watchKeyOf(identity))
    ? undefined
    : refusal(403, 'only a page of this session is watched');

interface LiveBarOf {
  identity: Watcher;
  /** Of the stream, with a query. */
  address: string;
  afterMs: number;
  isOn: boolean;
  /** So many rows stay. */
  rowsMax?: number;
  hoursMax: number | false;
  words: Content;
}

/** What live.js begins with, and says how the watch is. Without script it has no button. */
export const liveBar = ({
  identity,
  address,
  afterMs,
  isOn,
  rowsMax = 0,
  hoursMax,
  words,
}: LiveBarOf): Markup =>
  html`<div
    class="live"
    data-live="${address}&watch=${watchKeyOf(identity)}"
    data-after="${afterMs}"
    data-rows="${rowsMax}"
    ${isOn && html`data-on`}
    ${hoursMax !== false && html`data-hours="${hoursMax}"`}
  >
    <button type="button" hidden>Watch live</button> <span role="status"></span>
    <span class="soft" data-words>${words}</span>
  </div>`;
