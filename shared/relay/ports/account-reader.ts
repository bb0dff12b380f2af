/** What the account endpoints read of the reservations. */
import { grantLedgerId } from '../../billing/grant.ts';
import type { CloseRow, GrantLedgerRow, LedgerRow } from '../../billing/ledger-row.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import { requestTimeMs } from '../../wire/request-id.ts';

export interface AccountReader {
  /** Undefined: the account has no item yet, so it has neither money nor counts. Throws StoreUnavailable. */
  quota(account: string): Promise<QuotaItem | undefined>;
  /** Closes with ids below `beforeId`, newest first, at most `limit`. Throws StoreUnavailable. */
  requests(account: string, beforeId: string, limit: number): Promise<CloseRow[]>;
  /** All grants of the account, in no order. Throws StoreUnavailable. */
  grants(account: string): Promise<GrantLedgerRow[]>;
}

/** Grants sort after all requests: their ids begin with this. */
export const grantPrefix = grantLedgerId('');

/** What rows are ordered by: when the call began, for it is in the id; a grant has only the time it was booked. */
export const ledgerTimeMs = (row: Pick<LedgerRow, 'id' | 'at'>): number =>
  requestTimeMs(row.id) ?? Date.parse(row.at);
