/** The events of one response in order, as they come, for one reader. Must skip none and show none twice. */
import { createdFrame, lastFrame } from '../../../endpoints/responses/stored/stored-events.ts';
import { shownResponse } from '../../../endpoints/responses/stored/shown-response.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventBatch } from '../../ports/stored/event-log.ts';
import type { StoredResponse } from '../../ports/stored/stored-response.ts';
import type { StoredReads } from '../stored-reads.ts';
import type { StoredPorts } from '../../ports/stored/stored-ports.ts';
import { endMark, eventsAtEnd, foundEnd } from '../run-end.ts';

/** How often the head is read while events come or are awaited. It also says that the response was cancelled or deleted. */
const headMs = 2_000;
/** More may be there at once when a read returned as much (UTF-16 code units). */
const muchLength = 256 * 1024;

/** What a reader was shown can be shown to nobody any more: deleted, expired, or older than events are kept. */
export class EventsGone extends Error {
  override readonly name = 'EventsGone';
}

export interface Followed {
  account: string;
  id: string;
  /** The number of the last event that the reader has. -1: none. */
  after: number;
  /** Of the head that was read. */
  until: number;
  reads: StoredReads;
}

interface FollowerPorts {
  clock: Clock;
  stored: Pick<StoredPorts, 'events' | 'responses' | 'runs'>;
}

export interface Polled {
  frames: string[];
  /** Nothing follows these. */
  over: boolean;
  /** The next poll need not wait. */
  more: boolean;
}

export class Follower {
  readonly #ports: FollowerPorts;
  readonly #of: { account: string; id: string };
  readonly #reads: StoredReads;
  /** The number of the last event that is ready or was handed on. */
  #position: number;
  #ready: string[] = [];
  /** The number of events, the last included. Undefined: the response has not ended, as far as was seen. */
  #end: number | undefined;
  /** How long the run holds its claim, as far as is known (Unix seconds). */
  #until: number;
  #closing = false;
  #headAtMs = 0;

  constructor(ports: FollowerPorts, { account, id, after, until, reads }: Followed) {
    this.#ports = ports;
    this.#reads = reads;
    this.#of = { account, id };
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
      if (this.#isDue()) await this.#look();
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

  #isDue(): boolean {
    return this.#closing || this.#position <= 0 || this.#ports.clock.now() >= this.#headAtMs;
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
    const found = (await this.#ports.stored.responses.read(account, [id], this.#reads.admit)).get(id);
    // Only the frame that is made of it stays.
    this.#reads.release();
    if (!found) throw new EventsGone();
    return found;
  }
}
