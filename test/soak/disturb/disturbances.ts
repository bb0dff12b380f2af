/** Shared by all fault injectors: a record of the faults, and a way to stop. */
import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom } from '../../simulation/seeded-random.ts';
import type { Disturbance } from '../checker/observations.ts';
import type { StackFault } from '../plan/fault-kinds.ts';

export class Disturbances {
  readonly list: Disturbance[] = [];
  readonly random: SeededRandom;
  readonly #count: (kind: StackFault) => void;
  readonly #end = new AbortController();

  constructor(seed: number, count: (kind: StackFault) => void) {
    this.random = new SeededRandom(seed + 2);
    this.#count = count;
  }

  get ended(): boolean {
    return this.#end.signal.aborted;
  }

  end(): void {
    this.#end.abort();
  }

  /** Resolves early when the soak ends. */
  async pause(milliseconds: number): Promise<void> {
    await sleep(milliseconds, undefined, { signal: this.#end.signal }).catch(() => {});
  }

  /** It lasts until `over` is called. */
  begin(kind: StackFault, target?: string): Disturbance {
    const disturbance: Disturbance = {
      kind,
      fromMs: Date.now(),
      untilMs: Infinity,
      ...(target && { target }),
    };
    this.list.push(disturbance);
    return disturbance;
  }

  over(disturbance: Disturbance): void {
    disturbance.untilMs = Date.now();
    this.#count(disturbance.kind as StackFault);
  }
}
