import type { NanoYuan } from './amount.ts';
import { latePrefix, type CloseRow } from './ledger-row.ts';

/** What is spent and held of a budget, and how many running calls hold some. */
export interface BudgetUse {
  used: NanoYuan;
  running: number;
}

/**
 * What a closed call changes in its key's budget, which held the reserved amount. A late charge comes after a close
 * that gave the held amount free.
 */
export const budgetUseOf = ({ id, charge, reserved }: CloseRow): BudgetUse => ({
  used: charge - reserved,
  running: id.startsWith(latePrefix) ? 0 : -1,
});
