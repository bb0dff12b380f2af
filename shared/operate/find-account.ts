/** Finds the row of an account that is to get something: a name with a typing error must not become a customer. */
import { AccountRow } from '../config/rows/account-row.ts';
import { readRow } from '../config/rows/read-row.ts';
import { usable, usageFailure } from './operator-failure.ts';
import type { OperatorPorts } from './operator-ports.ts';
import type { RawRow, RowWrite } from './row-tables.ts';

export interface FoundAccount {
  row: RawRow;
  /** What makes the account, and says so; empty when there is one. */
  changes: RowWrite[];
  effect: string[];
}

/** Throws a Failure when there is none, unless `isNew` says that one is wanted. */
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
