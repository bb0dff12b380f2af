/**
 * Streams the events of a background response, from one on, until its end: to the caller who created it and to whoever
 * comes back. All readers get the same events, each once, however often they were cut off. Must never show what is another
 * account's, nor end as if an answer were whole that is not.
 */
import { createdFrame, lastFrame, shownResponse } from '../../endpoints/responses/stored-response.ts';
import { idleMs, streamedAnswer } from '../../endpoints/endpoint.ts';
import { commentFrame } from '../../stream/sse.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { Delivery, ResponseQueue } from '../answer/delivery.ts';
import type { ChatCall } from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { RelayResponse } from '../http/http.ts';
import { Refusal } from '../http/refusal.ts';
import { Backoff } from '../money/backoff.ts';
import type { EventBatch, ResponseHead, StoredPorts, StoredResponse } from '../ports/stored.ts';
import { StoreBusy, StoreUnavailable } from '../ports/store-errors.ts';
import {
  endMark,
  eventsAtEnd,
  foundEnd,
  noSuchResponse,
  StoredReader,
  type AskedStored,
  type ReadPorts,
} from './reads.ts';

/** The time between two looks at the store: what a minute of them costs is in docs/cost.md. */
const pollMs = 500;
/** How long a store that throttles is asked again: before anything is sent, and while events are. */
const firstMsMax = 2_000;
const refusedMsMax = 30_000;
/** Lambda kills at its time-out without notice: the connection is broken before, and the client comes back. */
const hostReserveMs = 5_000;
/** How much text may wait for a slow client (UTF-16 code units). */
const waitingLengthMax = 1024 * 1024;

export type FollowPorts = ReadPorts & Pick<ChatPorts, 'log'>;

/**
 * Of a POST all events; of a GET those after its `starting_after`. Throws, before anything is sent, a Refusal or an
 * InvalidRequest or StoreUnavailable.
 */
export async function follow(
  ports: FollowPorts,
  { key, snapshot }: Pick<ChatCall, 'key' | 'snapshot'>,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const { account } = key;
  const after = request.method === 'POST' ? -1 : startingAfter(request.query.get('starting_after'));
  const { eventMinutes } = snapshot.settings.store;
  const { hasAll, until } = await new Backoff(ports, firstMsMax).until(async () => {
    const head = (await ports.stored.responses.heads(account, [id])).get(id);
    if (!head) throw noSuchResponse(id);
    return checkEvents(ports, head, { after, eventMinutes });
  });
  const queue = new ResponseQueue(waitingLengthMax);
  const signal = request.hostEnds ?? new AbortController().signal;
  const delivery = new Delivery(ports, queue, { identity: { requestId: request.id }, key, signal });
  const follower = new Follower(ports, new StoredReader(ports, account, request), { id, after, until });
  const untilMs = request.hostDeadlineMs - hostReserveMs;
  if (hasAll) queue.end();
  return {
    status: 200,
    headers: {
      'content-type': streamedAnswer.contentType,
      'cache-control': 'no-cache, no-transform',
      'x-request-id': request.id,
    },
    body: queue,
    endsHere: () => queue.endsHere,
    cut: queue.wasCut,
    closes: (closed) => delivery.closes(closed),
    done: hasAll
      ? Promise.resolve()
      : handEvents(ports, { queue, delivery, follower, untilMs, signal, requestId: request.id }),
  };
}

interface Handed {
  queue: ResponseQueue;
  delivery: Delivery;
  follower: Follower;
  untilMs: number;
  signal: AbortSignal;
  requestId: string;
}

