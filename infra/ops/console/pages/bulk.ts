/**
 * Many rows at once: a table as CSV in a form, with a column for each field of its row. What comes back from a spreadsheet is
 * compared with the rows, shown, confirmed. A row that somebody else wrote since is named and nothing is written; what has no
 * column stays. Rows are made here, but for keys, and never deleted.
 */
import { plainRow } from '../../../../shared/config/rows/read-row.ts';
import { planSetRows } from '../../../../shared/operate/config/write-rows.ts';
import { planEditAccount } from '../../../../shared/operate/customers/edit-account.ts';
import { keyState } from '../../../../shared/operate/keys/list-keys.ts';
import { planEditKey } from '../../../../shared/operate/keys/edit-key.ts';
import type { RawRow, RowWrite } from '../../../../shared/operate/operator-ports.ts';
import { Failure, usageFailure, type Plan } from '../../../../shared/operate/plan.ts';
import { refuseChanged, rowMark } from '../../../../shared/operate/rows.ts';
import { canonicalJson, compareCodeUnits } from '../../../../shared/wire/json.ts';
import { shownValue } from '../../markup.ts';
import { csvLines, csvText, delimiterOf } from '../../cli/csv.ts';
import { counted, grouped } from '../layout/figures.ts';
import { accountFields } from '../../fields/account-fields.ts';
import { keyFields } from '../../fields/key-fields.ts';
import { ruleFields } from '../../fields/rule-fields.ts';
import { flagField, rowFields, typedNumber, typedRow, type RowField } from '../../fields/row-field.ts';
import { lead, notice } from '../layout/frame.ts';
import { rowProposal } from '../visit/row-proposal.ts';
import { formPage, proposedWrites, type Proposal, type Routes, type Visit } from '../visit/visit.ts';

/** A row as it is to be. `found`: as it is. */
interface BulkEdit {
  key: string | number;
  attributes: RawRow;
  found: RawRow | undefined;
}

interface Bulk {
  table: 'keys' | 'accounts' | 'charges';
  /** The list that it belongs to. */
  back: 'keys' | 'customers' | 'charges';
  title: string;
  key: string;
  /** Shown beside the fields, and not read back. */
  shown: readonly string[];
  fields: readonly RowField[];
  /** A row that cannot be read may hold a secret anywhere. */
  isShown?: (row: RawRow, nowMs: number) => boolean;
  propose: (visit: Visit, edits: readonly BulkEdit[]) => Promise<Proposal>;
}

const bulks: readonly Bulk[] = [
  {
    table: 'keys',
    back: 'keys',
    title: 'Keys as CSV',
    key: 'hash',
    shown: ['hint', 'account'],
    fields: [flagField('enabled', '', ''), ...keyFields],
    isShown: (row, nowMs) => keyState(row, nowMs).state !== 'invalid',
    propose: (visit, edits) =>
      rowByRow(visit, edits, ({ key, attributes, found }) => {
        if (!found) throw usageFailure('there is no key with this hash: keys are made with their customers');
        return planEditKey(visit.ports, String(key), attributes);
      }),
  },
  {
    table: 'accounts',
    back: 'customers',
    title: 'Customers as CSV',
    key: 'account',
    shown: [],
    fields: accountFields,
    propose: (visit, edits) =>
      rowByRow(visit, edits, ({ key, attributes, found }) =>
        planEditAccount(visit.ports, { account: String(key), attributes, isNew: !found }),
      ),
  },
  {
    table: 'charges',
    back: 'charges',
    title: 'Prices as CSV',
    key: 'id',
    shown: [],
    fields: ruleFields,
    async propose(visit, edits) {
      const plan = await planSetRows(visit.ports, 'charges', edits);
      return rowProposal(visit, plan, { title: 'Prices as CSV', back: 'charges' });
    },
  },
];

export function bulkPages(routes: Routes): void {
  for (const bulk of bulks)
    routes.form(`/${bulk.back}-csv`, {
      page: csvPage(bulk),
      propose: async (visit) => bulk.propose(visit, await editsIn(visit, bulk)),
    });
}

/** A form has 256 KB at most. */
const csvCharactersMax = 200_000;
const editsMax = 500;
/** The column that says how a row was when it was exported. */
const markColumn = '_seen';

const csvPage = (bulk: Bulk) =>
  formPage(async ({ ports, query, nowMs }) => {
    const { table, key, fields, shown, title, back, isShown = () => true } = bulk;
    const names = [key, ...shown, ...fields.map(({ name }) => name), markColumn];
    const text = query('text');
    const rows = (await ports.tables.scan(table))
      .filter(
        (row) => isShown(row, nowMs) && [key, ...shown].some((name) => String(row[name]).includes(text)),
      )
      .toSorted(
        (a, b) => Number(a[key]) - Number(b[key]) || compareCodeUnits(String(a[key]), String(b[key])),
      );
    const lines = rows.map((row) =>
      csvText([[...cellsOf(row, names.slice(0, 1 + shown.length), fields), rowMark(row)]]),
    );
    let size = 0;
    const fitting = lines.filter((line) => (size += line.length) <= csvCharactersMax);
    return {
      title,
      intro: [
        lead(
          'Copy it into a spreadsheet, change cells, paste the whole back. Lines may be left out: their rows stay. An empty cell is the default.',
        ),
        fitting.length < lines.length &&
          notice(
            'warning',
            `The first ${grouped(fitting.length)} of ${grouped(lines.length)}: add ?text= and a part of a name to the address.`,
          ),
      ],
      fields: [
        {
          name: 'csv',
          label: counted(fitting.length, 'row'),
          kind: 'area',
          value: csvText([names]) + fitting.join(''),
          help: `Columns that are not named here are not read; ${markColumn} refuses a row that somebody else changed since.`,
        },
      ],
      verb: 'Compare',
      cancel: back,
    };
  });

