/**
 * CSV (RFC 4180), written for spreadsheets and read from price lists, and text as it may reach a spreadsheet or a terminal:
 * rows, customers and upstreams write what they like, and must not move a cursor, name a window, turn a line around or run
 * as a formula.
 */
import { CsvError, parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { usageFailure } from '../../shared/operate/plan.ts';
import type { PriceSource } from '../../shared/operate/prices/price-list.ts';

type CsvCell = string | number | undefined;

/** @returns lines, each with its line end; empty if there are no rows */
export const formatCsv = (rows: CsvCell[][]): string =>
  stringify(rows, { cast: { string: (cell) => escapeFormula(escapeUnprintable(cell)) } });

/**
 * The one rule by which lists become CSV: each attribute as it is; several values of one attribute with a blank between,
 * whatever is deeper as JSON, nothing for what is absent.
 */
export const selectCsvCells = (names: readonly string[], rows: readonly object[]): CsvCell[][] =>
  rows.map((row) => names.map((name) => formatCsvCell((row as Record<string, unknown>)[name])));

function formatCsvCell(value: unknown): CsvCell {
  if (value === undefined || value === null) return '';
  if (typeof value === 'string' || typeof value === 'number') return value;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value.join(' ');
  return JSON.stringify(value);
}

/**
 * Parses CSV. Quoted cells may contain delimiters, quotes and line ends. Unmatched quotes throw a Failure. `number`: the line in the file, from
 * 1; the last one if a cell has line ends.
 */
export function parseCsvLines(text: string, delimiter: string): { number: number; cells: string[] }[] {
  if (/^\s*<[!?a-z]/i.test(text)) throw usageFailure('csv: this is HTML or XML, not CSV');
  if (text.includes('\0')) throw usageFailure('csv: this is not a text file: save the sheet as CSV UTF-8');
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
    if (error instanceof CsvError) throw usageFailure(`csv: this is not readable as CSV: ${error.message}`);
    throw error;
  }
}

/** The delimiter that is in most lines, outside of quotes; where commas stand in amounts, the other one. */
export function delimiterOf(text: string): string {
  const lines = text
    .replaceAll(/"([^"]|"")*"/g, '')
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '');
  const countOf = (delimiter: string): number => lines.filter((line) => line.includes(delimiter)).length;
  return ['\t', ';', ','].reduce((best, each) => (countOf(each) > countOf(best) ? each : best));
}

export const parsePriceList = (text: string): PriceSource =>
  text.trimStart().startsWith('{') ? text : parseCsvLines(text, delimiterOf(text)).map(({ cells }) => cells);

/** Control characters but tab and line feed, and the marks that turn the order of what follows. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** As JSON writes them, so that JSON stays the same value. */
export const escapeUnprintable = (text: string): string =>
  text.replaceAll(unprintable, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Some take a line feed off first, and full-width signs for the usual ones. */
const formulaStart = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/** A text that a spreadsheet would run begins with a quote. Numbers and names such as `@cf/model` run nothing, and stay. */
export const escapeFormula = (text: string): string =>
  formulaStart.test(text) && !/^(?:[-@][\w.:/@-]*|[+-]?[\d.]+)$/.test(text) ? `'${text}` : text;
