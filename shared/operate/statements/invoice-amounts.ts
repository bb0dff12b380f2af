/** Reads amounts as invoices write them: `$1,234.50`, `1.234,50 EUR`, `(3.20)` for a credit. Must never guess: 1,234 may be two amounts. */
import { parseDecimal } from '../../billing/amount.ts';

export const invoiceDecimals = 12;

/** What stands before the decimals. */
export type DecimalMark = '.' | ',';

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
export function decimalMarkOf(cells: readonly string[]): DecimalMark | undefined {
  const marks = cells.map(markIn);
  const [dots, commas] = ['.', ','].map((mark) => marks.filter((each) => each === mark).length);
  if (dots === commas) return undefined;
  return (dots ?? 0) > (commas ?? 0) ? '.' : ',';
}

/** Whether the cell means two amounts until it is known which mark stands before decimals. */
export const isAmbiguous = (cell: string): boolean => /[.,]/.test(bare(cell)) && markIn(cell) === undefined;

/** In 10^-12 of the invoice's currency. Undefined: it is no amount. */
export function amountOf(cell: string, mark: DecimalMark): bigint | undefined {
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
