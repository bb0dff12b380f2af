/** Grants, and the one transaction that applies each. */
import type { NanoYuan } from '../../../billing/amount.ts';
import type { GrantLedgerRow } from '../../../billing/ledger-row.ts';

/** A row of `grants` with its marks. Numbers are text, so that none is rounded. */
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
  /** When the grant was applied. Undefined: leaves the mark unchanged. */
  applied?: string | undefined;
  /** Why the grant cannot be applied. Undefined: removes the mark. */
  problem?: string | undefined;
}

/** Every method rejects with the store's error. A retry may succeed unless the error is Poisoned. */
export interface GrantStore {
  /** The applied grant from its ledger row. Undefined: the grant is not in the ledger. */
  find(account: string, grantId: string): Promise<AppliedGrant | undefined>;
  /**
   * Writes ledger row and balance in one transaction. Writes nothing if the ledger already has the row.
   * Returns the applied grant. Throws StoreBusy, or Poisoned when the account's item can never accept the
   * grant.
   */
  apply(row: GrantLedgerRow): Promise<AppliedGrant>;
  /** Writes marks on the grant if it still exists. */
  mark(account: string, grantId: string, marks: GrantMarks): Promise<void>;
  /** All grants that are not marked as applied. */
  unapplied(): AsyncIterable<GrantImage>;
}
