/** Port: reads account items, ledger rows, their daily sums and grants. Writes repairs alone. */
import type { DailyDifference } from '../billing/audit/daily-audit.ts';
import type { DailySum } from '../billing/daily/daily-sums.ts';
import type { WrittenGrant } from '../billing/grant.ts';
import type { LedgerRow } from '../billing/ledger-row.ts';
import type { WholeAccount } from '../billing/parts/whole.ts';
import type { QuotaStore } from '../relay/ports/stores/quota-store.ts';
import type { DayRange, Reading, SumReader } from './sum-reader.ts';

export interface LedgerSelection {
  account?: string | undefined;
  /** Start of the call in epoch milliseconds, inclusive. */
  fromMs?: number | undefined;
  /** Epoch milliseconds, exclusive. */
  toMs?: number | undefined;
}

/** Reads are consistent, amounts exact. Every method may throw a Failure. */
export interface LedgerReader extends SumReader {
  /** The sums over the account's parts; a part that cannot be read is a problem of the account. */
  quota(account: string): Promise<Reading<WholeAccount> | undefined>;
  /**
   * Of many accounts, in no order; those without an item are left out. 100 items for each request. The parts of a busy
   * account are not of one moment: a sum with `moved` is read again alone where it must be exact.
   */
  quotas(accounts: readonly string[]): Promise<Reading<WholeAccount>[]>;
  accounts(): AsyncIterable<string[]>;
  /** Returns pages. Within an account, requests come first, sorted by time, then grants. */
  ledger(selection: LedgerSelection): AsyncIterable<Reading<LedgerRow>[]>;
  /** The row of a request of any account. */
  request(id: string): Promise<Reading<LedgerRow> | undefined>;
  grants(account?: string): AsyncIterable<WrittenGrant[]>;
  /** The accounts of ledger rows, page by page, one for each row. Rows of the last second may be missing. */
  ledgerAccounts(): AsyncIterable<string[]>;
  /** The items of `daily` of days with this id (all days, or these), sorted by day. */
  daily(id: string, days?: DayRange): AsyncIterable<Reading<DailySum>[]>;
  /** Adds to an item of `daily` that is still as it was found. Returns whether it was. */
  addToDaily(difference: DailyDifference): Promise<boolean>;
  /** Closes a reservation with the same conditional write as the relay. */
  close: QuotaStore['close'];
  /** Charges what an expired reservation did not, once, with the same transaction as the relay. */
  chargeLate: QuotaStore['chargeLate'];
}
