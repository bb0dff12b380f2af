/** What the keepers of the reservations (ledger, grants, sweeper) need of the world beside the ports of a call. */
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { CloseRow } from '../../billing/ledger-row.ts';

export interface LedgerStore {
  /**
   * Puts the row unless its id has one; a row of kind `cancelled` gives way to any other. Safe to repeat, in any order.
   * Throws what makes it worth trying again later, or Poisoned.
   */
  putIfAbsent(row: CloseRow): Promise<void>;
}

/** One write on an account's item, as the stream of `quotas` tells it. */
export interface QuotaChange {
  account: string;
  before: QuotaItem | undefined;
  after: QuotaItem | undefined;
}
