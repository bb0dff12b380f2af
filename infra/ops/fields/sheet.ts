/**
 * Edits many keys, customers, grants or prices at once with a CSV sheet, which has columns for the key, each field and a mark. Compares an
 * edited sheet with the rows and plans the changes. Blank cells and missing lines or columns change nothing; `-` clears a value. Rejects a
 * row that somebody else has written since the export. Reports all problems at once, and writes nothing if there is one.
 */
import { readCharge } from '../../../shared/config/rows/charge-row.ts';
import { plainRow, textOf } from '../../../shared/config/rows/read-row.ts';
import {
  checkLines,
  indexSheetKeys,
  isEdited,
  nameSheetKey,
  planLines,
  refuseProblems,
  type Problems,
  readTablesOnce,
  type SheetLine,
} from '../../../shared/operate/apply-sheet.ts';
import { normalizeRow, planSetRows, type ConfigPlan } from '../../../shared/operate/config/write-rows.ts';
import { sheetIdNote } from '../../../shared/operate/keys/edit-key.ts';
import { judgeKey } from '../../../shared/operate/keys/list-keys.ts';
import type { OperatorPorts, RawRow } from '../../../shared/operate/operator-ports.ts';
import { normalizeMoments } from '../../../shared/operate/moment.ts';
import { formatCount, requireValid, usageFailure } from '../../../shared/operate/plan.ts';
import { refuseChanged, fingerprintRow } from '../../../shared/operate/rows.ts';
import { canonicalJson, compareCodeUnits } from '../../../shared/wire/json.ts';
import { findNearestName } from '../../../shared/wire/nearest-name.ts';
import { parseCsvLines, formatCsv, delimiterOf } from '../csv.ts';
import { formatCell } from '../markup.ts';
import { accountFields } from './account-fields.ts';
import { keyRowFields, newKeyFields } from './key-fields.ts';
import { fillFields, parseTypedNumber, writeTypedRow, type RowField } from './row-field.ts';
import { ruleFields } from './price-fields.ts';

export interface Sheet {
  table: 'keys' | 'accounts' | 'grants' | 'charges';
  /** Columns that identify the row. They come first in an exported sheet. */
  keys: readonly string[];
  fields: readonly RowField[];
  /** Columns for the credit and the key that a line creates in addition to its row. */
  moreColumns?: readonly string[];
  /** Columns that `export` writes and `apply` ignores. */
  shownColumns?: readonly string[];
}

const keyPrefix = 'key.';

export const keySheet: Sheet = {
  table: 'keys',
  keys: ['hash', 'id'],
  fields: keyRowFields,
  shownColumns: ['hint'],
};

export const customerSheet: Sheet = {
  table: 'accounts',
  keys: ['account'],
  fields: accountFields,
  moreColumns: [
    'grant.id',
    'grant.amount',
    'grant.reason',
    `${keyPrefix}id`,
    ...newKeyFields.map(({ name }) => keyPrefix + name),
  ],
};

export const grantSheet: Sheet = {
  table: 'grants',
  keys: ['account', 'grant_id'],
  fields: ['amount', 'reason'].map((name) => ({ name, label: '' })),
  shownColumns: ['applied', 'problem'],
};

/** Prices are per million tokens, as in the forms. */
export const ruleSheet: Sheet = { table: 'charges', keys: ['id'], fields: ruleFields };

/** Lists the columns that `apply` reads. */
export const listColumns = ({ keys, fields, moreColumns = [] }: Sheet): string[] => [
  ...new Set([...keys, ...fields.map(({ name }) => name), ...moreColumns]),
];

/** The column that says how a row was when it was exported. */
export const markColumn = '_seen';

/** @param text only rows whose key or name has it; empty: all */
export async function readSheetLines(
  { tables, clock }: OperatorPorts,
  { table, keys, fields, shownColumns = [] }: Sheet,
  text = '',
): Promise<{ header: string; lines: string[] }> {
  const leadingColumns = [...keys, ...shownColumns];
  const [key = ''] = keys;
  const nowMs = clock.now();
  // A row that cannot be read may hold a secret anywhere.
  const isShown = (row: RawRow): boolean => table !== 'keys' || judgeKey(row, nowMs).state !== 'invalid';
  const rows = (await tables.scan(table))
    .filter(
      (row) =>
        isShown(row) && [...leadingColumns, 'account'].some((name) => String(row[name]).includes(text)),
    )
    .toSorted((a, b) => Number(a[key]) - Number(b[key]) || compareCodeUnits(String(a[key]), String(b[key])));
  return {
    header: formatCsv([[...leadingColumns, ...fields.map(({ name }) => name), markColumn]]),
    lines: rows.map((row) =>
      formatCsv([
        [
          ...leadingColumns.map((name) =>
            formatCell(row[table === 'keys' && name === 'id' ? sheetIdNote : name]),
          ),
          ...formatFields(fields, row),
          fingerprintRow(row),
        ],
      ]),
    ),
  };
}

const formatFields = (fields: readonly RowField[], row: RawRow): string[] =>
  fillFields(fields, row).map(({ value = '' }) => value.replaceAll(/\s*\n\s*/g, ' '));

