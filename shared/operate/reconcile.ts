/**
 * View: what the relay reckons that a channel's vendor charges (`bought`), beside the vendor's invoice, by upstream model. Of the
 * invoice's CSV, options name the columns of model and amount. Must never lose an amount: a line that cannot be counted is named
 * by its number, and the invoice's own total is compared.
 */
import { formatDecimal, formatYuan, parseDecimal, parseYuan, type NanoYuan } from '../billing/money.ts';
import type { DailyFigures } from '../billing/daily-figures.ts';
import { formatChannelId } from '../billing/daily-keys.ts';
import { readAllRows, sumBy, sumOfFigures } from './ledger/ledger.ts';
import type { OperatorPorts } from './operator-ports.ts';
import { formatCount, Failure, deniedExitCode, usageFailure } from './plan.ts';
import { refuseMonth, type ViewColumn } from './statement.ts';

export interface ReconcileInput {
  channel: string;
  month: string;
  text: InvoiceText;
  /** Yuan for one unit of the invoice's currency, a decimal as text. */
  rate: string;
  modelColumn: string;
  amountColumn: string;
  /** The decimal mark. By default a point, and ambiguous amounts are rejected. */
  decimal?: '.' | ',' | undefined;
}

interface InvoiceText {
  delimiter: string;
  /** `number` as in the file, from 1. */
  lines: { number: number; cells: string[] }[];
}

/** `own` undefined: the relay sent it no call; `invoiced`: the invoice has no such line. `percent`: of what was bought. */
export type ReconciledModel = ReturnType<typeof compareModel>;

export const reconciledColumns: readonly ViewColumn<ReconciledModel>[] = [
  ['model', 'MODEL', ({ model }) => model],
  ['calls', 'CALLS', ({ own }) => own?.counts.calls ?? 0],
  ['bought', 'BOUGHT', ({ own, bought }) => (own ? formatYuan(bought) : null)],
  ['invoiced', 'INVOICED', ({ invoiced }) => (invoiced === undefined ? null : formatYuan(invoiced))],
  ['difference', 'DIFFERENCE', ({ difference }) => formatYuan(difference)],
  ['percent', '%', ({ percent }) => percent ?? null, ({ percent }) => percent?.toFixed(1) ?? '-'],
  ['only', 'ONLY IN', ({ only }) => only, ({ only }) => (only === null ? '' : `the ${only}`)],
];

/** `models`: the largest difference first. Messages of failures name the options that they are about. */
export async function reconcileChannel({ clock, ledger, tables }: OperatorPorts, input: ReconcileInput) {
  const { channel, month } = input;
  refuseMonth(month, clock.now());
  const { lines, problems: unread, ...invoice } = readInvoice(input);
  const factor = parseDecimal(input.rate, rateDecimals, true);
  if (factor === undefined || factor <= 0n)
    throw usageFailure(`--rate ${input.rate}: use a number, for example 7.2`);
  const { rows, problems } = await readAllRows(
    ledger.daily(formatChannelId(channel), { from: `${month}-01`, to: `${month}-31` }),
  );
  const uncalled = rows.length === 0 ? [await warnOfNoCalls(tables, input)] : [];
  // `day#2026-10-07#<upstream model>`
  const own = new Map(
    sumBy(rows, ({ key }) => key.period.slice(15)).map(({ name, figures }) => [name, figures]),
  );
  const names = new Map([...own.keys()].map((model) => [model.toLowerCase(), model]));
  const invoiced = new Map<string, NanoYuan>();
  for (const [model, amount] of lines) {
    const name = names.get(model.toLowerCase()) ?? model;
    invoiced.set(name, (invoiced.get(name) ?? 0n) + convertToYuan(amount, factor));
  }
  const all = [...new Set([...own.keys(), ...invoiced.keys()])];
  const models = all.map((model) => compareModel(model, own.get(model), invoiced.get(model)));
  const sum = sumOfFigures(rows);
  const total = [...invoiced.values()].reduce((added, each) => added + each, 0n);
  return {
    channel,
    month,
    models: models.toSorted((a, b) => (sizeOf(a) > sizeOf(b) ? -1 : 1)),
    all: compareModel('all', sum, total),
    ...invoice,
    warnings: [...unread, ...problems, ...uncalled, ...warnOfMissingCost(sum)],
  };
}

const rateDecimals = 9;
const invoiceDecimals = 12;

/** Rounded half away from zero to nano-yuan. */
function convertToYuan(amount: bigint, factor: bigint): NanoYuan {
  const scaled = amount * factor;
  const text = formatDecimal(scaled < 0n ? -scaled : scaled, invoiceDecimals + rateDecimals);
  const yuan = parseYuan(text) ?? parseDecimal(text, 9) ?? 0n;
  return scaled < 0n ? -yuan : yuan;
}

function compareModel(model: string, own: DailyFigures | undefined, invoiced: NanoYuan | undefined) {
  const bought = own?.amounts.bought ?? 0n;
  const difference = (invoiced ?? 0n) - bought;
  const percent = bought === 0n ? undefined : Number((difference * 1000n) / bought) / 10;
  const only = own === undefined ? 'invoice' : invoiced === undefined ? 'relay' : null;
  return { model, own, bought, invoiced, difference, percent, only };
}

const sizeOf = ({ difference }: ReconciledModel): bigint => (difference < 0n ? -difference : difference);

