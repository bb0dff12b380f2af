/** What the account endpoints read: an account's item and its ledger rows. */
import type { CloseRow, GrantLedgerRow } from '../../billing/ledger-row.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';

export interface AccountReader {
  /** Undefined: the account has no item yet, so it has neither money nor counts. Throws StoreUnavailable. */
  quota(account: string): Promise<QuotaItem | undefined>;
  /** Closes with ids below `beforeId`, newest first, at most `limit`. Throws StoreUnavailable. */
  requests(account: string, beforeId: string, limit: number): Promise<CloseRow[]>;
  /** All grants of the account, in no order. Throws StoreUnavailable. */
  grants(account: string): Promise<GrantLedgerRow[]>;
}
