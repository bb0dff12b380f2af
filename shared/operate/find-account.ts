/** Finds the row of the account to change. A mistyped name must not create an account. */
import { AccountRow } from '../config/rows/account-row.ts';
import { readRow } from '../config/rows/read-row.ts';
import { usable, usageFailure } from './operator-failure.ts';
import type { OperatorPorts } from './operator-ports.ts';
import type { RawRow, RowWrite } from './row-tables.ts';

/** What cannot be seen looks like another customer's name, and no address of a page can be `..`. */
const newName = /^(?!\.+$)[^\p{C}]{1,200}$/u;

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
  if (!isNew)
    throw usageFailure(
      `there is no account ${account}: make it with its first key, or by a grant with --new`,
    );
  if (!newName.test(account))
    throw usageFailure(
      'account: a new name has at most 200 characters, all of which one sees, and more than dots',
    );
  return {
    row,
    changes: [{ kind: 'create', table: 'accounts', row }],
    effect: [`account ${account} is new`],
  };
}
