/** API keys with the row of their account. */
import type { AccountRow } from '../../../config/rows/account-row.ts';
import type { KeyRow } from '../../../config/rows/key-row.ts';

/** `missing`: why no key was found. Only for the log; clients see the same message for all reasons. */
export type KeyLookup =
  | {
      row: KeyRow;
      /** Absent: the account has no valid row and therefore no plan. */
      account?: AccountRow | undefined;
      /** The account's row switches all its keys off. */
      accountOff?: boolean;
      /** The number of parts of the account's balance, when it was read. Absent: one. */
      parts?: number | undefined;
    }
  | { missing: 'unknown' | 'invalid_row' };

export interface KeyStore {
  /**
   * Looks up a complete `sk-` key by its hash. Throws StoreUnavailable.
   * @param ageMsMax how long ago it may have been read; absent: for as long as lookups are kept
   */
  find(secretKey: string, ageMsMax?: number): Promise<KeyLookup>;
}
