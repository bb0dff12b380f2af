import { AccountRow } from '../rows/account-row.ts';
import { KeyRow } from '../rows/key-row.ts';
import { readRow } from '../rows/read-row.ts';
import type { ValidationResult } from '../validation-result.ts';

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

/** Validates a row of `accounts`. The account of a row with a problem has no plan; its balance still pays. */
export function validateAccountRow(raw: unknown): ValidationResult {
  const reading = readRow(AccountRow, raw);
  return 'problem' in reading
    ? { problem: `${reading.problem}; until this is mended, the account has no plan` }
    : {};
}