/** A line of the sheet. Its cells are read by the name of their column. */
interface ReadLine {
  place: string;
  cell: (name: string) => string;
  /** The cell without the quote that a spreadsheet puts before texts that it would run. */
  text: (name: string) => string;
}

/** `max`: the most lines that may differ from their rows. */
interface SheetInput {
  csv: string;
  max: number;
}

export async function planSheet(ports: OperatorPorts, sheet: Sheet, { csv, max }: SheetInput) {
  const lines = await readLines(sheet, csv);
  const reads = readTablesOnce(ports);
  const { checked, problems } = await checkLines(
    lines.checked,
    await createLineReader(reads, sheet),
    lines.problems,
  );
  refuseTooManyEdits(
    checked.filter(({ customer, credit, key }) => credit || [customer, key].some(isEdited)),
    max,
  );
  return planLines(reads, checked, problems);
}

export async function planRuleSheet(ports: OperatorPorts, { csv, max }: SheetInput): Promise<ConfigPlan> {
  const { checked: lines, problems } = await readLines(ruleSheet, csv);
  const edits = await readRuleEdits(ports, lines, problems);
  refuseTooManyEdits(edits, max);
  return planSetRows(ports, 'charges', edits);
}

function refuseTooManyEdits({ length }: readonly unknown[], max: number): void {
  if (length > max)
    throw usageFailure(`csv: ${formatCount(length, 'row')} differ: use at most ${max} at once`);
}

/** Reads the lines below the header, and checks column names, numbers of cells, and duplicates. */
async function readLines(sheet: Sheet, csv: string) {
  const [header, ...rows] = parseCsvLines(csv, delimiterOf(csv));
  const lines = rows.map(({ number, cells }) => ({ place: `line ${number}`, cells }));
  const names = header?.cells ?? [];
  checkHeader(sheet, names);
  const seen = new Map<string, string>();
  return checkLines(lines, ({ place, cells }): ReadLine => {
    if (cells.length !== names.length)
      throw usageFailure(
        `${formatCount(cells.length, 'cell')}, but the header has ${names.length}: is the line cut off, or a comma not in quotes?`,
      );
    const cell = (name: string): string => cells[names.indexOf(name)] ?? '';
    const text = (name: string): string => readText(cell(name));
    const isNamed = sheet.table === 'keys' && cell('hash') !== '';
    const columns = isNamed ? ['hash'] : sheet.table === 'keys' ? ['account', 'id'] : sheet.keys;
    const key = JSON.stringify(columns.map((name) => parseKey(sheet, text(name))));
    const before = seen.get(key);
    if (before !== undefined) throw usageFailure(`duplicate ${columns.map(text).join(' ')}: see ${before}`);
    seen.set(key, place);
    return { place, cell, text };
  });
}

/** A spreadsheet may write the number 41 as `41.0`. */
const parseKey = ({ table }: Sheet, text: string): string | number =>
  table === 'charges' ? (parseTypedNumber(text) ?? '') : text;

function checkHeader(sheet: Sheet, names: readonly string[]): void {
  const { table, keys } = sheet;
  const known = [...listColumns(sheet), ...(sheet.shownColumns ?? []), markColumn];
  const needed = table === 'keys' ? [names.includes('hash') ? 'hash' : 'id'] : keys;
  const missing = needed.filter((name) => !names.includes(name));
  const problems = [
    ...missing.map((name) => `missing column ${name}`),
    ...names.flatMap((name, at) => {
      if (name === '') return [];
      if (names.indexOf(name) !== at) return [`two columns are named ${name}`];
      if (known.includes(name)) return [];
      const near = findNearestName(name, known);
      return [`unknown column ${name.slice(0, 100)}${near === undefined ? '' : `: did you mean ${near}?`}`];
    }),
  ];
  if (problems.length === 0) return;
  throw usageFailure(`csv: line 1: ${problems.join(', ')}. Columns: ${listColumns(sheet).join(', ')}`);
}

