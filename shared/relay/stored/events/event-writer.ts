/**
 * Keeps the events of a background response while it runs, in batches, for whoever follows it. Must never fail the run,
 * nor write an event once the run's claim has passed: by then readers may have counted them.
 */
import { createdFrame, framesOf, isLastFrame } from '../../../endpoints/responses/stored/stored-events.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventBatch, EventLog } from '../../ports/stored/event-log.ts';
import { StoreBusy, StoreUnavailable } from '../../ports/stores/store-errors.ts';
import type { Log } from '../../ports/telemetry.ts';
import { endMark, eventsKept } from '../run-end.ts';

/** How long an event waits for others. */
const batchMs = 500;
/** A batch is closed at this length (UTF-16 code units). */
const batchLength = 64 * 1024;
/** How long the store is tried once the run has nothing more to write. */
const finishMs = 5_000;

export interface WrittenEvents {
  account: string;
  id: string;
  /** The response as it was accepted: the object that the claim returned. */
  accepted: JsonRecord;
  /** Unix seconds: the latest end of the run, and how long events are kept after it. */
  expires: number;
  /** Whether the run's claim still holds, by its own clock. */
  mayWrite: () => boolean;
}

export class EventWriter {
  readonly #ports: { clock: Clock; log: Log; events: EventLog };
  readonly #of: WrittenEvents;
  /** The frames that wait, and the number of the first of them. */
  #waiting: string[] = [];
  #length = 0;
  #from = 0;
  #writing: Promise<void> | undefined;
  #hurry = new AbortController();
  #triedUntilMs = Infinity;
  #over = false;
  /** The number of events that the store has for certain. */
  #kept = 0;
  /** The last write got no answer. */
  #unanswered = false;
  #broken = false;

  constructor(ports: { clock: Clock; log: Log; events: EventLog }, of: WrittenEvents) {
    this.#ports = ports;
    this.#of = of;
  }

  /** A text of the answer, as its renderer made it. The last event is left out: readers make it of the response. */
  wrote(text: string): void {
    for (const frame of framesOf(text))
      if (!isLastFrame(frame)) this.#add(this.#isFirst ? createdFrame(this.#of.accepted) : frame);
  }

  /**
   * Writes what waits. The number of events, the last included, as the head is to say it. From then on nothing is kept.
   * Never rejects.
   */
  async finished(): Promise<number> {
    if (this.#isFirst) this.#add(createdFrame(this.#of.accepted));
    this.#add(endMark);
    this.#over = true;
    this.#triedUntilMs = this.#ports.clock.now() + finishMs;
    this.#hurry.abort('over');
    await this.#writing;
    return (await this.#counted()) + 1;
  }

  get #isFirst(): boolean {
    return this.#from + this.#waiting.length === 0;
  }

  #add(frame: string): void {
    if (this.#over || this.#broken) return;
    this.#waiting.push(frame);
    this.#length += frame.length;
    if (this.#length >= batchLength) this.#hurry.abort('full');
    this.#writing ??= this.#write();
  }

  async #write(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#broken) {
      await this.#ports.clock.sleep(batchMs, this.#hurry.signal);
      if (!this.#over) this.#hurry = new AbortController();
      await this.#keep(this.#taken());
    }
    this.#writing = undefined;
  }

  /** The next batch. What was tried once is tried again as it was, so that no reader sees two of one event. */
  #taken(): EventBatch {
    let length = 0;
    const end = this.#waiting.findIndex((frame) => (length += frame.length) >= batchLength);
    const frames = this.#waiting.splice(0, end < 0 ? this.#waiting.length : end + 1);
    for (const frame of frames) this.#length -= frame.length;
    if (this.#length >= batchLength) this.#hurry.abort('full');
    const from = this.#from;
    this.#from += frames.length;
    return { from, frames };
  }

  async #keep(batch: EventBatch): Promise<void> {
    const { clock, log, events } = this.#ports;
    const { account, id, expires, mayWrite } = this.#of;
    for (;;) {
      try {
        // A run that stood still may renew its claim yet, if no reader was faster.
        if (!mayWrite()) throw new StoreBusy('no claim');
        await events.append({ account, id }, batch, expires);
        this.#kept = batch.from + batch.frames.filter((frame) => frame !== endMark).length;
        this.#unanswered = false;
        return;
      } catch (error) {
        if (error instanceof StoreUnavailable) this.#unanswered = true;
        else if (!(error instanceof StoreBusy)) {
          log.fault(id, error);
          return this.#break();
        }
      }
      if (clock.now() >= this.#triedUntilMs) return this.#break();
      await clock.sleep(batchMs);
    }
  }

  #break(): void {
    this.#broken = true;
    this.#waiting = [];
  }

  /** An event that the store took without an answer may have been seen, so it counts. */
  async #counted(): Promise<number> {
    const certain = Math.max(this.#kept, 1);
    if (!this.#unanswered) return certain;
    return eventsKept(this.#ports.events, this.#of).catch(() => certain);
  }
}
