/**
 * Plans the writes that put the rows of a file, or of an earlier version, into the configuration tables.
 * Writes only differences, and nothing if a row to write has a problem.
 */
import { compileSnapshot } from '../../config/compile-snapshot.ts';
import { type ConfigRows, keyAttributes, type ConfigTable } from '../../config/rows/read-table.ts';
import type { OperatorPorts, RowWrite, PublishedVersion, RawRow } from '../operator-ports.ts';
import { type Plan, Failure, usageFailure } from '../plan.ts';
import {
  badRows,
  findingsIn,
  nameOf,
  problemsOf,
  warningsOf,
  type Finding,
  changesBetween,
  configTables,
  differencesOf,
  rowsByKey,
  type RowDifference,
  putOver,
  readRowsFile,
  type RowsFile,
  variableMarks,
  attributeChanges,
  type RowChange,
  findingsInTables,
} from './row-changes.ts';
import { attributeOf, plainRow } from '../../config/rows/read-row.ts';
import { refuseChanged } from '../rows.ts';
import { compareCodeUnits } from '../../wire/json.ts';

export interface ConfigPlan extends Plan<RowWrite> {
  /** The differences in a form that is safe to show. */
  differences: RowDifference[];
  /** About all rows of the planned configuration. */
  warnings: string[];
  /** Problems of rows that are not `written` exist in the tables already and do not prevent the writes. */
  problems: { finding: Finding; written: boolean }[];
  /** All rows as they are, and as they would be. */
  edit: { before: ConfigRows; after: ConfigRows };
}

type ConfigPorts = Pick<OperatorPorts, 'clock' | 'config' | 'target'>;

/** @param prune deletes rows that the file lacks, in the tables that the file names */
export async function planApply(
  ports: ConfigPorts,
  file: RowsFile,
  { prune }: { prune?: boolean },
): Promise<ConfigPlan> {
  const rows = readRowsFile(file, configTables);
  const tables = await ports.config.tables();
  return planOf(tables, prune ? { ...tables, ...rows } : putOver(tables, rows), ports);
}

/** Plans to restore the rows of an earlier version and to delete served rows that it lacks. */
export async function planRollback(ports: ConfigPorts, version: number): Promise<ConfigPlan> {
  const { config, target } = ports;
  const [goal, newest] = await Promise.all([config.version(version), config.newest()]);
  const wanted = { ...(await config.rows(goal)) };
  const tables = await config.tables();
  const earlier = newest && (await config.rows(newest));
  const { rows: used } = compileSnapshot(tables, {
    local: target.local,
    publishedAt: 0,
    ...(earlier && { earlier }),
  });
  // Keep rows that are neither served nor in that version: they may be unfinished work.
  for (const table of configTables) {
    const served = rowsByKey(table, used[table]);
    const known = rowsByKey(table, wanted[table]);
    const unused = [...rowsByKey(table, tables[table])].filter(
      ([key]) => !served.has(key) && !known.has(key),
    );
    wanted[table] = [...wanted[table], ...unused.map(([, row]) => row)];
  }
  const plan = planOf(tables, wanted, ports);
  if (goal.version !== newest?.version) return plan;
  const isSame = plan.changes.length === 0;
  const said = isSame
    ? 'nothing to write'
    : 'what the tables hold beside it is not served, and would be undone';
  return {
    ...plan,
    effect: [`version ${version} serves already: ${said}.`, ...(isSame ? [] : plan.effect)],
  };
}

function planOf(tables: ConfigRows, wanted: ConfigRows, ports: ConfigPorts): ConfigPlan {
  const changes = changesBetween(tables, wanted);
  const findings = findingsIn(wanted, ports, { pricesBefore: tables.charges });
  const written = new Set(changes.filter(({ after }) => after).map(nameOf));
  const problems = problemsOf(findings).map((finding) => ({
    finding,
    written: written.has(nameOf(finding)),
  }));
  const refused = problems.filter((each) => each.written).length;
  const removed = changes.length - written.size;
  const counts = `${written.size} rows to write${removed > 0 ? `, ${removed} to delete` : ''}.`;
  return {
    changes: writesOf(changes, tables),
    effect: [changes.length > 0 ? counts : 'nothing to write: the tables hold this already.'],
    questions: changes.length > 0 ? ['Write this?'] : [],
    ...(refused > 0 && { refusal: `nothing was written: ${refused} of these rows have a problem` }),
    differences: differencesOf(changes, badRows([...findings, ...findingsIn(tables, ports)])),
    warnings: warningsOf(findings).map((finding) => `${nameOf(finding)}: ${finding.warning}`),
    problems,
    edit: { before: tables, after: wanted },
  };
}

