/** The reads of the account endpoints: an account's item and its ledger rows. */
import type { CloseRow, GrantLedgerRow } from '../../../billing/ledger-row.ts';
import type { QuotaItem } from '../../../billing/quota-item.ts';

export interface AccountReader {
  /** Undefined: the account has no item yet, so it has no money and no counts. Throws StoreUnavailable. */
  quota(account: string): Promise<QuotaItem | undefined>;
  /** At most `limit` closed requests with ids below `beforeId`, newest first. Throws StoreUnavailable. */
  requests(account: string, beforeId: string, limit: number): Promise<CloseRow[]>;
  /** All grants of the account, unordered. Throws StoreUnavailable. */
  grants(account: string): Promise<GrantLedgerRow[]>;
}
