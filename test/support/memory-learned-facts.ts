import { subjectOf, type LearnedFact, type ServedModel } from '../../shared/upstreams/quirks.ts';
import { factsFreshMs, type LearnedFacts } from '../../shared/relay/ports/runtime-stores.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';

const nameOf = ({ channel, model }: ServedModel): string => `${channel}|${model}`;

/** Facts in memory; they pass the same contract as the DynamoDB adapter. */
export class MemoryLearnedFacts implements LearnedFacts {
  readonly known = new Map<string, LearnedFact>();
  /** Facts as they were written. */
  readonly written: LearnedFact[] = [];
  /** The time of the last read; a test may set it to simulate a fresh read. */
  readAtMs = -Infinity;
  readonly #clock: Clock;
  readonly #settled = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(served: ServedModel): readonly LearnedFact[] {
    const nowMs = this.#clock.now();
    return [...this.known.values()].filter((fact) => nameOf(fact) === nameOf(served) && fact.untilMs > nowMs);
  }

  async learn(fact: LearnedFact): Promise<void> {
    this.written.push(fact);
    const name = subjectOf(fact);
    if ((this.known.get(name)?.untilMs ?? 0) < fact.untilMs) this.known.set(name, fact);
  }

  isSettled(served: ServedModel, sinceMs: number): boolean {
    const seenAtMs = this.#settled.get(nameOf(served));
    if (this.readAtMs >= sinceMs || seenAtMs === undefined) return this.readAtMs >= sinceMs;
    return Math.max(this.readAtMs, seenAtMs) >= sinceMs - factsFreshMs;
  }

  settle(served: ServedModel): void {
    this.#settled.set(nameOf(served), this.#clock.now());
  }

  /** A new environment: it knows the written facts, but has settled nothing. */
  inNewEnvironment(): MemoryLearnedFacts {
    const fresh = new MemoryLearnedFacts(this.#clock);
    for (const [name, fact] of this.known) fresh.known.set(name, fact);
    return fresh;
  }
}
