/** Finds the columns of model and amount of an invoice by their names. */
import { usageFailure } from '../operator-failure.ts';

export interface InvoiceText {
  /** Between cells. */
  delimiter: string;
  /** `number` as in the file, from 1. */
  lines: { number: number; cells: string[] }[];
}

export interface ColumnNames {
  /** Where they are not found by themselves. */
  modelColumn?: string | undefined;
  amountColumn?: string | undefined;
}

/** Positions in a line. */
export interface InvoiceColumns {
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
export function columnsOf({ lines }: InvoiceText, { modelColumn, amountColumn }: ColumnNames): Found {
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
