/** What alerts are decided from, and the marks of what was reported. */
import type { NanoYuan } from '../../../billing/amount.ts';
import type { AlertedAccount } from '../../../config/rows/alerted-account.ts';
import type { KeyRow } from '../../../config/rows/key-row.ts';
import type { Notice } from '../../../wire/public/notice.ts';

/** Whether a cause holds and was reported. `changes` counts the mark's writes. */
export interface AlertMark {
  open: boolean;
  changes: number;
}

export interface RaisedMark {
  cause: string;
  /** The mark as it was read; undefined: there was none. */
  seen: AlertMark | undefined;
  notice: Notice;
  /** Unix seconds after which the mark may go; absent: it stays. */
  expires?: number;
}

/** Throws StoreUnavailable. A repeat after a lost reply finds the mark changed. */
export interface AlertStore {
  /** The marks of these causes, read consistently; absent ones have no entry. */
  marks(causes: readonly string[]): Promise<ReadonlyMap<string, AlertMark>>;
  /** Opens the mark and puts the notice, together or not at all. False: the mark is not as it was seen. */
  raise(raised: RaisedMark): Promise<boolean>;
  /** Closes an open mark. False: the mark is not as it was seen. */
  clear(cause: string, seen: AlertMark): Promise<boolean>;
}

/** Throws StoreUnavailable. A row with a mistake counts as absent. */
export interface AlertAccounts {
  /** The account's row, read consistently. */
  row(account: string): Promise<AlertedAccount | undefined>;
  /** Its `alertBelow`, up to 5 minutes old: the scheduled pass finds what an edit changes. */
  alertBelow(account: string): Promise<NanoYuan | undefined>;
  /**
   * What was granted less what was spent, over all parts of the account, read consistently: money of calls in flight is
   * in it, and money that moves between parts changes nothing. Undefined: the account was never used.
   */
  balance(account: string): Promise<NanoYuan | undefined>;
  /** All accounts, page by page. */
  accounts(): AsyncIterable<AlertedAccount[]>;
  /** All keys, page by page. */
  keys(): AsyncIterable<KeyRow[]>;
}
