/**
 * How channels are doing, shared by all environments through one item of the table `runtime`. A candidate is a
 * channel with one of its secrets; what fails is cooled as such, so one exhausted secret does not silence a channel.
 */
export interface CandidateHealth {
  /** Epoch milliseconds: cooling until then; after it one probe may try. Absent: not cooling. */
  coolUntilMs?: number | undefined;
  /** Epoch milliseconds: somebody's probe is under way until then. */
  probeUntilMs?: number | undefined;
  /** Failures in a row. */
  failures: number;
}

export interface ChannelHealth {
  /** As last read, and as changed here since: no store call. Undefined: nothing is known against the candidate. */
  of(candidateId: string): CandidateHealth | undefined;
  /** Cools a candidate until then; a longer cooling is not shortened. */
  cool(candidateId: string, untilMs: number): Promise<void>;
  /** Counts a failure; resolves with the failures in a row. */
  countFailure(candidateId: string): Promise<number>;
  /** Forgets what is known against a candidate, unless it is cooling: an older success says nothing of that. */
  recover(candidateId: string, nowMs: number): Promise<void>;
  /** Takes the one probe of a candidate whose cooling is over; false: somebody else has it. */
  claimProbe(candidateId: string, nowMs: number, untilMs: number): Promise<boolean>;
}
