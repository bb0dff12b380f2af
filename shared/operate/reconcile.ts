/** View: what the relay reckons that a channel's vendor charges (`bought`), beside the vendor's invoice, by upstream model. */
import { formatDecimal, parseDecimal, parseYuan, type NanoYuan } from '../billing/amount.ts';
import { addFigures, noFigures, type DailyFigures } from '../billing/daily-figures.ts';
import { channelId } from '../billing/daily-keys.ts';
import { rowsIn } from './ledger/ledger.ts';
import { deniedExitCode, Failure, usageFailure } from './plan.ts';
import type { OperatorPorts } from './operator-ports.ts';

export interface ReconcileInput extends InvoiceOptions {
  channel: string;
  /** `2026-10`, in UTC. */
  month: string;
  text: InvoiceText;
  /** Yuan for one unit of the invoice's currency, a decimal as text. */
  rate: string;
}

export interface ReconciledModel {
  model: string;
  /** Undefined: the relay sent it no call. */
  own: DailyFigures | undefined;
  bought: NanoYuan;
  /** Undefined: the invoice has no such line. */
  invoiced: NanoYuan | undefined;
  /** Invoiced less bought. */
  difference: NanoYuan;
  /** Of what was bought, such as `4.2`. Undefined: nothing was. */
  percent: string | undefined;
}

export interface Reconciliation {
  channel: string;
  month: string;
  /** The largest difference first. */
  models: ReconciledModel[];
  all: ReconciledModel;
  invoice: Pick<Invoice, 'columns' | 'decimal' | 'totals'>;
  warnings: string[];
}

export async function reconcileChannel(
  { ledger, tables }: Pick<OperatorPorts, 'ledger' | 'tables'>,
  input: ReconcileInput,
): Promise<Reconciliation> {
  const { channel, month } = input;
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(month))
    throw usageFailure(`--month ${month}: wanted a month such as 2026-10`);
  const { lines, problems: unread, ...invoice } = readInvoice(input.text, input);
  const factor = parseDecimal(input.rate, rateDecimals, true);
  if (factor === undefined || factor <= 0n)
    throw usageFailure(`--rate ${input.rate}: wanted yuan, such as 7.2`);
  const { rows, problems } = await rowsIn(
    ledger.daily(channelId(channel), { from: `${month}-01`, to: `${month}-31` }),
  );
  const uncalled = rows.length === 0 ? [await uncalledWarning(tables, input)] : [];
  const own = new Map<string, DailyFigures>();
  // `day#2026-10-07#<upstream model>`
  for (const { key, figures } of rows) {
    const model = key.period.slice(15);
    own.set(model, addFigures(own.get(model) ?? noFigures, figures));
  }
  const names = new Map([...own.keys()].map((model) => [model.toLowerCase(), model]));
  const invoiced = new Map<string, NanoYuan>();
  for (const { model, amount } of lines) {
    const name = names.get(model.toLowerCase()) ?? model;
    invoiced.set(name, (invoiced.get(name) ?? 0n) + inYuan(amount, factor));
  }
  const models = [...new Set([...own.keys(), ...invoiced.keys()])].map((model) =>
    compared(model, own.get(model), invoiced.get(model)),
  );
  const sum = [...own.values()].reduce(addFigures, noFigures);
  const total = [...invoiced.values()].reduce((all, each) => all + each, 0n);
  return {
    channel,
    month,
    models: models.toSorted((a, b) => (sizeOf(a) > sizeOf(b) ? -1 : 1)),
    all: compared('all', sum, total),
    invoice,
    warnings: [...unread, ...problems, ...uncalled, ...costWarnings(sum)],
  };
}

const rateDecimals = 9;

/** Rounded half away from zero to nano-yuan. */
function inYuan(amount: bigint, factor: bigint): NanoYuan {
  const scaled = amount * factor;
  const text = formatDecimal(scaled < 0n ? -scaled : scaled, invoiceDecimals + rateDecimals);
  const yuan = parseYuan(text) ?? parseDecimal(text, 9) ?? 0n;
  return scaled < 0n ? -yuan : yuan;
}

function compared(
  model: string,
  own: DailyFigures | undefined,
  invoiced: NanoYuan | undefined,
): ReconciledModel {
  const bought = own?.amounts.bought ?? 0n;
  const difference = (invoiced ?? 0n) - bought;
  const tenths = bought === 0n ? undefined : Number((difference * 1000n) / bought) / 10;
  return { model, own, bought, invoiced, difference, percent: tenths?.toFixed(1) };
}

const sizeOf = ({ difference }: ReconciledModel): bigint => (difference < 0n ? -difference : difference);

