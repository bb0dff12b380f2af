/**
 * The health of candidates, shared by all environments through one small item of the table `runtime`. A candidate without
 * an entry is healthy. What the entries mean, and how they change, stands in `health/health-states.ts`.
 */

/** Why a candidate rests: it said so, for one model; it refused or cannot charge our account, or it fails. */
export type RestKind = 'rate_limit' | 'credentials' | 'failing';

/** The candidate comes after all others until its time is over; then one call probes it. Times in epoch milliseconds. */
export interface Rest {
  readonly kind: RestKind;
  readonly untilMs: number;
  /** When the upstream itself said that it may be asked again. Absent: it said nothing. May be later than `untilMs`. */
  readonly statedUntilMs?: number | undefined;
  /** Until when a probe of any environment may be running. */
  readonly probeUntilMs?: number | undefined;
  /** A hash of the account whose probe failed: the next one is of another account. Absent: none failed. */
  readonly failedBy?: string | undefined;
}

/** Failures in a row that have not led to a rest. */
export interface FailureRun {
  readonly kind: 'failures';
  readonly count: number;
  /** Hashes of the accounts whose calls failed, two at most. */
  readonly accounts: readonly string[];
  readonly lastMs: number;
}

export type HealthEntry = Rest | FailureRun;

/** The key of an entry is a hash of a candidate modulo this number: six characters of [0-9a-z]. */
export const healthKeySpace = 36 ** 6;

/** How long a candidate whose rest is over is offered as a probe, and how long a probe may run. */
export const probeMs = 60_000;
/** How long failures in a row are remembered after the last of them. */
const runMs = 120_000;

/** From when on an entry means nothing: it may be dropped. */
export const forgottenAtMs = (entry: HealthEntry): number =>
  entry.kind === 'failures'
    ? entry.lastMs + runMs
    : Math.max(entry.untilMs, entry.probeUntilMs ?? 0) + probeMs;

/** Must return the same object when nothing changes. Undefined: no entry. */
export type HealthChange = (entry: HealthEntry | undefined) => HealthEntry | undefined;

export interface ChannelHealth {
  /** As last read, with later changes by this environment; entries may be over. Makes no store call. */
  entries(): Promise<ReadonlyMap<number, HealthEntry>>;
  /**
   * Changes one entry in one conditional write, and no other entry but by dropping it: those that are over, and when
   * there is no room the one that ends first. `change` may be called several times. True: its result was written. False:
   * it changed nothing, there was no room, or other environments were faster three times.
   */
  change(key: number, change: HealthChange): Promise<boolean>;
}
