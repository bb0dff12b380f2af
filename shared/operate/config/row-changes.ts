/**
 * The configuration as an operator's edit sees it: rows of a file, what is found about rows, and the differences between two
 * configurations. Shows no value of a row with a problem that may be a secret.
 */
import * as z from 'zod/mini';
import { compileSnapshot, type Compiled } from '../../config/compile-snapshot.ts';
import { addStackWarnings } from '../../config/cross-checks.ts';
import { listChannelSecrets } from '../../config/rows/channel-row.ts';
import { attributeOf, plainRow } from '../../config/rows/read-row.ts';
import { keyAttributes, type ConfigRows, type ConfigTable } from '../../config/rows/read-table.ts';
import {
  isOfStack,
  findStackProblem,
  formatUseKey,
  type NamedSecret,
  type ReferenceRules,
} from '../../config/rows/secret-reference.ts';
import { readSetting, listSettingSecrets } from '../../config/setting-rows.ts';
import type { TableName } from '../../tables/table-names.ts';
import { tableSchemas, type KeyAttribute } from '../../tables/table-schemas.ts';
import { canonicalJson, compareCodeUnits, looksSecret, neverQuoted } from '../../wire/json.ts';
import type { OperatorPorts, RawRow } from '../operator-ports.ts';
import { usageFailure } from '../plan.ts';

export const configTables = Object.keys(keyAttributes) as ConfigTable[];

/** Values are JSON, without notes and marks. Of an added row all attributes are in it, of a removed one too. */
export interface RowDifference {
  table: ConfigTable;
  key: string | number;
  change: 'added' | 'changed' | 'removed';
  attributes: AttributeChange[];
}

interface AttributeChange {
  name: string;
  before?: unknown;
  after?: unknown;
}

/** Sorted by table in the order of `configTables`, then by key. */
export function changesBetween(before: ConfigRows, after: ConfigRows): RowDifference[] {
  return configTables.flatMap((table) => {
    const [old, next] = [indexRows(table, before[table]), indexRows(table, after[table])];
    const keys = [...new Set([...old.keys(), ...next.keys()])].toSorted(compareCodeUnits);
    return keys.flatMap((key): RowDifference[] => {
      const [oldRow, nextRow] = [old.get(key), next.get(key)];
      const attributes = compareAttributes(oldRow, nextRow);
      if (attributes.length === 0) return [];
      return [{ table, key, change: !oldRow ? 'added' : nextRow ? 'changed' : 'removed', attributes }];
    });
  });
}

const compareAttributes = (before: RawRow = {}, after: RawRow = {}): AttributeChange[] =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .toSorted()
    .map((name) => ({ name, before: before[name], after: after[name] }))
    .filter((change) => canonicalJson(change.before) !== canonicalJson(change.after));

/**
 * In a form that is safe to show: in a row with a problem, without values that may be secrets.
 * @param bad names of rows with a problem; one of these may have a secret in a wrong attribute
 */
export const differencesOf = (changes: RowDifference[], bad: ReadonlySet<string>): RowDifference[] =>
  changes.map(({ table, key, change, attributes }) => {
    const isBad = bad.has(nameOf({ table, key }));
    const shown = attributes.map((each) =>
      isBad && !(mayBeShown(each.name, each.before) && mayBeShown(each.name, each.after))
        ? { name: each.name }
        : each,
    );
    return { table, key, change, attributes: shown };
  });