/** Throws a Failure if there is no such channel. A channel that was deleted after it was called has no row. */
async function warnOfNoCalls(
  tables: OperatorPorts['tables'],
  { channel, month }: ReconcileInput,
): Promise<string> {
  const said = `channel ${channel} had no calls in ${month}`;
  try {
    const channels = await tables.scan('channels');
    if (channels.some(({ id }) => id === channel)) return said;
  } catch (error) {
    // The role that repairs may read sums but not the configuration.
    if (error instanceof Failure && error.exitCode === deniedExitCode)
      return `${said}: check the id with \`channel list\``;
    throw error;
  }
  throw usageFailure(`no channel ${channel}, and no calls of one in ${month}: see \`channel list\``);
}

function warnOfMissingCost({ counts }: DailyFigures): string[] {
  const [calls, known] = [counts.calls ?? 0, counts.bought_calls ?? 0];
  if (known === calls) return [];
  return [
    `the cost of ${calls - known} of ${formatCount(calls, 'call')} is unknown: set \`cost\` on the channel (failed calls usually cost nothing)`,
  ];
}

const totalWords = /^(sub|grand)?[ -]?total\b|^(sum|summe)$|^(合计|总计|小计)/i;

/**
 * `lines`: amounts by model, in 10^-12 of the invoice's currency. `totals`: numbers of the lines that add others up. Throws a
 * Failure if no line names both columns, or if amounts may mean two things.
 */
function readInvoice(input: ReconcileInput) {
  const { text, decimal } = input;
  const { at, model, amount } = columnsOf(input);
  const header = text.lines[at]?.cells ?? [];
  const sums = new Map<string, bigint>();
  const totals: number[] = [];
  const problems: string[] = [];
  let sum = 0n;
  for (const { number, cells } of text.lines.slice(at + 1)) {
    if (cells.join('\n') === header.join('\n')) continue;
    const [name = '', written = ''] = [cells[model], cells[amount]];
    // Between commas, a comma in an amount stands in quotes: it is there for people, so it groups digits.
    if (decimal === undefined && text.delimiter !== ',' && /\d,\d/.test(written))
      throw usageFailure(`--decimal: the amount ${quoteCell(written)} is ambiguous, use dot or comma`);
    const value = amountOf(written, decimal ?? '.');
    const word = name === '' ? cells.find((cell) => totalWords.test(cell)) : totalWords.exec(name)?.[0];
    if (word !== undefined || (name === '' && value === sum && sum !== 0n)) {
      totals.push(number);
      if (value !== undefined && value !== sum && !/^(sub|小)/i.test(word ?? ''))
        problems.push(
          `line ${number} has the total ${formatInvoiceAmount(value)}, but the lines before it add up to ${formatInvoiceAmount(sum)}`,
        );
    } else if (value !== undefined) {
      sum += value;
      const key = name || '(no model)';
      sums.set(key, (sums.get(key) ?? 0n) + value);
    } else if (name !== '' || written !== '') {
      const why = `the invalid amount ${quoteCell(written)}`;
      problems.push(
        `line ${number} is skipped: ${quoteCell(name)} has ${written === '' ? 'no amount' : why}`,
      );
    }
  }
  if (sums.size === 0 && problems.length > 0)
    throw usageFailure(`--amount-column: this column has no amounts, ${problems[0]}`);
  const mark = decimal === ',' ? 'comma' : 'dot';
  const read = `invoice columns ${header[model]} and ${header[amount]} (decimal ${mark})`;
  return { lines: sums, read, totals, problems };
}

/** A cell may be as long as its file. */
const quoteCell = (cell: string, most = 80): string =>
  JSON.stringify(cell.length > most ? `${cell.slice(0, most)}...` : cell).replaceAll('; ', ', ');

const formatInvoiceAmount = (amount: bigint): string => formatDecimal(amount, invoiceDecimals);

const normalizeName = (name: string): string => name.trim().toLowerCase();

/** `at`: the position of the line that names both. */
function columnsOf({ text: { lines }, modelColumn, amountColumn }: ReconcileInput) {
  for (const [at, { cells }] of lines.entries()) {
    const names = cells.map(normalizeName);
    const [model, amount] = [
      names.indexOf(normalizeName(modelColumn)),
      names.indexOf(normalizeName(amountColumn)),
    ];
    if (model >= 0 && amount >= 0) return { at, model, amount };
  }
  const hasModels = lines.some(({ cells }) => cells.map(normalizeName).includes(normalizeName(modelColumn)));
  const option = hasModels ? '--amount-column' : '--model-column';
  const name = quoteCell(hasModels ? amountColumn : modelColumn);
  const first = quoteCell(lines[0]?.cells.join(', ') ?? '', 200);
  throw usageFailure(`${option} ${name}: no header line has this column; the first line is ${first}`);
}

/**
 * Parses an amount as invoices write it (`$1,234.50`, `1.234,50 EUR`, `(3.20)` for a credit) into 10^-12 of the
 * invoice's currency.
 */
function amountOf(cell: string, mark: '.' | ','): bigint | undefined {
  // Digits, signs and marks alone. Currencies have two or three letters, or a sign.
  const text = cell
    .replaceAll(/(?<![a-z])[a-z]{2,3}(?![a-z])/gi, '')
    .replaceAll(/[\s$¥￥€£元'’]/g, '')
    .replaceAll('−', '-');
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
