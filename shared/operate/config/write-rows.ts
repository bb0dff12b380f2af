/**
 * Puts rows into the configuration tables: those of a file, of an earlier version, or one row. Writes only differences, on
 * condition that nobody changed them since, and nothing if a row to write has a problem. `carryOutWrites` carries the plans out;
 * then the rows are waited for until they are published.
 */
import { listChannelSecrets } from '../../config/rows/channel-row.ts';
import { attributeOf, plainRow, textOf } from '../../config/rows/read-row.ts';
import { priceKinds, startMsOf } from '../../billing/price.ts';
import { keyAttributes, joinNames, type ConfigRows, type ConfigTable } from '../../config/rows/read-table.ts';
import { isoTime } from '../../wire/iso-time.ts';
import { findLaterRules, readCharges, refuseChanged, refuseNaming, fingerprintRow } from '../rows.ts';
import { readSetting } from '../../config/setting-rows.ts';
import {
  allowVariable,
  formatParameterName,
  buildSecretPath,
  storedName,
  usualVariable,
} from '../../config/rows/secret-reference.ts';
import { compareCodeUnits, listTexts } from '../../wire/json.ts';
import type { OperatorPorts, PublishedVersion, RawRow, RowWrite } from '../operator-ports.ts';
import { normalizeMoments } from '../moment.ts';
import { formatCount, Failure, usageFailure } from '../plan.ts';
import { addGroupWarnings } from './group-warnings.ts';
import {
  listBadRows,
  changesBetween,
  compileRows,
  configTables,
  differencesOf,
  findProblems,
  findProblemsInTables,
  nameOf,
  problemsOf,
  putOver,
  indexRows,
  listSecretUses,
  findUnlistedVariables,
  warningsOf,
  type ConfigEdit,
  type Finding,
  type RowDifference,
} from './row-changes.ts';

/** `problems` of rows that are not `written` exist in the tables already and do not prevent the writes. */
export type ConfigPlan = ReturnType<typeof planRows>;

/** Plans to restore the rows of an earlier version and to delete served rows that it lacks. */
export async function planRollback(ports: OperatorPorts, version: number): Promise<ConfigPlan> {
  const { config } = ports;
  const [goal, newest] = await Promise.all([config.version(version), config.newest()]);
  const after = { ...(await config.rows(goal)) };
  const before = await config.tables();
  const earlier = newest && (await config.rows(newest));
  const { rows: used } = compileRows(ports, before, { earlier });
  // Keep rows that are neither served nor in that version: they may be unfinished work.
  for (const table of configTables) {
    const [served, known] = [indexRows(table, used[table]), indexRows(table, after[table])];
    const rows = [...indexRows(table, before[table])];
    const unused = rows.flatMap(([key, row]) => (served.has(key) || known.has(key) ? [] : [row]));
    after[table] = [...after[table], ...unused];
  }
  const plan = await addGroupWarnings(ports, planRows(ports, { before, after }, after));
  if (goal.version !== newest?.version) return plan;
  const isSame = plan.changes.length === 0;
  const said = isSame ? 'nothing to change' : 'edits that are not in use yet would be undone';
  return {
    ...plan,
    effect: [`Version ${version} is already in use: ${said}.`, ...(isSame ? [] : plan.effect)],
  };
}

/**
 * `brought`: the warnings that there are afterwards and were not before; a price that jumps is one. `warnings`: those of written rows, too.
 * @param trusted rows of an earlier version: like those of before, they may name secrets whose paths name no purpose
 */
