import { AccountRow, isAccountOff } from './account-row.ts';
import { readAlertedAccount } from './alerted-account.ts';
import { KeyRow } from './key-row.ts';
import { readRow } from './read-row.ts';
import type { ValidationResult } from './read-table.ts';

/** Validates a row of `keys`. The key of a row with a problem is refused. */
export function validateKeyRow(raw: unknown): ValidationResult {
  const reading = readRow(KeyRow, raw);
  if ('problem' in reading)
    return { problem: `${reading.problem}; until this is mended, the key is refused` };
  const { models } = reading.row;
  return models?.length === 0
    ? {
        warning:
          'models: empty, so this key may call nothing (without the attribute it may call every model)',
      }
    : {};
}

/** Validates a row of `accounts`. Its balance still pays, unless the row says that the account is off. */
export function validateAccountRow(raw: unknown, rules = { local: false }): ValidationResult {
  const reading = readAlertedAccount(raw, rules);
  if (!('problem' in reading)) return {};
  return { problem: `${reading.problem}; until this is mended, ${consequenceOf(raw)}` };
}

function consequenceOf(raw: unknown): string {
  if (isAccountOff(raw)) return 'the keys of the account are refused';
  const isUsedByCalls = 'row' in readRow(AccountRow, raw);
  return isUsedByCalls ? 'nobody is reported about the account' : 'the account has no plan and no limits';
}
