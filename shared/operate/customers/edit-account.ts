/** Changes attributes of an account's row that are not its plan: note, contact, limits, the switch. */
import { AccountRow, isAccountOff } from '../../config/rows/account-row.ts';
import { readAlertedAccount } from '../../config/rows/alerted-account.ts';
import { readRow } from '../../config/rows/read-row.ts';
import { refuseChanged } from '../config/row-mark.ts';
import { Failure, usable, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { Plan } from '../plan.ts';
import type { RawRow, RowWrite } from '../row-tables.ts';

export interface AccountEdit {
  account: string;
  /** An undefined attribute is removed; others stay. */
  attributes: RawRow;
  /** `rowMark` of the row as it was looked at. Absent: it is not compared. */
  seen?: string | undefined;
}

/** `carryOutWrites` carries it out. It fails if somebody else changed one of these attributes meanwhile. */
export async function planEditAccount(
  { tables, target }: Pick<OperatorPorts, 'tables' | 'target'>,
  { account, attributes, seen }: AccountEdit,
): Promise<Plan<RowWrite>> {
  const row = await tables.get('accounts', account);
  if (!row) throw usageFailure(`there is no account ${account}`);
  refuseChanged(`account ${account}`, row, seen);
  const changed = Object.fromEntries(
    Object.entries(attributes).filter(([name, value]) => !isSame(row[name], value)),
  );
  const after = withoutUndefined({ ...row, ...changed });
  usable(readRow(AccountRow, after));
  usable(readAlertedAccount(after, target));
  const names = Object.keys(changed);
  const isDisabled = changed['enabled'] === false;
  const isEnabled = isAccountOff(row) && !isAccountOff(after);
  const unchanged = Object.fromEntries(names.map((name) => [name, row[name]]));
  const conflict = new Failure('somebody else changed the row meanwhile: look at it again, then repeat');
  return {
    changes:
      names.length === 0
        ? []
        : [{ kind: 'update', table: 'accounts', key: { account }, attributes: changed, unchanged, conflict }],
    effect:
      names.length === 0
        ? ['nothing to write: the row is like this already']
        : [
            `account ${account}: ${names.flatMap((name) => shown(name, after[name])).join(', ')}; live within 30 seconds`,
            ...(isDisabled ? [`every key of ${account} is refused within 30 seconds`] : []),
            ...(isEnabled ? [`calls of ${account}, which are refused now, are answered again`] : []),
          ],
    questions: isDisabled ? [`Refuse every call of ${account}?`] : [],
  };
}

/** Without notes of the tool itself. */
const shown = (name: string, value: unknown): string[] =>
  name.startsWith('_') ? [] : [value === undefined ? `no ${name}` : `${name} ${JSON.stringify(value)}`];

const withoutUndefined = (row: RawRow): RawRow =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined));

const isSame = (a: unknown, b: unknown): boolean => JSON.stringify(a ?? null) === JSON.stringify(b ?? null);
