/**
 * Many rows at once: keys, customers or prices as a sheet of CSV, with a column for each field of its row, a key and a mark. What comes
 * back from a spreadsheet is compared with the rows and planned. A row that somebody else wrote since is named and nothing is
 * written; what has no column stays. Rows are made here, but for keys, and never deleted.
 */
import { plainRow } from '../../../shared/config/rows/read-row.ts';
import { planSetRows, type ConfigPlan } from '../../../shared/operate/config/write-rows.ts';
import { planEditAccount } from '../../../shared/operate/customers/edit-account.ts';
import { planEditKey } from '../../../shared/operate/keys/edit-key.ts';
import { judgeKey } from '../../../shared/operate/keys/list-keys.ts';
import type { OperatorPorts, RawRow, RowWrite } from '../../../shared/operate/operator-ports.ts';
import {
  formatCount,
  deniedExitCode,
  Failure,
  usageFailure,
  type Plan,
} from '../../../shared/operate/plan.ts';
import { refuseChanged, fingerprintRow } from '../../../shared/operate/rows.ts';
import { canonicalJson, compareCodeUnits } from '../../../shared/wire/json.ts';
import { parseCsvLines, formatCsv, delimiterOf } from '../csv.ts';
import { formatCell } from '../markup.ts';
import { accountFields } from './account-fields.ts';
import { existingKeyFields } from './key-fields.ts';
import { makeFlag, fillFields, parseTypedNumber, writeTypedRow, type RowField } from './row-field.ts';
import { ruleFields } from './rule-fields.ts';

/** A row as it is to be. `found`: as it is. */
interface SheetEdit {
  key: string | number;
  attributes: RawRow;
  found: RawRow | undefined;
}

export interface Sheet {
  table: 'keys' | 'accounts' | 'charges';
  key: string;
  /** Shown beside the fields, and not read back. */
  extraColumns: readonly string[];
  fields: readonly RowField[];
  /** A row that cannot be read may hold a secret anywhere. */
  isShown?: (row: RawRow, nowMs: number) => boolean;
  plan: (ports: OperatorPorts, edits: readonly SheetEdit[]) => Promise<Plan<RowWrite> | ConfigPlan>;
}

export const keySheet: Sheet = {
  table: 'keys',
  key: 'hash',
  extraColumns: ['hint'],
  fields: [makeFlag('enabled', '', ''), ...existingKeyFields],
  isShown: (row, nowMs) => judgeKey(row, nowMs).state !== 'invalid',
  plan: (ports, edits) =>
    planEachRow(edits, ({ key, attributes, found }) => {
      if (!found) throw usageFailure('no key with this hash: create keys with `key new`');
      return planEditKey(ports, String(key), attributes);
    }),
};

export const customerSheet: Sheet = {
  table: 'accounts',
  key: 'account',
  extraColumns: [],
  fields: accountFields,
  plan: (ports, edits) =>
    planEachRow(edits, ({ key, attributes, found }) =>
      planEditAccount(ports, { account: String(key), attributes, isNew: !found }),
    ),
};

/** Prices are for a million tokens, as in the forms. */
export const ruleSheet: Sheet = {
  table: 'charges',
  key: 'id',
  extraColumns: [],
  fields: ruleFields,
  plan: (ports, edits) => planSetRows(ports, 'charges', edits),
};

/** The column that says how a row was when it was exported. */
export const markColumn = '_seen';

/** @param text only rows whose key or name has it; empty: all */
export async function readSheetLines(
  { tables, clock }: OperatorPorts,
  { table, key, fields, extraColumns: shown, isShown = () => true }: Sheet,
  text = '',
): Promise<{ header: string; lines: string[] }> {
  const own = [key, ...shown];
  const nowMs = clock.now();
  const rows = (await tables.scan(table))
    .filter(
      (row) => isShown(row, nowMs) && [...own, 'account'].some((name) => String(row[name]).includes(text)),
    )
    .toSorted((a, b) => Number(a[key]) - Number(b[key]) || compareCodeUnits(String(a[key]), String(b[key])));
  return {
    header: formatCsv([[...own, ...fields.map(({ name }) => name), markColumn]]),
    lines: rows.map((row) => formatCsv([[...cellsOf(row, own, fields), fingerprintRow(row)]])),
  };
}

const cellsOf = (row: RawRow, plain: readonly string[], fields: readonly RowField[]): string[] => [
  ...plain.map((name) => formatCell(row[name])),
  ...fillFields(fields, row).map(({ value = '' }) => value.replaceAll(/\s*\n\s*/g, ' ')),
];

