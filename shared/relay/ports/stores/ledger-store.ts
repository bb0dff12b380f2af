/** The ledger store that the projector writes, and the changes that it projects. */
import type { QuotaItem } from '../../../billing/quota-item.ts';
import type { DailySum } from '../../../billing/daily/daily-sums.ts';
import type { CloseRow } from '../../../billing/ledger-row.ts';

export interface LedgerStore {
  /** Rows in the groups that one `putCounted` takes, in order. */
  groups(rows: readonly CloseRow[]): CloseRow[][];
  /**
   * Puts the rows whose ids have none yet, or one of kind `cancelled`, and counts exactly these in `daily`, in one
   * transaction. Safe to repeat and in any order. Throws Poisoned when the rows together are refused for good,
   * otherwise the store's error: a retry may then succeed. Resolves with the rows that it put.
   */
  putCounted(rows: readonly CloseRow[]): Promise<readonly CloseRow[]>;
  /** Puts a row that `daily` does not take, without counting it. Throws like `putCounted`. */
  putUncounted(row: CloseRow): Promise<void>;
  /** Adds to the sums of minutes, at most once or twice and not for long. */
  addToMinutes(sums: readonly DailySum[]): Promise<void>;
}

/** One write on an account's item, as the table stream of `quotas` reports it. */
export interface QuotaChange {
  /** The key of the item. */
  item: string;
  account: string;
  before: QuotaItem | undefined;
  after: QuotaItem | undefined;
}
