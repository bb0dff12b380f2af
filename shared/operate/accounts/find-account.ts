import { AccountRow } from '../../config/rows/account-row.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { usageFailure } from '../operator-failure.ts';
import type { Session } from '../../../infra/ops/session/session.ts';
import type { RawRow } from '../row-tables.ts';
import { remark } from '../../../infra/ops/cli/terminal/terminal.ts';

/** The row of an account. A name with a typing error must not become a customer: `isNew` says that one is wanted. */
export async function findAccount(session: Session, account: string, isNew = false): Promise<RawRow> {
  const row = { account };
  const reading = readRow(AccountRow, row);
  if ('problem' in reading) throw usageFailure(reading.problem);
  const found = await session.tables.get('accounts', account);
  if (found) return found;
  if (!isNew) throw usageFailure(`there is no account ${account}: make a key for it first, or add --new`);
  if (await session.tables.create('accounts', row)) remark(`account ${account} is new`);
  return row;
}