/** An attribute that is not known may be a misspelt one, such as `api_key`. */
const soundsSecret = /secret|key|token|pass|auth|header|credential/i;
/** A query or user name in a URL, or a long text without blanks, may be a secret. */
const mayHoldSecret = /\?|:\/\/[^/"]*@|[\w+=~-]{20,}/;
/** Names of models are long. */
const namesModels = new Set(['models', 'mapper']);

/** People paste keys into the wrong attribute, so a value that may be a secret is not shown. */
function mayBeShown(name: string, value: unknown): boolean {
  if (neverQuoted.has(name) || soundsSecret.test(name)) return false;
  const text = JSON.stringify(value) ?? '';
  return !looksSecret.test(text) && (namesModels.has(name) || !mayHoldSecret.test(text));
}

/** Rows by key. The rows are JSON, without notes and marks. */
export function indexRows(table: ConfigTable, rows: unknown[]): Map<string | number, RawRow> {
  return new Map(
    rows.map((raw) => {
      const row = plainRow(raw) as RawRow;
      return [row[keyAttributes[table]] as string | number, row];
    }),
  );
}

/** `problem`: why the row, or this version of it, is not used. */
export interface Finding {
  table: string;
  key: string;
  problem?: string | undefined;
  warning?: string | undefined;
}

/** `earlier`: rows of the newest version, used in place of rows with a problem. `pricesBefore`: else those of `earlier`. */
interface Compared extends Pick<ReferenceRules, 'oldUses'> {
  earlier?: ConfigRows | undefined;
  pricesBefore?: readonly unknown[];
  unreadableSecrets?: ReadonlyMap<string, string>;
}

/** As the function `config` would make it now of these rows. */
export const compileRows = (
  { clock, target }: Pick<OperatorPorts, 'clock' | 'target'>,
  rows: ConfigRows,
  { earlier, ...compared }: Compared = {},
): Compiled =>
  compileSnapshot(rows, {
    local: target.local,
    envSecrets: target.envSecrets,
    owners: target.owners,
    publishedAt: Math.floor(clock.now() / 1000),
    ...(earlier && { earlier }),
    ...compared,
  });

/** Plans and settings as they would be published now, without a reading of prices and channels. */
export async function compileSettings(ports: OperatorPorts) {
  const [plans, settings] = await Promise.all([ports.tables.scan('plans'), ports.tables.scan('settings')]);
  return compileRows(ports, { channels: [], charges: [], plans, settings }).snapshot;
}

/** The secrets that rows name, without those of invalid settings. */
export const listSecrets = ({
  channels,
  settings,
}: Pick<ConfigRows, 'channels' | 'settings'>): NamedSecret[] => [
  ...channels.flatMap(listChannelSecrets),
  ...settings.flatMap((raw) => {
    const reading = readSetting(raw, { local: true });
    return 'row' in reading ? listSettingSecrets(reading.row) : [];
  }),
];

/** The uses of secrets in these rows, as `ReferenceRules` takes them. */
export const listSecretUses = (versions: ReadonlySet<ConfigRows>): Set<string> =>
  new Set([...versions].flatMap(listSecrets).map(formatUseKey));

/** The rows of the newest version, if any was published. */
export async function readServedRows({ config }: OperatorPorts): Promise<ConfigRows | undefined> {
  const newest = await config.newest();
  return newest && config.rows(newest);
}

/** Compiles the rows and returns a finding for each row with a problem or a warning. */
export function findProblems(rows: ConfigRows, ports: OperatorPorts, compared: Compared = {}): Finding[] {
  const { stack } = ports.target;
  const compiled = compileRows(ports, rows, compared);
  const references = compiled.snapshot.channels.flatMap(listChannelSecrets);
  const foreign = references.map(({ reference }) => reference).filter((each) => !isOfStack(each, stack));
  const unreadableSecrets = new Map(foreign.map((each) => [each, `stack ${stack} can't read it`]));
  const { results } =
    foreign.length === 0 ? compiled : compileRows(ports, rows, { ...compared, unreadableSecrets });
  return results.flatMap(({ key, ...result }) =>
    result.problem === undefined && result.warning === undefined ? [] : [{ ...result, key: String(key) }],
  );
}

/** As `findProblems`, for rows as they stand in the tables: also what the running stack alone knows, by its marks. */
export function findProblemsInTables(rows: ConfigRows, ports: OperatorPorts, compared?: Compared): Finding[] {
  const findings = new Map(findProblems(rows, ports, compared).map((finding) => [nameOf(finding), finding]));
  const marked = findUnlistedVariables(rows.channels, ports.target);
  for (const finding of [...marked, ...rows.channels.map((raw) => findStackWarning(raw, findings))])
    if (finding && findings.get(nameOf(finding))?.problem === undefined)
      findings.set(nameOf(finding), finding);
  return [...findings.values()];
}

function findStackWarning(raw: unknown, findings: ReadonlyMap<string, Finding>): Finding | undefined {
  const name = { table: 'channels', key: String(attributeOf(raw, 'id')) };
  const warning = addStackWarnings(raw, findings.get(nameOf(name))?.warning);
  return warning === undefined ? undefined : { ...name, warning };
}

export const findUnlistedVariables = (channels: readonly unknown[], rules: { local: boolean }): Finding[] =>
  channels.flatMap((raw): Finding[] => {
    const problem = findStackProblem(raw, rules);
    return problem === undefined ? [] : [{ table: 'channels', key: String(attributeOf(raw, 'id')), problem }];
  });

export const nameOf = ({ table, key }: { table: string; key: string | number }): string => `${table} ${key}`;

export const problemsOf = (findings: Finding[]): Finding[] =>
  findings.filter(({ problem }) => problem !== undefined);

export const warningsOf = (findings: Finding[]): Finding[] =>
  findings.filter(({ warning }) => warning !== undefined);

export const listBadRows = (findings: Finding[]): Set<string> => new Set(problemsOf(findings).map(nameOf));

export const findConfigProblems = async (ports: OperatorPorts): Promise<Finding[]> =>
  findProblemsInTables(await ports.config.tables(), ports);

/** Warnings that a channel's row will get, such as models without a price. */
export async function findChannelWarnings(ports: OperatorPorts, row: RawRow): Promise<string[]> {
  const rows = putOver(await ports.config.tables(), { channels: [row] });
  return findProblems(rows, ports).flatMap(({ table, key, warning }) =>
    table === 'channels' && key === row['id'] && warning !== undefined ? [warning] : [],
  );
}

/** `{"channels": [{...}], ...}`. Messages never quote it: it may contain secrets. */
export interface RowsFile {
  name: string;
  text: string;
}

/** Rows by table; a table that the file does not name is undefined. */
type FileRows<Table extends TableName> = { [Name in Table]?: RawRow[] };

const File = z.record(z.string(), z.array(z.record(z.string(), z.unknown())));

/** Returns the rows without notes and marks. Throws a Failure that describes the first mistake. */
export function readRowsFile<Table extends TableName>(
  { name, text }: RowsFile,
  tables: readonly Table[],
): FileRows<Table> {
  const content = z.safeParse(File, parseFile(name, text));
  if (!content.success)
    throw usageFailure(`${name}: expected lists of rows by table: {"channels": [{"id": ...}], ...}`);
  const rows: FileRows<Table> = {};
  for (const [tableName, found] of Object.entries(content.data)) {
    const table = tables.find((each) => each === tableName);
    if (table === undefined)
      throw usageFailure(`${name}: unknown table ${tableName}, expected only ${tables.join(', ')}`);
    rows[table] = found.map((raw) => plainRow(raw) as RawRow);
    checkKeys(name, table, rows[table]);
  }
  return rows;
}

/** The tables before and after an edit. */
export interface ConfigEdit {
  before: ConfigRows;
  after: ConfigRows;
}

/** @param prune without the rows that the file lacks, in the tables that it names */
export async function editByFile(
  ports: OperatorPorts,
  file: RowsFile,
  prune: boolean | undefined,
): Promise<ConfigEdit> {
  const rows = readRowsFile(file, configTables);
  const before = await ports.config.tables();
  return { before, after: prune ? { ...before, ...rows } : putOver(before, rows) };
}

/** Adds the file's rows to `rows`; a row of the file replaces the row with the same key. */
export function putOver(rows: ConfigRows, file: FileRows<keyof ConfigRows>): ConfigRows {
  const tables = configTables.map((table) => {
    const all = [...indexRows(table, rows[table]), ...indexRows(table, file[table] ?? [])];
    return [table, [...new Map(all).values()]];
  });
  return Object.fromEntries(tables) as ConfigRows;
}

function parseFile(name: string, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // The parser's message quotes the file, so only the position is reported.
    const at = /at position \d+( \(line \d+ column \d+\))?/.exec(error instanceof Error ? error.message : '');
    throw usageFailure(`${name} is not valid JSON${at ? `, ${at[0]}` : ''}`);
  }
}

export function keysOf(table: TableName): KeyAttribute[] {
  const schema: { partitionKey: KeyAttribute; sortKey?: KeyAttribute } = tableSchemas[table];
  return [schema.partitionKey, schema.sortKey ?? []].flat();
}

/** Throws a Failure for a row without a key, and for two rows with the same key. */
function checkKeys(file: string, table: TableName, rows: RawRow[]): void {
  const names = keysOf(table);
  const seen = new Set<string>();
  for (const [index, row] of rows.entries()) {
    const where = `${file}: ${table}[${index}]`;
    for (const { name, type } of names) {
      const value = row[name];
      const wanted = type === 'N' ? 'number' : 'text';
      const isKey = type === 'N' ? typeof value === 'number' : typeof value === 'string' && value !== '';
      if (!isKey) throw usageFailure(`${where}.${name}: missing key, expected a ${wanted}`);
    }
    const key = JSON.stringify(names.map(({ name }) => row[name]));
    if (seen.has(key)) throw usageFailure(`${where}: duplicate key`);
    seen.add(key);
  }
}
