import type { CandidateHealth, ChannelHealth } from '../../shared/relay/ports/stores/channel-health.ts';

/** Channel health in memory: passes the same contract suite as the DynamoDB adapter. */
export class MemoryHealth implements ChannelHealth {
  readonly known = new Map<string, CandidateHealth>();
  /** Writes so far. */
  readonly writes: string[] = [];

  of(id: string): CandidateHealth | undefined {
    return this.known.get(id);
  }

  async cool(id: string, untilMs: number): Promise<void> {
    this.writes.push(`cool ${id}`);
    const before = this.known.get(id)?.coolUntilMs ?? 0;
    if (before < untilMs) this.known.set(id, { coolUntilMs: untilMs, failures: 0 });
  }

  async countFailure(id: string): Promise<number> {
    this.writes.push(`failure ${id}`);
    const before = this.known.get(id) ?? { failures: 0 };
    this.known.set(id, { ...before, failures: before.failures + 1 });
    return before.failures + 1;
  }

  async recover(id: string, nowMs: number): Promise<void> {
    this.writes.push(`recover ${id}`);
    if ((this.known.get(id)?.coolUntilMs ?? 0) <= nowMs) this.known.delete(id);
  }

  async claimProbe(id: string, nowMs: number, untilMs: number): Promise<boolean> {
    this.writes.push(`probe ${id}`);
    const before = this.known.get(id);
    if (!before?.coolUntilMs || before.coolUntilMs > nowMs || (before.probeUntilMs ?? 0) > nowMs)
      return false;
    this.known.set(id, { ...before, probeUntilMs: untilMs });
    return true;
  }
}