export function planRows(ports: OperatorPorts, edit: ConfigEdit, trusted: ConfigRows = edit.before) {
  const { before, after } = edit;
  const changes = changesBetween(before, after);
  const oldUses = listSecretUses(new Set([before, trusted]));
  const findings = findProblems(after, ports, { pricesBefore: before.charges, oldUses });
  // Without marks, as the rows after it are: what a probe found hides a warning.
  const earlier = findProblems(putOver(before, {}), ports);
  const known = new Set(warningsOf(earlier).map(identifyWarning));
  const isBrought = (finding: Finding): boolean => !known.has(identifyWarning(finding));
  const warned = warningsOf(findings);
  const written = new Set(changes.filter(({ change }) => change !== 'removed').map(nameOf));
  const problems = problemsOf(findings).map((finding) => ({
    finding,
    written: written.has(nameOf(finding)),
  }));
  const isClosing = closesRelay(changes, edit);
  const effects = [...(isClosing ? [closing] : []), ...findLaterTakeovers(changes, after, ports.clock.now())];
  const told = warned.filter((finding) => written.has(nameOf(finding)) || isBrought(finding));
  const others = warned.length - told.length;
  const refused = problems.filter((each) => each.written).length;
  const removed = changes.length - written.size;
  const counts = `Save ${formatCount(written.size, 'row')}${removed > 0 ? `, delete ${removed}` : ''}`;
  return {
    changes: writesOf(changes, before),
    effect: [changes.length > 0 ? counts : 'Nothing to change.'],
    questions: changes.length === 0 ? [] : [isClosing ? 'Close the relay?' : 'Save these changes?'],
    ...(refused > 0 && {
      refusal: `nothing was written: ${formatCount(refused, 'row is', 'rows are')} invalid`,
    }),
    differences: differencesOf(changes, listBadRows([...findings, ...earlier])),
    brought: [...warned.filter(isBrought).map(describeWarning), ...effects],
    warnings: listTexts(
      ...told.map(describeWarning),
      ...effects,
      others > 0 &&
        changes.length > 0 &&
        `${formatCount(others, 'other row has', 'other rows have')} warnings, as before: see \`check\``,
    ),
    problems,
    edit,
  };
}

const closing = 'all calls of all customers are refused until you open the relay again';

/** One row stands between a slip and an outage, whichever way it is written, so the plan says what it does. */
function closesRelay(changes: readonly RowDifference[], { before, after }: ConfigEdit): boolean {
  if (!changes.some(({ table, key }) => table === 'settings' && key === 'relay_closed')) return false;
  return isClosed(after) && !isClosed(before);
}

/** A row that cannot be read closes the relay, too. */
function isClosed({ settings }: ConfigRows): boolean {
  const row = settings.find((each) => attributeOf(each, 'name') === 'relay_closed');
  if (row === undefined) return false;
  const reading = readSetting(row);
  return !('row' in reading) || reading.row.relayClosed === true;
}

/** A rule that was announced earlier takes a price over at its time, whatever is written now, so it is named. */
function findLaterTakeovers(
  changes: readonly RowDifference[],
  { charges }: ConfigRows,
  nowMs: number,
): string[] {
  const rules = readCharges(charges as RawRow[]).charges;
  const priceNames = new Set<string>([
    'type',
    'models',
    'from',
    'tiers',
    'service_tiers',
    'windows',
    ...priceKinds.map(([name]) => name),
  ]);
  const isRepriced = ({ table, change, attributes }: RowDifference): boolean =>
    table === 'charges' && change !== 'removed' && attributes.some(({ name }) => priceNames.has(name));
  return changes.filter(isRepriced).flatMap((change) => {
    const rule = rules.find(({ id }) => id === change.key);
    const later = rule && findLaterRules(rules, rule.models, Math.max(nowMs, startMsOf(rule)));
    return (later ?? []).map((each) => {
      const models = each.models.filter((model) => rule?.models.includes(model));
      return `${nameOf(change)}: the announced rule ${each.id} will replace the price of ${joinNames(models)} at ${isoTime(startMsOf(each))}`;
    });
  });
}

const describeWarning = (finding: Finding): string => `${nameOf(finding)}: ${finding.warning}`;

/** The store returns members of maps in any order, so the parts of a warning have no fixed order either. */
const identifyWarning = (finding: Finding): string =>
  `${nameOf(finding)}: ${finding.warning?.split('; ').toSorted().join('; ')}`;

/**
 * Prices are written before the channels that serve the priced models, and new rules before those that they take models from;
 * otherwise calls in between would be free. Deletions come last, in reverse order.
 */
const writeOrder: ConfigTable[] = ['charges', 'plans', 'settings', 'channels'];

const rankOf = ({ table, change }: RowDifference): number =>
  change === 'removed'
    ? 2 * writeOrder.length - writeOrder.indexOf(table)
    : writeOrder.indexOf(table) - (change === 'added' ? 0.5 : 0);

/**
 * Builds writes that change only the attributes that differ.
 * @param raw the rows that the changes are based on, as read from the tables
 */
function writesOf(changes: RowDifference[], raw: ConfigRows): RowWrite[] {
  const ordered = changes.toSorted((a, b) => rankOf(a) - rankOf(b));
  return ordered.map((change, index): RowWrite => {
    const { table } = change;
    const conflict = new Failure(
      `someone else changed ${nameOf(change)} in the meantime; ${index} of ${ordered.length} rows are saved. ` +
        'Re-run the command to see what still differs',
    );
    const keyName = keyAttributes[table];
    const key = { [keyName]: change.key };
    const attributes = Object.fromEntries(change.attributes.map(({ name, after }) => [name, after]));
    if (change.change === 'added') return { kind: 'create', table, row: attributes, conflict };
    const row = raw[table].find((each) => attributeOf(each, keyName) === change.key) as RawRow;
    const valuesOf = (names: string[]): RawRow => Object.fromEntries(names.map((name) => [name, row[name]]));
    if (change.change === 'removed') {
      const names = Object.keys(row).filter((name) => name !== keyName && !name.startsWith('_'));
      return { kind: 'remove', table, key, unchanged: valuesOf(names), conflict };
    }
    return { kind: 'update', table, key, attributes, unchanged: valuesOf(Object.keys(attributes)), conflict };
  });
}

