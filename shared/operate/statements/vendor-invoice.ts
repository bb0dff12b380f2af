/**
 * Reads a vendor's invoice of usage from the lines of its CSV: a model and an amount in each, whatever they are called. Must
 * never lose an amount: a line that cannot be counted is named by its number, and the invoice's own total is compared.
 */
import { formatDecimal } from '../../billing/amount.ts';
import { usageFailure } from '../operator-failure.ts';
import {
  amountOf,
  decimalMarkOf,
  invoiceDecimals,
  isAmbiguous,
  type DecimalMark,
} from './invoice-amounts.ts';
import { columnsOf, type ColumnNames, type InvoiceColumns, type InvoiceText } from './invoice-columns.ts';

export interface InvoiceOptions extends ColumnNames {
  /** Default: as the amounts show it. */
  decimal?: DecimalMark | undefined;
}

export interface Invoice {
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
export function readInvoice(text: InvoiceText, options: InvoiceOptions): Invoice {
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
