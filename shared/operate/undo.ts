/**
 * Undoes one write of rows, unless they have changed since: notes the rows as they were before the write, and plans to restore them. Must
 * never change money, only rows that people edit. Does not delete keys and customers that the write created.
 */
import { ChannelRow } from '../config/rows/channel-row.ts';
import { attributeOf, plainRow, plainValue } from '../config/rows/read-row.ts';
import type { ConfigTable } from '../config/rows/read-table.ts';
import type { TableName } from '../tables/table-names.ts';
import { tableSchemas } from '../tables/table-schemas.ts';
import { addGroupWarnings } from './config/group-warnings.ts';
import { configTables, nameOf } from './config/row-changes.ts';
import { normalizeRow, planRows, type ConfigPlan } from './config/write-rows.ts';
import type { OperatorPorts, RawRow, RowWrite } from './operator-ports.ts';
import { Failure, usageFailure, type Plan } from './plan.ts';
import { fingerprintRow, setAttributes, updateOf } from './rows.ts';

/** Must survive conversion to JSON. */
export interface UndoStep {
  table: ConfigTable | 'accounts' | 'keys';
  key: string | number;
  /** The attributes before the write; one without a value was absent. Missing if the row did not exist. */
  before?: readonly (readonly [name: string, value?: unknown])[];
  /** `fingerprintRow` after the write. Missing if the write deleted the row. */
  fingerprint?: string;
}

const rowsMax = 20;

/** @returns no steps if the writes can't be undone: they are too many, one overwrote values that it had not read, or was overwritten since */
export async function noteUndo(
  { tables }: OperatorPorts,
  made: readonly RowWrite[],
): Promise<readonly UndoStep[]> {
  const steps = made.flatMap((write) => noteStep(write) ?? []);
  if (made.length > rowsMax || steps.length < made.length) return [];
  const noted = await Promise.all(
    steps.map(async (step, at) => {
      const row = await tables.get(step.table, step.key as string);
      if (!isAsWritten(made[at], row)) return undefined;
      return row ? Object.assign({}, step, { fingerprint: fingerprintState(row) }) : step;
    }),
  );
  return noted.every((step) => step !== undefined) ? noted : [];
}

/** Somebody else may write between the write and its note. */
function isAsWritten(write: RowWrite | undefined, row: RawRow = {}): boolean {
  if (write === undefined || write.kind === 'remove') return true;
  const attributes = 'row' in write ? write.row : write.attributes;
  return updateOf({ table: write.table, key: {}, row }, attributes).length === 0;
}

const isConfigTable = (table: TableName): table is ConfigTable =>
  (configTables as readonly TableName[]).includes(table);

function noteStep(write: RowWrite): UndoStep | undefined {
  const { table } = write;
  const isConfig = isConfigTable(table);
  if (!isConfig && table !== 'accounts' && table !== 'keys') return undefined;
  if ('row' in write)
    return write.kind === 'create' && isConfig
      ? { table, key: write.row[keyNameOf(table)] as string }
      : undefined;
  if (write.kind === 'remove' && !isConfig) return undefined;
  const { unchanged } = write;
  const names = Object.keys(write.kind === 'update' ? write.attributes : unchanged);
  if (!names.every((name) => Object.hasOwn(unchanged, name))) return undefined;
  if (table === 'channels' && mayHoldKey(names, unchanged)) return undefined;
  const before = names.map((name) => {
    const value = plainValue(unchanged[name], true);
    return value === undefined ? ([name] as const) : ([name, value] as const);
  });
  return { table, key: write.key[keyNameOf(table)] as string, before };
}

/** True if a value may be a key in the place of a reference, or under a wrong name. No copy of it may be kept. */
const mayHoldKey = (names: readonly string[], { secret }: RawRow): boolean =>
  !names.every((name) => Object.hasOwn(ChannelRow.shape, name)) ||
  [plainValue(secret) ?? []]
    .flat()
    .some((each) => typeof each !== 'string' || !/^(ssm|secretsmanager|env):/.test(each));

const keyNameOf = (table: TableName): string => tableSchemas[table].partitionKey.name;

/** Throws a Failure if one of the rows has changed since the write. */
export async function planUndo(
  ports: OperatorPorts,
  steps: readonly UndoStep[],
): Promise<ConfigPlan | Plan<RowWrite>> {
  const rows = steps.flatMap((step) => (isConfigTable(step.table) ? [{ ...step, table: step.table }] : []));
  return rows.length > 0 ? planConfigUndo(ports, rows) : planRowUndo(ports, steps);
}

async function planConfigUndo(
  ports: OperatorPorts,
  steps: readonly (UndoStep & { table: ConfigTable })[],
): Promise<ConfigPlan> {
  const before = await ports.config.tables();
  const after = { ...before };
  for (const step of steps) {
    const { table, key } = step;
    const found = before[table].find((row) => attributeOf(row, keyNameOf(table)) === key);
    refuseNewer(step, found);
    const restored = step.before && {
      ...setAttributes((plainRow(found ?? {}) ?? {}) as RawRow, attributesOf(step)),
      [keyNameOf(table)]: key,
    };
    after[table] = [
      ...after[table].filter((row) => row !== found),
      ...(restored ? [normalizeRow(restored)] : []),
    ];
  }
  const plan = planRows(ports, { before, after });
  const wrong = plan.problems.find(({ written }) => written)?.finding;
  if (wrong) throw usageFailure(`${nameOf(wrong)}: ${wrong.problem}`);
  return addGroupWarnings(ports, { ...plan, warnings: plan.brought });
}

async function planRowUndo({ tables }: OperatorPorts, steps: readonly UndoStep[]): Promise<Plan<RowWrite>> {
  const changes = await Promise.all(
    steps.map(async (step): Promise<RowWrite> => {
      const { table, key } = step;
      const row = (await tables.get(table, key as string)) ?? {};
      refuseNewer(step, row);
      const unchanged = Object.entries(row).filter(
        ([name]) => !name.startsWith('_') && name !== keyNameOf(table),
      );
      return {
        kind: 'update',
        table,
        key: { [keyNameOf(table)]: key },
        attributes: attributesOf(step),
        // Compare the whole row, so that an edit by somebody else is not overwritten.
        unchanged: {
          ...listClosings(row),
          ...attributesOf({ ...step, before: step.before?.map(([name]) => [name] as const) }),
          ...Object.fromEntries(unchanged),
        },
        conflict: createConflict(step),
      };
    }),
  );
  const effect = steps.map(
    ({ table, key, before = [] }) =>
      `Restore ${before.map(([name]) => name).join(', ')} of ${nameOf({ table, key: table === 'keys' ? String(key).slice(0, 12) : key })}`,
  );
  return { changes, effect, questions: ['Undo this change?'] };
}

const attributesOf = ({ before = [] }: UndoStep): RawRow =>
  Object.fromEntries(before.map(([name, value]) => [name, value]));

const createConflict = (step: UndoStep): Failure =>
  new Failure(`${nameOf(step)} has changed since, so this can't be undone: edit it instead`);

function refuseNewer(step: UndoStep, row: unknown): void {
  if ((row === undefined ? undefined : fingerprintState(row)) !== step.fingerprint)
    throw createConflict(step);
}

/** Marking a disabled row as leaked or closed changes only these notes. An Undo must not remove them. */
const listClosings = (row: unknown) => ({
  _leaked: attributeOf(row, '_leaked'),
  _closed: attributeOf(row, '_closed'),
});

const fingerprintState = (row: unknown): string => {
  const { _leaked: leaked, _closed: closed } = listClosings(row);
  return fingerprintRow({ ...(row as RawRow), leaked, closed });
};
