/** Prints what is left to do for an account that was closed. */
import { formatYuan } from '../../../../shared/billing/amount.ts';
import type { CloseAccountPlan } from '../../../../shared/operate/customers/close-account.ts';
import type { Terminal } from '../terminal/terminal.ts';

export function printClosed({ print }: Terminal, { account, next }: CloseAccountPlan): void {
  print(`${account} is closed; its rows, grants and ledger stay.`);
  if (next.length === 0) return print('Nothing is left to pay back.');
  print('To pay back what is left:');
  for (const [at, step] of next.entries()) print(`  ${at + 1}. ${step}`);
}

export const closeFacts = ({ account, available, reserved, keys, next }: CloseAccountPlan) => ({
  account,
  available: formatYuan(available),
  reserved: formatYuan(reserved),
  keys_disabled: keys,
  next,
});