interface RowName {
  table: ConfigTable;
  key: string | number;
}

interface RowEdit extends RowName {
  /** An undefined attribute is removed; others stay. */
  attributes: RawRow;
  /** `fingerprintRow` of the row that the operator saw. If present, a changed row is not overwritten. */
  seen?: string | undefined;
  /** Require a new or an existing row. By default a missing row is created. */
  isNew?: boolean | undefined;
}

/**
 * Sets attributes of one row, or makes it. Refuses what the relay would not use, and says what else the change brings about: the
 * warnings that this and other rows would get by it.
 * @param rows of the tables, where they were read already
 */
export async function planSetRow(
  ports: OperatorPorts,
  { table, key, attributes: typed, seen, isNew }: RowEdit,
  rows?: ConfigRows,
): Promise<ConfigPlan> {
  refuseNaming(typed, { [keyAttributes[table]]: key });
  const attributes = normalizeMoments(typed, ports.clock.now());
  const name = nameOf({ table, key });
  const noun = `${table.slice(0, -1)} ${key}`;
  const before = rows ?? (await ports.config.tables());
  const found = findRow(before, { table, key });
  if (isNew === true && found) throw usageFailure(`${noun} already exists`);
  if (isNew === false && !found) throw noRow({ table, key });
  if (found) refuseChanged(name, found, seen);
  const typedRow = { ...(plainRow(found ?? {}) as RawRow), ...attributes, [keyAttributes[table]]: key };
  const row = normalizeRow(table === 'channels' ? expandSecretNames(ports, typedRow) : typedRow);
  const plan = await addGroupWarnings(ports, planPutting(ports, before, { table, rows: [row] }));
  const effect =
    plan.changes.length === 0
      ? 'Nothing to change.'
      : `${found ? 'Update' : 'Create'} ${noun} (live within 10 s)`;
  const variable = findNewVariable(ports, { table, attributes, before });
  return { ...plan, effect: [effect, ...variable] };
}

/** Expands a bare name to the reference of the secret that is stored under it for the row's host. */
function expandSecretNames({ target: { stack, local } }: OperatorPorts, row: RawRow): RawRow {
  const names = listChannelSecrets(row);
  if (local || !names.some(({ reference }) => storedName.test(reference))) return row;
  const references = names.map(({ reference: name, ...use }) =>
    storedName.test(name) ? `ssm:${formatParameterName(stack, buildSecretPath(use, name))}` : name,
  );
  return { ...row, secret: references.length > 1 ? references : references[0] };
}

/** Sets attributes of many rows of a table, or makes them. Refuses all where the relay would not use one. */
export async function planSetRows(
  ports: OperatorPorts,
  table: ConfigTable,
  edits: readonly Pick<RowEdit, 'key' | 'attributes'>[],
): Promise<ConfigPlan> {
  const before = await ports.config.tables();
  const rows = edits.map(({ key, attributes }) => {
    const found = plainRow(findRow(before, { table, key }) ?? {}) as RawRow;
    return normalizeRow({ ...found, ...attributes, [keyAttributes[table]]: key });
  });
  return planPutting(ports, before, { table, rows, isNamed: true });
}

/**
 * Puts rows over those of the tables. Refuses all where the relay would not use one; warns of what this and other rows would be
 * warned of by it.
 * @param isNamed a refusal says which row it is of
 */
export function planPutting(
  ports: OperatorPorts,
  before: ConfigRows,
  { table, rows, isNamed = false }: { table: ConfigTable; rows: RawRow[]; isNamed?: boolean },
): ConfigPlan {
  const plan = planRows(ports, { before, after: putOver(before, { [table]: rows }) });
  const wrong = plan.problems.find(({ written }) => written)?.finding;
  // A mark says what holds until its row is mended. Of an edit that is refused nothing holds: nothing was written.
  const problem = wrong?.problem?.replace(/; until .*$/s, '');
  if (wrong) throw usageFailure(isNamed ? `${nameOf(wrong)}: ${problem}` : `${problem}`);
  return { ...plan, warnings: plan.brought };
}

