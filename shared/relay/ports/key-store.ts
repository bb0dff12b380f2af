import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';

/** Why a key lookup found nothing usable is for the log only; clients see one message for all. */
export type KeyLookup =
  | {
      row: KeyRow;
      /** Absent: no row, or one that does not fit: no plan is held. */
      account?: AccountRow | undefined;
    }
  | { missing: 'unknown' | 'invalid_row' };

export interface KeyStore {
  /** Looks a whole `sk-` key up by its hash. Throws StoreUnavailable. */
  find(secretKey: string): Promise<KeyLookup>;
}
