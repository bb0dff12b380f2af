/** API keys with the row of their account. */
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';

/** Why a lookup found no usable key is for the log only; clients see one message for all reasons. */
export type KeyLookup =
  | {
      row: KeyRow;
      /** Absent: there is no row, or its validation failed; no plan is held then. */
      account?: AccountRow | undefined;
    }
  | { missing: 'unknown' | 'invalid_row' };

export interface KeyStore {
  /** Looks a whole `sk-` key up by its hash. Throws StoreUnavailable. */
  find(secretKey: string): Promise<KeyLookup>;
}
