/**
 * The writes of one environment to candidates' health: one of a candidate at a time, since the next one mostly finds that
 * it has nothing to say. Loaded at the first.
 */
import type { ChatPorts } from '../call/chat-ports.ts';
import { next, type HealthEvent } from './health-states.ts';

/** Failures counted and forgotten, as with a channel that fails half of its calls, are written this often. */
const countsMax = 6;
const countsWithinMs = 10_000;
const candidatesMax = 1_000;

interface Written {
  /** Never rejects. */
  pending: Promise<void>;
  /** How often the store failed. */
  faults: number;
  counts: number;
  countsSinceMs: number;
}

export class HealthChanges {
  readonly #ports: Pick<ChatPorts, 'health' | 'clock'>;
  readonly #written = new Map<number, Written>();

  constructor(ports: Pick<ChatPorts, 'health' | 'clock'>) {
    this.#ports = ports;
  }

  /** False: nothing was written. When the store fails, changes that wait for that one are dropped. */
  async apply(key: number, event: HealthEvent): Promise<boolean> {
    if (this.#written.size >= candidatesMax) this.#written.clear();
    const written = this.#written.get(key) ?? newWritten();
    this.#written.set(key, written);
    const { faults } = written;
    const change = written.pending.then(() => faults === written.faults && this.#write(key, event, written));
    written.pending = change.then(
      () => {},
      () => {
        written.faults += 1;
      },
    );
    return change;
  }

  async #write(key: number, event: HealthEvent, written: Written): Promise<boolean> {
    const { health, clock } = this.#ports;
    return health.change(key, (before) => {
      const after = next(before, event, clock.now());
      if (after === before) return before;
      const counts = (after ?? before)?.kind === 'failures';
      return counts && !mayCount(written, clock.now()) ? before : after;
    });
  }
}

const newWritten = (): Written => ({
  pending: Promise.resolve(),
  faults: 0,
  counts: 0,
  countsSinceMs: -Infinity,
});

/** Counts the write. */
function mayCount(written: Written, nowMs: number): boolean {
  if (nowMs - written.countsSinceMs >= countsWithinMs) {
    written.counts = 0;
    written.countsSinceMs = nowMs;
  }
  written.counts += 1;
  return written.counts <= countsMax;
}