const cellsOf = (row: RawRow, plain: readonly string[], fields: readonly RowField[]): string[] => [
  ...plain.map((name) => shownValue(row[name])),
  ...rowFields(fields, row).map(({ value = '' }) => value.replaceAll(/\s*\n\s*/g, ' ')),
];

/** A spreadsheet's quote before what it would run. */
const unquoted = (cell: string): string => (/^'[=+\-@]/.test(cell) ? cell.slice(1) : cell);

/** What differs from the rows. Throws a usage failure at the first line that cannot be read. */
async function editsIn({ ports, field }: Visit, { table, key, fields }: Bulk): Promise<BulkEdit[]> {
  const [header, ...lines] = csvLines(field('csv'), delimiterOf(field('csv')));
  const names = header?.cells ?? [];
  if (!names.includes(key))
    throw usageFailure(`csv: found no column ${key}, wanted the first line as it was`);
  const given = fields.filter(({ name }) => names.includes(name));
  const rows = new Map((await ports.tables.scan(table)).map((row) => [String(row[key]), row]));
  const seen = new Set<string>();
  const edits = lines.flatMap(({ number, cells }): BulkEdit[] => {
    const cell = (name: string): string => unquoted(cells[names.indexOf(name)] ?? '');
    const id = cell(key);
    if (id === '' || seen.has(id)) throw lineFailure(number, `found ${id || 'no'} ${id ? 'twice' : key}`);
    seen.add(id);
    const found = rows.get(id);
    const others = new Map(rowFields(fields, found ?? {}).map(({ name, value = '' }) => [name, value]));
    const inLine = (name: string): string => (names.includes(name) ? cell(name) : (others.get(name) ?? ''));
    try {
      const attributes = changedIn(found ?? {}, typedRow(given, inLine, found ?? {}));
      if (found && Object.keys(attributes).length === 0) return [];
      if (found && cell(markColumn) !== '') refuseChanged(id, found, cell(markColumn));
      return [{ key: table === 'charges' ? (typedNumber(id) ?? id) : id, attributes, found }];
    } catch (error) {
      throw error instanceof Failure ? lineFailure(number, error.message) : error;
    }
  });
  if (edits.length === 0) throw usageFailure('csv: nothing differs from the rows');
  if (edits.length > editsMax)
    throw usageFailure(`csv: ${edits.length} rows differ, wanted at most ${editsMax} at once`);
  return edits;
}

const changedIn = (row: RawRow, attributes: RawRow): RawRow => {
  const before = plainRow(row) as RawRow;
  return Object.fromEntries(
    Object.entries(attributes).filter(
      ([name, value]) => canonicalJson(before[name] ?? null) !== canonicalJson(value ?? null),
    ),
  );
};

const lineFailure = (number: number, words: string): Failure =>
  usageFailure(`csv: line ${number}: ${words.replaceAll('; ', ', ')}`);

/** The plans of single rows as one. Each is written on the condition that nobody changed it since. */
async function rowByRow(
  visit: Visit,
  edits: readonly BulkEdit[],
  planOf: (edit: BulkEdit) => Promise<Plan<RowWrite>>,
): Promise<Proposal> {
  const { path } = visit;
  const back = path.replace('-csv', '');
  const plans: Plan<RowWrite>[] = [];
  for (const edit of edits)
    try {
      plans.push(await planOf(edit));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      throw usageFailure(`csv: ${edit.key}: ${error.message.replaceAll('; ', ', ')}`);
    }
  const writes = plans.flatMap(({ changes }) => changes);
  const words = `${writes.length} ${writes.length === 1 ? 'row' : 'rows'}`;
  const plan: Plan<RowWrite> = {
    changes: writes.map((write, index) => {
      const said = `a row was changed by somebody else meanwhile; ${index} of ${words} are written. Begin again: what still differs is shown`;
      return Object.assign({}, write, { conflict: new Failure(said) });
    }),
    effect: plans.flatMap(({ effect }) => effect),
    questions: [...plans.flatMap(({ questions }) => questions), `Write ${words}?`],
    warnings: [...new Set(plans.flatMap(({ warnings = [] }) => warnings))],
  };
  return proposedWrites(visit, plan, {
    title: `Write ${words}`,
    back,
    verb: 'Write them',
    grave: plan.questions.length > 1,
    said: (made) => ({ lines: [`${made.length} rows are written; live within 30 seconds.`] }),
  });
}
