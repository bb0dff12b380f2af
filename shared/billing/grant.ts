import { formatYuan, type NanoYuan } from './amount.ts';
import type { GrantLedgerRow } from './ledger-row.ts';

/** A top-up to apply. */
export interface Grant {
  account: string;
  grant_id: string;
  /** Negative: a correction. */
  amount: NanoYuan;
  reason?: string | undefined;
}

/** A row of `grants`. `amount` is the text that was written. */
export interface WrittenGrant {
  account: string;
  grantId: string;
  amount: string;
  applied: string | undefined;
  problem: string | undefined;
  /** Shown to the customer. */
  reason?: string | undefined;
}

export const grantLedgerId = (grantId: string): string => `grant#${grantId}`;

/**
 * Builds the ledger row of an applied grant. The existence of this row marks the grant as applied.
 * `at`: in the format of `ledgerTime`.
 */
export const grantLedgerRow = ({ account, grant_id, amount, reason }: Grant, at: string): GrantLedgerRow => ({
  account,
  id: grantLedgerId(grant_id),
  at,
  kind: 'grant',
  amount,
  reason: reason ?? '',
});

/** The problem of a grant whose amount was changed after it was applied; undefined: it was not changed. */
export const changedAfterwards = (amount: NanoYuan, applied: NanoYuan): string | undefined =>
  amount === applied
    ? undefined
    : `amount: found ${formatYuan(amount)}, wanted ${formatYuan(applied)}, which was applied; grant the difference in a row of its own`;

/** Ledger ids of grants begin with this prefix, which sorts after all request ids. */
export const grantPrefix = grantLedgerId('');
