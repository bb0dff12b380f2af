/** How many calls of an account were refused or failed, by hour and code. For people: a count may be lost. */

export interface HourOfRefusals {
  account: string;
  /** `2026-11-22T09`, UTC. */
  hour: string;
  /** By code, such as `insufficient_quota`. */
  counts: Readonly<Record<string, number>>;
}

export interface RefusalCounts {
  /** Adds to the counts of the hour. May be counted twice when the reply is lost. */
  add(hour: HourOfRefusals): Promise<void>;
  /** The hours from this one on, oldest first. Throws StoreUnavailable. */
  since(account: string, hour: string): Promise<HourOfRefusals[]>;
}
