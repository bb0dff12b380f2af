import { StateTooLarge, type TurnKey, type TurnStateStore } from '../../shared/relay/ports/runtime-stores.ts';
import type { Clock } from '../../shared/relay/ports/host.ts';

const bytesMax = 1_200_000;

/** The turn state store in memory; it passes the same contract as the DynamoDB adapter. */
export class MemoryTurnStateStore implements TurnStateStore {
  readonly kept = new Map<string, { sealed: string; expiresAt: number }>();
  /** The number of calls so far. */
  puts = 0;
  readonly reads: string[][] = [];
  /** Runs before each call: may wait or reject. */
  before: (() => Promise<void>) | undefined;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async put({ account, callId }: TurnKey, sealed: string, expiresAt: number): Promise<void> {
    this.puts += 1;
    if (sealed.length > bytesMax) throw new StateTooLarge();
    await this.before?.();
    this.kept.set(`${account}\n${callId}`, { sealed, expiresAt });
  }

  async read(account: string, callIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    this.reads.push([...callIds]);
    await this.before?.();
    const found = new Map<string, string>();
    for (const callId of callIds) {
      const kept = this.kept.get(`${account}\n${callId}`);
      if (kept && kept.expiresAt > this.#clock.now() / 1000) found.set(callId, kept.sealed);
    }
    return found;
  }
}