/** Never rejects. */
async function handEvents({ clock, log }: FollowPorts, handed: Handed): Promise<void> {
  const { queue, delivery, follower, untilMs, signal, requestId } = handed;
  let saidMs = -Infinity;
  let reachedMs = clock.now();
  const push = (text: string): void => {
    queue.push(text);
    saidMs = clock.now();
  };
  while (!queue.clientLeft) {
    try {
      const { frames, over, more } = await follower.poll();
      reachedMs = clock.now();
      for (const frame of frames) {
        await delivery.room();
        push(frame);
      }
      if (over) break;
      if (more) continue;
    } catch (error) {
      // A refusal is for want of room, which comes back.
      const mayPass = [StoreUnavailable, StoreBusy, Refusal].some((kind) => error instanceof kind);
      if (!mayPass || clock.now() - reachedMs > refusedMsMax) {
        if (!mayPass && !(error instanceof EventsGone)) log.fault(requestId, error);
        delivery.cut('unrendered');
        break;
      }
    }
    if (clock.now() >= untilMs || signal.aborted) {
      delivery.cut('deadline');
      break;
    }
    if (clock.now() - saidMs >= idleMs) push(commentFrame('ping'));
    await clock.sleep(pollMs, signal);
  }
  queue.end();
  await delivery.handOver(untilMs);
  delivery.cut('deadline');
}

/** Whether the reader has all events already, and how long the run holds its claim. Throws an InvalidRequest where the rest cannot be sent. */
async function checkEvents(
  { clock, stored }: FollowPorts,
  read: ResponseHead,
  { after, eventMinutes }: { after: number; eventMinutes: number },
): Promise<{ hasAll: boolean; until: number }> {
  const nowSeconds = Math.floor(clock.now() / 1000);
  const head = await foundEnd(stored, read, nowSeconds);
  const { background } = head;
  if (!background?.streamed)
    throw new InvalidRequest(
      'invalid_value',
      'stream',
      "'stream' needs a response that was created with background: true and stream: true. Retrieve this one without it.",
    );
  const end = await eventsAtEnd(stored.events, head, nowSeconds);
  const keptUntil = background.eventsUntil ?? background.until + eventMinutes * 60;
  if (end !== undefined && nowSeconds >= keptUntil) throw noLongerKept(eventMinutes);
  if (end === undefined ? !(await isKept(stored, head, after)) : after >= end)
    throw new InvalidRequest(
      'invalid_value',
      'starting_after',
      `'starting_after' is ${after}, which is beyond the last event of the response so far. Send the sequence_number of the last event that came.`,
    );
  const { until } = background;
  if (end === undefined) return { hasAll: false, until };
  if (after < end - 2 && (await stored.events.after(head, after)).length === 0 && end > 2)
    throw noLongerKept(eventMinutes);
  return { hasAll: after === end - 1, until };
}

/** Whether an event is kept. The first of all is always there. */
async function isKept({ events }: StoredPorts, head: ResponseHead, number: number): Promise<boolean> {
  if (number <= 0) return true;
  const batches = await events.after(head, number - 1);
  return batches.some(({ from, frames }) => (frames[number - from] ?? endMark) !== endMark);
}

const noLongerKept = (eventMinutes: number): InvalidRequest =>
  new InvalidRequest(
    'invalid_value',
    'stream',
    `The events of this response are no longer kept: they are for ${eventMinutes} minutes after its end. Retrieve it without 'stream'.`,
  );

function startingAfter(text: string | null): number {
  if (text === null) return -1;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new InvalidRequest(
    'invalid_value',
    'starting_after',
    "'starting_after' must be the sequence_number of an event.",
  );
}

/** How often the head is read while events come or are awaited. It also says that the response was cancelled or deleted. */
const headMs = 2_000;
/** More may be there at once when a read returned as much (UTF-16 code units). */
const muchLength = 256 * 1024;

/** What a reader was shown can be shown to nobody any more: deleted, expired, or older than events are kept. */
class EventsGone extends Error {
  override readonly name = 'EventsGone';
}

interface Polled {
  frames: string[];
  /** Nothing follows these. */
  over: boolean;
  /** The next poll need not wait. */
  more: boolean;
}