/**
 * Only the running stack knows which variables it may read. A variable that another row names is probably one of
 * them.
 */
function findNewVariable(
  { target }: OperatorPorts,
  { table, attributes, before }: Pick<RowEdit, 'table' | 'attributes'> & { before: ConfigRows },
): string[] {
  if (!target.local || table !== 'channels') return [];
  const isKnown = (name: string): boolean =>
    name === usualVariable || before.channels.some((row) => listVariables(row).includes(name));
  return listVariables(attributes)
    .filter((name) => !isKnown(name))
    .map(
      (name) =>
        `env:${name} works only if \`npm start\` ran with this variable and with ${allowVariable(name)}`,
    );
}

const listVariables = (row: unknown): string[] =>
  [attributeOf(row, 'secret')]
    .flat()
    .flatMap((each) => (typeof each === 'string' ? (/^env:(\w+)$/.exec(each)?.[1] ?? []) : []));

/** As it would be read from a file: what is undefined is left out, at any depth. */
export const normalizeRow = (row: RawRow): RawRow => JSON.parse(JSON.stringify(row)) as RawRow;

/** @param seen `fingerprintRow` of the row that the operator saw */
export async function planRemoveRow(ports: OperatorPorts, name: RowName, seen?: string): Promise<ConfigPlan> {
  const before = await ports.config.tables();
  const found = findRow(before, name);
  if (!found) throw noRow(name);
  refuseChanged(nameOf(name), found, seen);
  const after = { ...before, [name.table]: before[name.table].filter((each) => each !== found) };
  const plan = planRows(ports, { before, after });
  return addGroupWarnings(ports, {
    ...plan,
    effect: [
      `Delete ${name.table.slice(0, -1)} ${name.key} (live within 10 s; undo with \`version rollback\`)`,
    ],
    warnings: plan.brought,
  });
}

const noRow = ({ table, key }: RowName): Failure =>
  usageFailure(
    table === 'settings'
      ? `setting ${key} has no row: it has its default, or does not exist (see docs/tables.md)`
      : `no ${table.slice(0, -1)} ${key}: see \`${table.slice(0, -1)} list\``,
  );

const findRow = (rows: ConfigRows, { table, key }: RowName): unknown =>
  rows[table].find((row) => attributeOf(row, keyAttributes[table]) === key);

/** View: a row as written, with what is known against it, and who wrote it last. */
export type ShownRow = Awaited<ReturnType<typeof listRows>>[number];

export async function listRows(ports: OperatorPorts, table: ConfigTable) {
  const rows = await ports.config.tables();
  const found = new Map(findProblemsInTables(rows, ports).map((finding) => [nameOf(finding), finding]));
  return rows[table]
    .map((raw) => {
      const key = attributeOf(raw, keyAttributes[table]) as string | number;
      const { problem, warning } = found.get(nameOf({ table, key })) ?? {};
      return {
        key,
        // Without notes and marks. Of a row with a problem, one of the values may be a secret.
        row: problem === undefined ? (plainRow(raw) as RawRow) : undefined,
        problem,
        warning,
        mark: fingerprintRow(raw),
        by: textOf(raw, '_by') || undefined,
        at: textOf(raw, '_at') || undefined,
      };
    })
    .toSorted((a, b) => Number(a.key) - Number(b.key) || compareCodeUnits(String(a.key), String(b.key)));
}

export async function showRow(ports: OperatorPorts, name: RowName): Promise<ShownRow> {
  const found = (await listRows(ports, name.table)).find((each) => each.key === name.key);
  if (!found) throw noRow(name);
  return found;
}

const pauseMs = 300;

/**
 * Waits until the newest version contains the current rows of the tables. Throws a Failure after
 * `waitSeconds`.
 * @returns that version; undefined if `waitSeconds` is 0, because nothing is read then
 */
export async function awaitPublished(
  ports: OperatorPorts,
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
        `the rows are saved but were not published within ${waitSeconds} s: ` +
          (findUnlistedVariables((await config.tables()).channels, ports.target)
            .map((finding) => `${nameOf(finding)}: ${finding.problem}`)
            .join('; ') || 'see `version list` and the log of the function `config`'),
      );
    await clock.sleep(pauseMs);
  }
}

export async function isPublished(ports: OperatorPorts, version: PublishedVersion): Promise<boolean> {
  const [earlier, tables] = await Promise.all([ports.config.rows(version), ports.config.tables()]);
  return changesBetween(earlier, compileRows(ports, tables, { earlier }).rows).length === 0;
}
