/**
 * The health of candidates, shared by all environments through one item of the table `runtime`. A candidate is a
 * channel with one of its secrets; cooldowns are per candidate, so one exhausted secret does not stop a channel.
 */

export interface CandidateHealth {
  /** When the cooldown ends, in epoch milliseconds; one probe may run after it. Absent: no cooldown. */
  coolUntilMs?: number | undefined;
  /** Until when a probe of any environment may be running, in epoch milliseconds. */
  probeUntilMs?: number | undefined;
  /** Consecutive failures. */
  failures: number;
}

export interface ChannelHealth {
  /**
   * The health as last read, with later changes by this environment. Makes no store call. Undefined: healthy.
   */
  of(candidateId: string): CandidateHealth | undefined;
  /** Starts a cooldown until `untilMs`. Does not shorten a longer cooldown. */
  cool(candidateId: string, untilMs: number): Promise<void>;
  /** Counts a failure and returns the number of consecutive failures. */
  countFailure(candidateId: string): Promise<number>;
  /**
   * Clears the candidate's health unless a cooldown runs, because the success may be older than the cooldown.
   */
  recover(candidateId: string, nowMs: number): Promise<void>;
  /** Claims the probe of a candidate whose cooldown is over. False: another environment has it. */
  claimProbe(candidateId: string, nowMs: number, untilMs: number): Promise<boolean>;
}