/** Throws a Failure if there is no such channel. A channel that was deleted after it was called has no row. */
async function uncalledWarning(
  tables: OperatorPorts['tables'],
  { channel, month }: ReconcileInput,
): Promise<string> {
  const said = `channel ${channel} was not called in ${month}`;
  try {
    const channels = await tables.scan('channels');
    if (channels.some(({ id }) => id === channel)) return said;
  } catch (error) {
    // Who repairs may read the sums and no configuration.
    if (error instanceof Failure && error.exitCode === deniedExitCode)
      return `${said}: see \`channel list\` for its id`;
    throw error;
  }
  throw usageFailure(
    `there is no channel ${channel}, and none of that name was called in ${month}: see \`channel list\``,
  );
}

function costWarnings({ counts }: DailyFigures): string[] {
  const [calls, known] = [counts.calls ?? 0, counts.bought_calls ?? 0];
  if (known === calls) return [];
  return [
    `what ${calls - known} of ${calls} calls cost is unknown: give the channel's row \`cost\`; calls that failed cost nothing as a rule`,
  ];
}

// Reads amounts as invoices write them: `$1,234.50`, `1.234,50 EUR`, `(3.20)` for a credit. Must never guess: 1,234 may be two amounts.

const invoiceDecimals = 12;

/** What stands before the decimals. */
type DecimalMark = '.' | ',';

