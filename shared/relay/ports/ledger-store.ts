/** The ledger as the projector writes it, and the changes that it is made from. */
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { CloseRow } from '../../billing/ledger-row.ts';

export interface LedgerStore {
  /**
   * Puts the row unless its id has one; a row of kind `cancelled` gives way to any other. Safe to repeat, in any order.
   * Throws Poisoned, or what the store said: then the write is worth a retry.
   */
  putIfAbsent(row: CloseRow): Promise<void>;
}

/** One write on an account's item, as the table stream of `quotas` reports it. */
export interface QuotaChange {
  account: string;
  before: QuotaItem | undefined;
  after: QuotaItem | undefined;
}
