/** CSV (RFC 4180), written for spreadsheets and read from price lists. */
import { CsvError, parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';
import { shownCell, shownText } from './shown-text.ts';

export type CsvCell = string | number | undefined;

/** @returns lines, each with its line end; empty if there are no rows */
export const csvText = (rows: CsvCell[][]): string =>
  stringify(rows, { cast: { string: (cell) => shownCell(shownText(cell)) } });

/**
 * The one rule by which lists become CSV: a header, then each attribute as it is; several values of one attribute with a
 * blank between, whatever is deeper as JSON, nothing for what is absent.
 */
export const csvRows = (columns: readonly string[], rows: readonly object[]): CsvCell[][] => [
  [...columns],
  ...rows.map((row) => columns.map((name) => csvCell((row as Record<string, unknown>)[name]))),
];

function csvCell(value: unknown): CsvCell {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string' || typeof value === 'number') return value;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(' ');
  return JSON.stringify(value);
}

/** Parses CSV. Quoted cells may contain delimiters, quotes, line ends. Unmatched quotes throw a Failure. */
export const parseCsv = (text: string): string[][] => csvLines(text, ',').map(({ cells }) => cells);

/** Lines with their numbers in the file, from 1; of a cell with line ends, the last. */
export function csvLines(text: string, delimiter: string): { number: number; cells: string[] }[] {
  try {
    const lines = parse(text, {
      bom: true,
      trim: true,
      delimiter,
      record_delimiter: ['\r\n', '\n', '\r'],
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      info: true,
    }) as unknown as { record: string[]; info: { lines: number } }[];
    return lines.map(({ record, info }) => ({ number: info.lines, cells: record }));
  } catch (error) {
    if (error instanceof CsvError) throw usageFailure(`this file is not readable as CSV: ${error.message}`);
    throw error;
  }
}
