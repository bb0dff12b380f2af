/** The reads of the account endpoints: an account's item, its ledger rows, and their sums by day. */
import type { DailySum } from '../../../billing/daily/daily-sums.ts';
import type { CloseRow, GrantLedgerRow } from '../../../billing/ledger-row.ts';
import type { WholeAccount } from '../../../billing/parts/whole.ts';

export interface AccountReader {
  /**
   * The sums over the account's parts. Undefined: it has no item yet, so it has no money and no counts. Throws
   * StoreUnavailable, or an Error if a part cannot be read.
   */
  quota(account: string): Promise<WholeAccount | undefined>;
  /** At most `limit` closed requests with ids below `beforeId`, newest first. Throws StoreUnavailable. */
  requests(account: string, beforeId: string, limit: number): Promise<CloseRow[]>;
  /** All grants of the account, unordered. Throws StoreUnavailable. */
  grants(account: string): Promise<GrantLedgerRow[]>;
  /** All charges that came after their reservation expired, unordered. Throws StoreUnavailable. */
  late(account: string): Promise<CloseRow[]>;
  /** At most `limit` sums of the account's days by model, from this UTC day on, newest first. Throws StoreUnavailable. */
  days(account: string, from: string, limit: number): Promise<DailySum[]>;
}