// Builds the writes for changes of the configuration tables, and waits until the changes are published.

/**
 * Prices are written before the channels that serve the priced models; otherwise calls in between would be
 * free.
 */
const writeOrder: ConfigTable[] = ['charges', 'plans', 'settings', 'channels'];

/** Deletions come last, in reverse order. */
const rankOf = ({ table, after }: RowChange): number =>
  after ? writeOrder.indexOf(table) : 2 * writeOrder.length - writeOrder.indexOf(table);

/**
 * Builds writes that change only the attributes that differ, on condition that nobody has changed them since.
 * @param raw the rows that the changes are based on, as read from the tables
 */
function writesOf(changes: RowChange[], raw: ConfigRows): RowWrite[] {
  const ordered = changes.toSorted((a, b) => rankOf(a) - rankOf(b));
  return ordered.map((change, index) => {
    const conflict = new Failure(
      `${nameOf(change)} was changed by somebody else meanwhile; ${index} of ${ordered.length} rows are written. ` +
        'Repeat the command: it shows what still differs',
    );
    return writeOf(change, raw, conflict);
  });
}

function writeOf(change: RowChange, raw: ConfigRows, conflict: Failure): RowWrite {
  const { table, before, after } = change;
  const keyName = keyAttributes[table];
  const key = { [keyName]: change.key };
  if (before === undefined) return { kind: 'create', table, row: after ?? key, conflict };
  const row = raw[table].find((each) => attributeOf(each, keyName) === change.key) as RawRow;
  const valuesOf = (names: string[]): RawRow => Object.fromEntries(names.map((name) => [name, row[name]]));
  if (after === undefined) {
    const names = Object.keys(row).filter((name) => name !== keyName && !name.startsWith('_'));
    return { kind: 'remove', table, key, unchanged: valuesOf(names), conflict };
  }
  const attributes = Object.fromEntries(
    attributeChanges(change).map(({ name, after: value }) => [name, value]),
  );
  return { kind: 'update', table, key, attributes, unchanged: valuesOf(Object.keys(attributes)), conflict };
}

const pauseMs = 300;

/**
 * Waits until the newest version contains the current rows of the tables. Throws a Failure after
 * `waitSeconds`.
 * @returns that version; undefined if `waitSeconds` is 0, because nothing is read then
 */
export async function awaitPublished(
  ports: Pick<OperatorPorts, 'clock' | 'config' | 'target'>,
  waitSeconds: number,
): Promise<PublishedVersion | undefined> {
  if (waitSeconds <= 0) return undefined;
  const { clock, config } = ports;
  const untilMs = clock.now() + waitSeconds * 1000;
  let seen: number | undefined;
  for (;;) {
    const newest = await config.newest();
    if (newest && newest.version !== seen && (await isPublished(ports, newest))) return newest;
    seen = newest?.version;
    if (clock.now() + pauseMs > untilMs)
      throw new Failure(
        `the rows are written, but nothing was published of them within ${waitSeconds} s: ` +
          (variableMarks((await config.tables()).channels, ports.target)
            .map((finding) => `${nameOf(finding)}: ${finding.problem}`)
            .join('; ') || 'see `config show`, and the log of the function `config`'),
      );
    await clock.sleep(pauseMs);
  }
}

/** Whether a version contains the current rows of the tables. */
export async function isPublished(
  { config, target }: Pick<OperatorPorts, 'config' | 'target'>,
  version: PublishedVersion,
): Promise<boolean> {
  const [published, tables] = await Promise.all([config.rows(version), config.tables()]);
  const options = { local: target.local, publishedAt: 0, earlier: published };
  return changesBetween(published, compileSnapshot(tables, options).rows).length === 0;
}

// Sets attributes of one row of the configuration, makes the row, or removes it. Refuses what the relay would not use, and an
// edit of a row that somebody else changed since it was looked at. Says what else the change brings about: the warnings that
// this and other rows would get by it. `carryOutWrites` carries it out.

type Ports = Pick<OperatorPorts, 'clock' | 'config' | 'target'>;

interface RowName {
  table: ConfigTable;
  key: string | number;
}

interface RowEdit extends RowName {
  /** An undefined attribute is removed; others stay. */
  attributes: RawRow;
  /** `rowMark` of the row as it was looked at. Absent: it is not compared. */
  seen?: string | undefined;
  /** Whether the row must be new, or must be there. Absent: it is made if it is not there. */
  isNew?: boolean | undefined;
}

