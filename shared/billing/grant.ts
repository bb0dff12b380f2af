import { formatYuan, type NanoYuan } from './amount.ts';
import type { GrantLedgerRow } from './ledger-row.ts';

/** A top-up to be applied. */
export interface Grant {
  account: string;
  grant_id: string;
  /** Below zero: a correction. */
  amount: NanoYuan;
  reason?: string | undefined;
}

/** The ledger id of a grant. */
export const grantLedgerId = (grantId: string): string => `grant#${grantId}`;

/** The ledger row that applies a grant, and marks it as applied. `at`: as `ledgerTime` writes it. */
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

/** Grants sort after all requests: their ids begin with this. */
export const grantPrefix = grantLedgerId('');
