import type { NanoYuan } from '../amount.ts';
import type { RateCount } from '../quota-item.ts';

/**
 * One transaction over parts of an account. Money and counted plan calls change their part; their sums over the
 * account stay. It takes effect completely or not at all.
 */
export interface PartsWrite {
  account: string;
  /** The number of parts that calls use afterwards, which is also stored where it is read with keys. */
  parts?: number | undefined;
  /** The highest number of parts that the account ever had, kept in part 0. */
  made?: number | undefined;
  /**
   * What becomes of the mark of an overdraft. `begins`: the changed parts, all in use, have it afterwards. `ends`: they
   * had it, and none is below zero without it. `none`: refused if one has it, or would be below zero. Absent: it stays.
   */
  overdraft?: 'begins' | 'ends' | 'none' | undefined;
  /** One for each part that changes; of the amounts and of the counts of each slot the sum is zero. */
  changes: PartChange[];
}

export interface PartChange {
  part: number;
  /** The number of parts that the item named when it was read; undefined: there was no item. */
  seenParts: number | undefined;
  /** What the part receives; negative: what it gives, and refused if less is available. */
  moved: NanoYuan;
  /** Plan calls counted here from now on, by slot; negative: no more. */
  plan: ReadonlyMap<string, MovedCalls>;
  /** What the part counts of the account's minute from now on; refused unless it still counts what was seen. */
  minute?: { seen: RateCount | undefined; counted: RateCount } | undefined;
  /** Refused unless nothing is open and nothing was closed since: so many closes were counted then. */
  settledBefore?: number | undefined;
}

export interface MovedCalls {
  calls: number;
  /** Refused if the part counts more by now: its share would be exceeded. */
  countedMax: number;
}
