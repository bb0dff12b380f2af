/** What was typed into the fields of a row: numbers and lists as typed, JSON where an attribute is a map. */
import { parseDecimal } from '../../../../shared/billing/amount.ts';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
import type { RawRow } from '../../../../shared/operate/row-tables.ts';

/** As typed: the row's schema says what is wrong with it. Empty: the attribute is removed. */
export const typed = (text: string): string | undefined => (text === '' ? undefined : text);

/** Empty: the attribute is removed. A text that is no number stays one, for the row's schema to refuse. */
export function typedNumber(text: string): number | string | undefined {
  if (text === '') return undefined;
  const number = Number(text);
  // JavaScript reads `0x1F` as one too, and 1e400 as one that no row can hold.
  return parseDecimal(text, 0) !== undefined && Number.isFinite(number) ? number : text;
}

/** Names apart by commas, blanks or lines. */
export const typedList = (text: string): string[] => text.split(/[\s,]+/).filter((name) => name !== '');

/** Throws a Failure that names the field. */
export function typedJson(name: string, text: string): Record<string, unknown> {
  if (text === '') return {};
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // The parser's message quotes the text, which may contain a secret.
  }
  throw usageFailure(`${name}: found no JSON, wanted a map such as {"params": {...}}`);
}

/** What of a row has no field of its own. */
export const otherAttributes = (row: RawRow, own: readonly string[]): RawRow =>
  Object.fromEntries(
    Object.entries(row).filter(
      ([name]) => name !== 'id' && !name.startsWith('_') && !own.some((each) => each === name),
    ),
  );

/** All of these attributes as removed, to put what was typed over them. */
export const removed = (row: RawRow): RawRow =>
  Object.fromEntries(Object.keys(row).map((name) => [name, undefined]));
