/**
 * The way of an answer to its client: heartbeats while there is nothing to say, and how long a client that reads slowly or
 * not at all is waited for. Must never let a stuck client have what looks like a whole answer.
 */
import { idleMs, type Renderer } from '../../endpoints/renderer.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/telemetry.ts';
import type { ResponseQueue } from './response-queue.ts';

/** How long a client may take nothing. */
const stuckMs = 30_000;

/** Whose answer it is, and when it must end. */
export interface DeliveredCall {
  identity: Pick<ChatCall['identity'], 'requestId'>;
  key: Pick<ChatCall['key'], 'account'>;
  signal: AbortSignal;
}

export class Delivery {
  readonly #queue: ResponseQueue;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #call: DeliveredCall;
  /** When the host's connection has closed. Undefined: the host does not say. */
  #closed: Promise<void> | undefined;

  constructor({ clock, log }: { clock: Clock; log: Log }, queue: ResponseQueue, call: DeliveredCall) {
    this.#queue = queue;
    this.#clock = clock;
    this.#log = log;
    this.#call = call;
  }

  /** The host will say when its connection has closed. */
  closes(closed: Promise<void>): void {
    this.#closed = closed;
  }

  /** Holds the upstream back while the client is slow. The upstream is read to its end even after a cut. */
  async room(): Promise<void> {
    const { signal } = this.#call;
    while (this.#queue.full)
      if (!(await this.#within(stuckMs, this.#queue.taken(), signal)))
        this.cut(signal.aborted ? 'deadline' : 'stuck');
  }

  /**
   * Resolves when the client has the rest or cannot have it, at the latest then. Nothing but the invocation, and of a long
   * answer its reservation, waits for a slow client.
   */
  async handOver(untilMs: number): Promise<void> {
    const waitMs = (): number => Math.min(stuckMs, untilMs - this.#clock.now());
    while (!this.#queue.over) {
      const ms = waitMs();
      if (ms > 0 && (await this.#within(ms, this.#queue.taken()))) continue;
      if (ms < stuckMs) return;
      this.cut('stuck');
    }
    const closed = this.#closed;
    if (!closed || this.#queue.clientLeft) return;
    const ms = waitMs();
    if (ms > 0 && (await this.#within(ms, closed))) this.#closed = undefined;
    else if (ms === stuckMs) this.cut('stuck');
  }

  /** Whether it happens before the time is up or the signal aborts. */
  async #within(waitMs: number, event: Promise<void>, until?: AbortSignal): Promise<boolean> {
    const stop = new AbortController();
    const signal = until ? AbortSignal.any([stop.signal, until]) : stop.signal;
    const happened = event.then(() => true);
    const waited = this.#clock.sleep(waitMs, signal).then(() => false);
    const happens = await Promise.race([happened, waited]);
    stop.abort('over');
    return happens;
  }

  /** Without effect when the client has all, as far as the host says. */
  cut(why: 'stuck' | 'deadline' | 'unrendered' | 'replaced'): void {
    if (!this.#queue.over) this.#queue.cut();
    else if (this.#closed && !this.#queue.clientLeft) this.#queue.abandon();
    else return;
    this.#closed = undefined;
    const { identity, key } = this.#call;
    this.#log.event('answer_cut', { request_id: identity.requestId, account: key.account, why });
  }
}

/**
 * Commits a silent answer with a heartbeat after the renderer's `commitAfterMs`, then sends one after each
 * `idleMs` of silence. Runs until `stop` aborts.
 */
export class Heartbeat {
  readonly #clock: Clock;
  #lastWriteMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastWriteMs = clock.now();
  }

  /** Restarts the measurement of silence, because text was written. */
  wrote(): void {
    this.#lastWriteMs = this.#clock.now();
  }

  /** @param push what sends a text */
  async run(
    { queue, push }: { queue: ResponseQueue; push: (text: string) => void },
    renderer: Renderer,
    stop: AbortSignal,
  ): Promise<void> {
    const commitAtMs = this.#lastWriteMs + renderer.commitAfterMs;
    while (!stop.aborted) {
      const dueMs = queue.committed ? this.#lastWriteMs + idleMs : commitAtMs;
      const waitMs = dueMs - this.#clock.now();
      if (waitMs <= 0) {
        push(renderer.idle());
        this.wrote();
      } else {
        // At most `idleMs`: once text commits the answer during the sleep, the next heartbeat is due after
        // `idleMs`.
        await this.#clock.sleep(Math.min(waitMs, idleMs), stop);
      }
    }
  }
}
