/** Port: reads the sums of `daily` from which lists, plots, reports and what-ifs are made. Never reads the ledger. */
import type { DailyFigures } from '../billing/daily/daily-figures.ts';

/**
 * A row that functions wrote, or why it cannot be read. An unreadable row does not prevent reading the
 * others.
 */
export type Reading<Row> = { row: Row } | { key: string; problem: string };

/** What an account did in a month, in UTC: calls, failures, plan calls, tokens, charges and grants. */
export interface AccountMonth {
  account: string;
  /** `2026-11` */
  month: string;
  figures: DailyFigures;
}

/** What a public model did on a channel on a day, in UTC. `unpaid_...`: the part to which no price was applied. */
export interface ServedDay {
  /** `2026-11-22` */
  day: string;
  model: string;
  /** Undefined: no channel was tried. */
  channel: string | undefined;
  figures: DailyFigures;
}

/** What ended in a minute: for plots, a row may be missing or count twice. Kept for two days. */
export interface Minute {
  /** Its start, in epoch milliseconds. */
  startMs: number;
  figures: DailyFigures;
}

/** Both inclusive, `2026-11-22`, in UTC. */
export interface DayRange {
  from: string;
  to: string;
}

/** Reads are consistent, amounts exact. All return pages. Every method may throw a Failure. */
export interface SumReader {
  /** All accounts that had a call or a grant in the month, sorted by name: some 150 bytes each. */
  monthAccounts(month: string): AsyncIterable<Reading<AccountMonth>[]>;
  /** Some accounts and months. Those without calls and grants are left out. Sent in batches of 100. */
  accountMonths(wanted: readonly Pick<AccountMonth, 'account' | 'month'>[]): Promise<Reading<AccountMonth>[]>;
  /** Sorted by day and model. */
  served(days: DayRange): AsyncIterable<Reading<ServedDay>[]>;
  /** Minutes from and to, in epoch milliseconds, the last exclusive. Minutes without calls are left out. */
  minutes(fromMs: number, toMs: number): AsyncIterable<Reading<Minute>[]>;
}