/** The events of one response in order, as they come, for one reader. Must skip none and show none twice. */
export class Follower {
  readonly #ports: Pick<FollowPorts, 'clock' | 'stored'>;
  readonly #reader: StoredReader;
  readonly #of: { account: string; id: string };
  /** The number of the last event that is ready or was handed on. -1: none. */
  #position: number;
  #ready: string[] = [];
  /** The number of events, the last included. Undefined: the response has not ended, as far as was seen. */
  #end: number | undefined;
  /** How long the run holds its claim, as far as is known (Unix seconds). */
  #until: number;
  #closing = false;
  #headAtMs = 0;

  constructor(
    ports: Pick<FollowPorts, 'clock' | 'stored'>,
    reader: StoredReader,
    { id, after, until }: { id: string; after: number; until: number },
  ) {
    this.#ports = ports;
    this.#reader = reader;
    this.#of = { account: reader.account, id };
    this.#position = after;
    this.#until = until;
  }

  /** Throws EventsGone, StoreUnavailable and StoreBusy. After the last two it may be called again, and nothing is lost. */
  async poll(): Promise<Polled> {
    const { events } = this.#ports.stored;
    if (this.#isStale()) await this.#look();
    // Read before the events: where there are none, it is as it was accepted.
    const first = this.#position < 0 ? await this.#response() : undefined;
    const batches = await events.after(this.#of, this.#position);
    if (this.#isStale()) return this.#polled({});
    this.#take(batches);
    if (first && this.#position < 0) {
      this.#ready.push(createdFrame(first.body.response));
      this.#position = 0;
    }
    if (this.#end === undefined) {
      if (this.#closing || this.#position <= 0 || this.#ports.clock.now() >= this.#headAtMs)
        await this.#look();
      return this.#polled({ more: this.#end !== undefined });
    }
    if (this.#position < this.#end - 2) {
      if (this.#ready.length === 0) throw new EventsGone();
      return this.#polled({ more: true });
    }
    const { head, body } = await this.#response();
    const number = Math.max(this.#end - 1, this.#position + 1);
    this.#ready.push(lastFrame(shownResponse(head.status, body.response), number));
    return this.#polled({ over: true });
  }

  #polled({ over = false, more = false }: Partial<Omit<Polled, 'frames'>>): Polled {
    const frames = this.#ready;
    this.#ready = [];
    const length = frames.reduce((sum, frame) => sum + frame.length, 0);
    return { frames, over, more: more || length >= muchLength };
  }

  /** Those that the reader has not seen, and that belong to the response as it ended. */
  #take(batches: EventBatch[]): void {
    const limit = this.#end === undefined ? Infinity : this.#end - 1;
    for (const { from, frames: kept } of batches)
      for (const [i, frame] of kept.entries()) {
        if (frame === endMark) this.#closing = true;
        else if (from + i === this.#position + 1 && from + i < limit) {
          this.#ready.push(frame);
          this.#position += 1;
        }
      }
  }

  /**
   * The run has lost its claim, as far as is known. Its events are shown once they are counted: one that comes too late
   * would be seen by this reader alone.
   */
  #isStale(): boolean {
    return this.#end === undefined && Math.floor(this.#ports.clock.now() / 1000) > this.#until;
  }

  async #look(): Promise<void> {
    const { clock, stored } = this.#ports;
    const nowMs = clock.now();
    const { account, id } = this.#of;
    const head = (await stored.responses.heads(account, [id])).get(id);
    if (!head) throw new EventsGone();
    this.#headAtMs = nowMs + headMs;
    const nowSeconds = Math.floor(nowMs / 1000);
    const found = await foundEnd(stored, head, nowSeconds);
    this.#until = found.background?.until ?? this.#until;
    this.#end = await eventsAtEnd(stored.events, found, nowSeconds);
  }

  async #response(): Promise<StoredResponse> {
    const { account, id } = this.#of;
    const found = (await this.#ports.stored.responses.read(account, [id], this.#reader.admit)).get(id);
    // Only the frame that is made of it stays.
    this.#reader.release();
    if (!found) throw new EventsGone();
    return found;
  }
}
