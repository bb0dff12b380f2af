/** The ledger store that the projector writes, and the changes that it projects. */
import type { QuotaItem } from '../../../billing/quota-item.ts';
import type { CloseRow } from '../../../billing/ledger-row.ts';

export interface LedgerStore {
  /**
   * Puts the row unless its id already has one; replaces a row of kind `cancelled`. Safe to repeat and in any
   * order. Throws Poisoned, or the store's error: a retry may then succeed.
   */
  putIfAbsent(row: CloseRow): Promise<void>;
}

/** One write on an account's item, as the table stream of `quotas` reports it. */
export interface QuotaChange {
  account: string;
  before: QuotaItem | undefined;
  after: QuotaItem | undefined;
}