/**
 * Plans what differs from the rows: no changes where nothing does. Throws a usage failure at the first line that cannot be read.
 * @param max rows that may differ
 */
export async function planSheet(
  ports: OperatorPorts,
  sheet: Sheet,
  { csv, max }: { csv: string; max: number },
): Promise<Plan<RowWrite> | ConfigPlan> {
  const { table, key, fields } = sheet;
  const [header, ...lines] = parseCsvLines(csv, delimiterOf(csv));
  const names = header?.cells ?? [];
  if (!names.includes(key)) throw usageFailure(`csv: missing column ${key}: keep the header line as it was`);
  const given = fields.filter(({ name }) => names.includes(name));
  const rows = new Map((await ports.tables.scan(table)).map((row) => [String(row[key]), row]));
  const seen = new Set<string>();
  const edits = lines.flatMap(({ number, cells }): SheetEdit[] => {
    const readCell = (name: string): string => cells[names.indexOf(name)] ?? '';
    const readText = (name: string): string => removeQuote(readCell(name));
    // A spreadsheet writes the number 41 as `41.0`, too.
    const named = table === 'charges' ? (parseTypedNumber(readText(key)) ?? '') : readText(key);
    const id = String(named);
    if (id === '' || seen.has(id)) throw explainLine(number, id ? `duplicate ${id}` : `missing ${key}`);
    seen.add(id);
    const found = rows.get(id);
    try {
      // A value that a spreadsheet only writes differently, such as a note of two lines, has not changed.
      const own = found && parseCsvLines(formatCsv([cellsOf(found, [], given)]), ',')[0]?.cells;
      const changed = given.filter(({ name }, at) => !found || readCell(name) !== (own?.[at] ?? ''));
      const texts = new Map(changed.map(({ name }) => [name, readText(name)]));
      const attributes = findChanges(found ?? {}, writeTypedRow(fields, texts, found));
      if (found && Object.keys(attributes).length === 0) return [];
      if (found && readText(markColumn) !== '') refuseChanged(id, found, readText(markColumn));
      return [{ key: named, attributes, found }];
    } catch (error) {
      throw error instanceof Failure ? explainLine(number, error.message) : error;
    }
  });
  if (edits.length === 0) return { changes: [], effect: ['Nothing to change.'], questions: [] };
  if (edits.length > max)
    throw usageFailure(`csv: ${formatCount(edits.length, 'row')} differ, wanted at most ${max} at once`);
  return sheet.plan(ports, edits);
}

/** A spreadsheet's quote before what it would run. */
const removeQuote = (cell: string): string => (/^'[=+\-@]/.test(cell) ? cell.slice(1) : cell);

const findChanges = (row: RawRow, attributes: RawRow): RawRow => {
  const before = plainRow(row) as RawRow;
  return Object.fromEntries(
    Object.entries(attributes).filter(
      ([name, value]) => canonicalJson(before[name] ?? null) !== canonicalJson(value ?? null),
    ),
  );
};

const explainLine = (number: number, words: string): Failure =>
  usageFailure(`csv: line ${number}: ${words.replaceAll('; ', ', ')}`);

/** The plans of single rows as one. Each is written on the condition that nobody changed it since. */
async function planEachRow(
  edits: readonly SheetEdit[],
  planOf: (edit: SheetEdit) => Promise<Plan<RowWrite>>,
): Promise<Plan<RowWrite>> {
  const plans: Plan<RowWrite>[] = [];
  for (const edit of edits)
    try {
      plans.push(await planOf(edit));
    } catch (error) {
      if (!(error instanceof Failure) || error.exitCode === deniedExitCode) throw error;
      throw usageFailure(`csv: ${edit.key}: ${error.message.replaceAll('; ', ', ')}`);
    }
  const writes = plans.flatMap(({ changes }) => changes);
  const words = formatCount(writes.length, 'row');
  return {
    changes: writes.map((write, index) => {
      const said = `someone else changed a row in the meantime; ${index} of ${words} are saved. Start again to see what still differs`;
      return Object.assign({}, write, { conflict: new Failure(said) });
    }),
    effect: plans.flatMap(({ effect }) => effect),
    questions: [...plans.flatMap(({ questions }) => questions), `Save ${words}?`],
    warnings: [...new Set(plans.flatMap(({ warnings = [] }) => warnings))],
  };
}
