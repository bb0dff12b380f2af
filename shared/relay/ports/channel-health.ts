/**
 * The health of candidates, shared by all environments through one item of the table `runtime`. A candidate is a
 * channel with one of its secrets; cooldowns are per candidate, so one exhausted secret does not stop a channel.
 */

export interface CandidateHealth {
  /** Epoch milliseconds: cooldown until then; after it one probe may try. Absent: no cooldown. */
  coolUntilMs?: number | undefined;
  /** Epoch milliseconds: a probe of any environment may be under way until then. */
  probeUntilMs?: number | undefined;
  /** Failures in a row. */
  failures: number;
}

export interface ChannelHealth {
  /** As last read, and as changed here since: no store call. Undefined: healthy. */
  of(candidateId: string): CandidateHealth | undefined;
  /** Starts a cooldown until then; a longer cooldown is not shortened. */
  cool(candidateId: string, untilMs: number): Promise<void>;
  /** Counts a failure; resolves with the failures in a row. */
  countFailure(candidateId: string): Promise<number>;
  /** Clears the candidate's failures, unless a cooldown runs: the success may be older than the cooldown. */
  recover(candidateId: string, nowMs: number): Promise<void>;
  /** Takes the one probe of a candidate whose cooldown is over; false: another environment has it. */
  claimProbe(candidateId: string, nowMs: number, untilMs: number): Promise<boolean>;
}