/** Digits, signs and marks alone. Currencies have two or three letters, or a sign. */
const bare = (cell: string): string =>
  cell
    .replaceAll(/(?<![a-z])[a-z]{2,3}(?![a-z])/gi, '')
    .replaceAll(/[\s$¥￥€£元'’]/g, '')
    .replaceAll('−', '-');

/** Undefined: the cell alone does not tell. */
function markIn(cell: string): DecimalMark | undefined {
  const text = bare(cell);
  const marks: DecimalMark[] = text.split('').filter((sign) => sign === '.' || sign === ',');
  const last = marks.at(-1);
  if (last === undefined) return undefined;
  const other = last === '.' ? ',' : '.';
  if (marks.includes(other)) return last;
  if (marks.length > 1) return other;
  const isGroup = /(^|\D)[1-9]\d{0,2}[.,]\d{3}(\D|$)/.test(text);
  return isGroup ? undefined : last;
}

/** As most cells say. Undefined: none says it, or as many say the one as the other. */
function decimalMarkOf(cells: readonly string[]): DecimalMark | undefined {
  const marks = cells.map(markIn);
  const [dots, commas] = ['.', ','].map((mark) => marks.filter((each) => each === mark).length);
  if (dots === commas) return undefined;
  return (dots ?? 0) > (commas ?? 0) ? '.' : ',';
}

/** Whether the cell means two amounts until it is known which mark stands before decimals. */
const isAmbiguous = (cell: string): boolean => /[.,]/.test(bare(cell)) && markIn(cell) === undefined;

/** In 10^-12 of the invoice's currency. Undefined: it is no amount. */
function amountOf(cell: string, mark: DecimalMark): bigint | undefined {
  const text = bare(cell);
  const credit = /^\((.+)\)$/.exec(text)?.[1] ?? /^(.+)-$/.exec(text)?.[1];
  const [, sign = '', size = ''] = /^([+-]?)(.*)$/.exec(credit ?? text) ?? [];
  const group = mark === '.' ? ',' : '.';
  const [whole = '', fraction, ...more] = size.split(mark);
  const isGrouped = new RegExp(`^\\d{1,3}(\\${group}\\d{3})+$`).test(whole);
  if (more.length > 0 || (whole.includes(group) && !isGrouped)) return undefined;
  const digits = whole.replaceAll(group, '');
  const decimals = fraction === undefined ? '' : `.${fraction}`;
  const value = parseDecimal(`${digits === '' && fraction ? '0' : digits}${decimals}`, invoiceDecimals);
  const isBelow = (sign === '-') !== (credit !== undefined);
  return value !== undefined && isBelow ? -value : value;
}

// Reads a vendor's invoice of usage from the lines of its CSV: a model and an amount in each, whatever they are called. Must
// never lose an amount: a line that cannot be counted is named by its number, and the invoice's own total is compared.

interface InvoiceOptions extends ColumnNames {
  /** Default: as the amounts show it. */
  decimal?: DecimalMark | undefined;
}

interface Invoice {
  /** One for each model, sorted by name. Amounts are in 10^-12 of the invoice's currency. */
  lines: { model: string; amount: bigint }[];
  /** The columns that were read. */
  columns: { model: string; amount: string };
  decimal: DecimalMark;
  /** The numbers of the lines that add others up. */
  totals: number[];
  /** A sentence for each line that is not counted, and for each total that the lines do not add up to. */
  problems: string[];
}

/** Lines that name no model are added up under this name. */
const noModel = '(no model)';
const totalWords = /^(sub|grand)?[ -]?total\b|^(sum|summe)$|^(合计|总计|小计)/i;

/** Throws a Failure if no line names both columns, or if amounts may mean two things. */
function readInvoice(text: InvoiceText, options: InvoiceOptions): Invoice {
  const { at, header, columns } = columnsOf(text, options);
  const lines = text.lines.slice(at + 1).filter(({ cells }) => cells.join('\n') !== header.join('\n'));
  const decimal =
    options.decimal ??
    markOf(
      lines.map(({ cells }) => cells[columns.amount] ?? ''),
      text,
    );
  return {
    ...readLines(lines, columns, decimal),
    columns: { model: header[columns.model] ?? '', amount: header[columns.amount] ?? '' },
    decimal,
  };
}

/** Between commas, a comma in an amount stands in quotes: it is there for people, so it groups digits. */
function markOf(cells: string[], { delimiter }: InvoiceText): DecimalMark {
  const mark = decimalMarkOf(cells);
  if (mark !== undefined) return mark;
  const unclear = delimiter === ',' ? undefined : cells.find(isAmbiguous);
  if (unclear === undefined) return '.';
  throw usageFailure(`${JSON.stringify(unclear)} may mean two amounts: say it with --decimal dot or comma`);
}

function readLines(
  lines: InvoiceText['lines'],
  { model, amount }: InvoiceColumns,
  mark: DecimalMark,
): Pick<Invoice, 'lines' | 'totals' | 'problems'> {
  const sums = new Map<string, bigint>();
  const totals: number[] = [];
  const problems: string[] = [];
  let sum = 0n;
  for (const { number, cells } of lines) {
    const name = cells[model] ?? '';
    const written = cells[amount] ?? '';
    const value = amountOf(written, mark);
    const word = name === '' ? cells.find((cell) => totalWords.test(cell)) : totalWords.exec(name)?.[0];
    if (word !== undefined || (name === '' && value === sum && sum !== 0n)) {
      totals.push(number);
      if (value !== undefined && value !== sum && !/^(sub|小)/i.test(word ?? ''))
        problems.push(
          `line ${number} has the total ${decimalText(value)}, but the lines before it add up to ${decimalText(sum)}`,
        );
    } else if (value === undefined) {
      if (name !== '' || written !== '')
        problems.push(
          `line ${number} is not counted: ${JSON.stringify(name)} has ${written === '' ? 'no amount' : `the amount ${JSON.stringify(written)}, which cannot be read`}`,
        );
    } else {
      sum += value;
      sums.set(name || noModel, (sums.get(name || noModel) ?? 0n) + value);
    }
  }
  const found = [...sums].map(([name, each]) => ({ model: name, amount: each }));
  return { lines: found.toSorted((a, b) => (a.model < b.model ? -1 : 1)), totals, problems };
}

const decimalText = (amount: bigint): string => formatDecimal(amount, invoiceDecimals);

// Finds the columns of model and amount of an invoice by their names.

interface InvoiceText {
  /** Between cells. */
  delimiter: string;
  /** `number` as in the file, from 1. */
  lines: { number: number; cells: string[] }[];
}

interface ColumnNames {
  /** Where they are not found by themselves. */
  modelColumn?: string | undefined;
  amountColumn?: string | undefined;
}

/** Positions in a line. */
interface InvoiceColumns {
  model: number;
  amount: number;
}

interface Found {
  /** The position of the line that names them. */
  at: number;
  header: string[];
  columns: InvoiceColumns;
}

/** In this order: a column that is named more exactly wins. */
const modelNames = [
  /^model( ?(name|id))?$/,
  /^模型(名称|名)?$/,
  /^(deployment|snapshot|sku|sku ?name)$/,
  /^(usage ?type|line ?item|item|product|meter( ?name)?|description|name)$/,
  /model|模型/,
];
const amountNames = [
  /^(amount|cost|total|charge|price)$/,
  /^(amount|cost|total|charge|price)[ (]*(usd|cny|rmb|eur|value|due|in .*)?\)?$/,
  /^(net|gross|pre ?tax|billed|total|unblended|payable) ?(amount|cost|charge|price|total)/,
  /^(应付|实付|消费)?(金额|费用)/,
  /(amount|cost|charge|金额|费用)/,
];

/** Throws a Failure if no line names both columns. */
function columnsOf({ lines }: InvoiceText, { modelColumn, amountColumn }: ColumnNames): Found {
  const wanted = [exactly(modelColumn) ?? modelNames, exactly(amountColumn) ?? amountNames];
  for (const [at, { cells: header }] of lines.entries()) {
    const [model = -1, amount = -1] = wanted.map((names) => columnOf(header, names));
    if (model >= 0 && amount >= 0 && model !== amount) return { at, header, columns: { model, amount } };
  }
  const first = lines[0]?.cells.slice(0, 12).join(', ') ?? 'nothing';
  throw usageFailure(
    `no columns of a model and an amount: the first line has ${first}. Name them with --model-column and --amount-column`,
  );
}

const plainName = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .replaceAll(/[_\-/]+/g, ' ');

const exactly = (name: string | undefined): RegExp[] | undefined =>
  name === undefined ? undefined : [new RegExp(`^${escaped(plainName(name))}$`)];

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

function columnOf(header: string[], names: readonly RegExp[]): number {
  for (const name of names) {
    const at = header.findIndex((cell) => name.test(plainName(cell)));
    if (at >= 0) return at;
  }
  return -1;
}