const readText = (cell: string): string => (/^'[=+\-@]/.test(cell) ? cell.slice(1) : cell);

/**
 * Returns the attributes that a line changes. A value that the spreadsheet only formats differently, such as a two-line note, is not
 * changed.
 */
function readChanges(
  fields: readonly RowField[],
  { cell }: Pick<ReadLine, 'cell'>,
  found: RawRow | undefined,
): RawRow {
  // Put an empty cell first, so that a note that starts with `<` is not rejected as HTML.
  const own = found && parseCsvLines(formatCsv([['', ...formatFields(fields, found)]]), ',')[0]?.cells;
  const changed = fields.filter(({ name }, at) => cell(name) !== '' && cell(name) !== own?.[at + 1]);
  const texts = new Map(changed.map(({ name }) => [name, readCell(name, readText(cell(name)))]));
  const before = plainRow(found ?? {}) as RawRow;
  return Object.fromEntries(
    Object.entries(writeTypedRow(fields, texts, found)).filter(
      ([name, value]) => canonicalJson(before[name] ?? null) !== canonicalJson(value ?? null),
    ),
  );
}

const times = new Set(['expires_at', 'plan.since', 'plan.until', 'from']);

function readCell(name: string, text: string): string {
  if (text === '-') return '';
  if (times.has(name) && !/^\d{4}-\d\d-\d\d/.test(text))
    throw usageFailure(
      `${name}: use a date such as 2027-01-31: "${text.slice(0, 40)}" would be another date when the sheet is applied again`,
    );
  return text;
}

async function readRuleEdits(ports: OperatorPorts, lines: readonly ReadLine[], earlier: Problems) {
  const rows = new Map((await ports.tables.scan('charges')).map((row) => [String(row['id']), row]));
  const { checked, problems } = await checkLines(
    lines,
    (line) => {
      const key = parseKey(ruleSheet, line.text('id'));
      if (key === '') throw usageFailure('missing id');
      const found = rows.get(String(key));
      const attributes = normalizeMoments(readChanges(ruleFields, line, found), ports.clock.now());
      if (found && Object.keys(attributes).length === 0) return [];
      refuseStaleLine(String(key), found, line);
      requireValid(readCharge(normalizeRow({ ...found, ...attributes, id: key })), `charges ${key}: `);
      return [{ key, attributes }];
    },
    earlier,
  );
  refuseProblems(problems);
  return checked.flat();
}

const refuseStaleLine = (name: string, found: RawRow | undefined, { text }: ReadLine): void => {
  if (found && text(markColumn) !== '') refuseChanged(name, found, text(markColumn));
};

/** Returns the texts of the columns. Throws a usage failure for the first empty one. */
function readRequired({ text }: ReadLine, names: readonly string[], about = ''): string[] {
  const missing = names.find((name) => text(name) === '');
  if (missing !== undefined) throw usageFailure(`missing ${missing}${about}`);
  return names.map(text);
}

const readGrant = (line: ReadLine): SheetLine => {
  const [account = '', id = '', amount = ''] = readRequired(line, ['account', 'grant_id', 'amount']);
  const reason = line.text('reason');
  return { place: line.place, account, credit: { id, amount, ...(reason && { reason }) } };
};

/** Creates the reader for lines of customer, key and grant sheets. It finds the rows that a line changes. */
async function createLineReader(ports: OperatorPorts, { table }: Sheet) {
  const { tables } = ports;
  const sheetKeys = await indexSheetKeys(ports);
  const readKey = (
    line: Pick<ReadLine, 'cell'>,
    { account, id, fields }: { account: string; id: string; fields: readonly RowField[] },
  ) => {
    if (!/^[^\p{C}]{1,100}$/u.test(id))
      throw usageFailure('invalid key id: use up to 100 visible characters');
    const found = sheetKeys.get(nameSheetKey(account, id));
    const attributes = readChanges(fields, line, found);
    const hash = found && textOf(found, 'hash');
    return { key: { id, hash, attributes, isNew: found === undefined }, found };
  };
  const readCustomer = async (line: ReadLine): Promise<SheetLine> => {
    const [account = ''] = readRequired(line, ['account']);
    const found = await tables.get('accounts', account);
    const attributes = readChanges(accountFields, line, found);
    if (Object.keys(attributes).length > 0) refuseStaleLine(account, found, line);
    const [id, amount, reason] = ['id', 'amount', 'reason'].map((name) => line.text(`grant.${name}`));
    if ((id || amount || reason) && !(id && amount))
      throw usageFailure(`missing grant.${id ? 'amount' : 'id'}: a grant needs grant.id and grant.amount`);
    const keyCell = (name: string): string => line.cell(keyPrefix + name);
    const keyId = line.text(`${keyPrefix}id`);
    if (keyId === '' && newKeyFields.some(({ name }) => keyCell(name) !== ''))
      throw usageFailure('missing key.id: it identifies the key when the sheet is applied again');
    return {
      place: line.place,
      account,
      customer: { attributes, isNew: found === undefined },
      ...(id && amount && { credit: { id, amount, ...(reason && { reason }) } }),
      ...(keyId && { key: readKey({ cell: keyCell }, { account, id: keyId, fields: newKeyFields }).key }),
    };
  };
  const readKeyLine = async (line: ReadLine): Promise<SheetLine> => {
    const { place, text } = line;
    const [hash, id] = [text('hash'), text('id')];
    if (hash === '') {
      const about = ': a line without a hash needs the customer and an id';
      const [account = ''] = readRequired(line, ['account', 'id'], about);
      const { key, found } = readKey(line, { account, id, fields: newKeyFields });
      if (Object.keys(key.attributes).length > 0) refuseStaleLine(id, found, line);
      return { place, account, key };
    }
    const found = await tables.get('keys', hash);
    if (!found) throw usageFailure('no key with this hash: leave the hash empty to create a key by its id');
    const attributes = readChanges(keySheet.fields, line, found);
    if (Object.keys(attributes).length > 0) refuseStaleLine(hash, found, line);
    return { place, account: textOf(found, 'account'), key: { id, hash, attributes, isNew: false } };
  };
  return table === 'accounts' ? readCustomer : table === 'grants' ? readGrant : readKeyLine;
}
