/** Finds the row of the account to change. A mistyped name must not create an account. */
import { AccountRow } from '../config/rows/account-row.ts';
import { readRow } from '../config/rows/read-row.ts';
import { usable, usageFailure } from './operator-failure.ts';
import type { OperatorPorts } from './operator-ports.ts';
import type { RawRow, RowWrite } from './row-tables.ts';

export interface FoundAccount {
  row: RawRow;
  /** The writes that create the account; empty: it exists. `effect` describes them. */
  changes: RowWrite[];
  effect: string[];
}

/** Throws a Failure if the account does not exist and `isNew` is false. */
export async function findAccount(
  { tables }: OperatorPorts,
  account: string,
  isNew = false,
): Promise<FoundAccount> {
  const row = { account };
  usable(readRow(AccountRow, row));
  const found = await tables.get('accounts', account);
  if (found) return { row: found, changes: [], effect: [] };
  if (!isNew) throw usageFailure(`there is no account ${account}: make a key for it first, or add --new`);
  return {
    row,
    changes: [{ kind: 'create', table: 'accounts', row }],
    effect: [`account ${account} is new`],
  };
}
