/** Grants, and the one transaction that applies each. */
import type { NanoYuan } from '../../billing/amount.ts';
import type { GrantLedgerRow } from '../../billing/ledger-row.ts';

/** A row of `grants` as the table has it, marks included; numbers as text, so that none is rounded. */
export interface GrantImage {
  account: string;
  grant_id: string;
  [attribute: string]: unknown;
}

export interface AppliedGrant {
  amount: NanoYuan;
  at: string;
}

export interface GrantMarks {
  /** When it was applied; undefined: leaves the mark as it is. */
  applied?: string | undefined;
  /** Why it is not used; undefined: takes the mark away. */
  problem?: string | undefined;
}

/** Every method rejects with what the store said; a retry is worth it unless that is Poisoned. */
export interface GrantStore {
  /** The ledger's row of this grant. */
  find(account: string, grantId: string): Promise<AppliedGrant | undefined>;
  /**
   * Ledger row and balance in one transaction; when the ledger has the row already, nothing happens. Returns what is
   * applied then. Throws StoreBusy, or Poisoned when the account's item can never take it.
   */
  apply(row: GrantLedgerRow): Promise<AppliedGrant>;
  /** Writes marks on the grant if it still exists. */
  mark(account: string, grantId: string, marks: GrantMarks): Promise<void>;
  /** All grants that are not marked as applied. */
  unapplied(): AsyncIterable<GrantImage>;
}