export async function planSetRow(
  ports: Ports,
  { table, key, attributes, seen, isNew }: RowEdit,
): Promise<ConfigPlan> {
  const name = nameOf({ table, key });
  const rows = await ports.config.tables();
  const found = rowIn(rows, { table, key });
  if (isNew === true && found) throw usageFailure(`${keyAttributes[table]}: there is ${name} already`);
  if (isNew === false && !found) throw usageFailure(`there is no ${name}: somebody deleted it`);
  if (found) refuseChanged(name, found, seen);
  const row = { ...(plainRow(found ?? {}) as RawRow), ...attributes, [keyAttributes[table]]: key };
  const text = JSON.stringify({ [table]: [row] });
  const plan = await planApply(onRows(ports, rows), { name, text }, {});
  const problem = plan.problems.find(({ written }) => written)?.finding.problem;
  if (problem !== undefined) {
    const isMeant = found !== undefined || isNew === true;
    throw usageFailure(isMeant ? problem : `there is no ${name}, and this does not make one: ${problem}`);
  }
  const effect =
    plan.changes.length === 0
      ? 'nothing to write: the row is like this already.'
      : `${name} is ${found ? 'changed' : 'made'}; live within 10 seconds.`;
  return { ...plan, warnings: warningsBy(ports, plan), effect: [effect] };
}

/** Deletes the row. A rollback brings it back. */
export async function planRemoveRow(ports: Ports, { table, key }: RowName): Promise<ConfigPlan> {
  const rows = await ports.config.tables();
  const found = rowIn(rows, { table, key });
  if (!found) throw usageFailure(`there is no ${nameOf({ table, key })}: see \`${table.slice(0, -1)} list\``);
  const left = rows[table].filter((each) => each !== found);
  const text = JSON.stringify({ [table]: [...rowsByKey(table, left).values()] });
  const plan = await planApply(onRows(ports, rows), { name: table, text }, { prune: true });
  return {
    ...plan,
    effect: [
      `${nameOf({ table, key })} is deleted; live within 10 seconds. \`version rollback\` brings it back.`,
    ],
    warnings: warningsBy(ports, plan),
  };
}

const rowIn = (rows: ConfigRows, { table, key }: RowName): unknown =>
  rows[table].find((row) => attributeOf(row, keyAttributes[table]) === key);

/** The tables are read once for all parts of a plan. */
export const onRows = (ports: Ports, rows: ConfigRows): Ports => ({
  ...ports,
  config: { ...ports.config, tables: async () => rows },
});

/** The warnings that there are afterwards and were not before; a price that jumps is one. */
function warningsBy(ports: Ports, { edit: { before }, warnings }: ConfigPlan): string[] {
  const known = new Set(
    warningsOf(findingsIn(before, ports)).map((each) => `${nameOf(each)}: ${each.warning}`),
  );
  return warnings.filter((warning) => !known.has(warning));
}

// View: rows of one table of the configuration, as written, with what is known against them. Shows no value of a bad row.

export interface ShownRow {
  key: string | number;
  /** Without notes and marks. Undefined: the row has a problem, so one of its values may be a secret. */
  row: RawRow | undefined;
  problem?: string | undefined;
  warning?: string | undefined;
  /** Who wrote it last, and when, as far as the row says it. */
  by?: string | undefined;
  at?: string | undefined;
}

/** Sorted by key. */
export async function listRows(ports: Ports, table: ConfigTable): Promise<ShownRow[]> {
  const rows = await ports.config.tables();
  const found = new Map(findingsInTables(rows, ports).map((finding) => [nameOf(finding), finding]));
  return rows[table]
    .map((raw): ShownRow => {
      const key = attributeOf(raw, keyAttributes[table]) as string | number;
      const { problem, warning } = found.get(nameOf({ table, key })) ?? {};
      return {
        key,
        row: problem === undefined ? (plainRow(raw) as RawRow) : undefined,
        problem,
        warning,
        by: textOf(attributeOf(raw, '_by')),
        at: textOf(attributeOf(raw, '_at')),
      };
    })
    .toSorted((a, b) => Number(a.key) - Number(b.key) || compareCodeUnits(String(a.key), String(b.key)));
}

/** Throws a Failure if there is no such row. */
export async function showRow(ports: Ports, { table, key }: RowName): Promise<ShownRow> {
  const found = (await listRows(ports, table)).find((each) => each.key === key);
  if (found) return found;
  throw usageFailure(`there is no ${nameOf({ table, key })}: see \`${table.slice(0, -1)} list\``);
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
