/** CSV (RFC 4180), written for spreadsheets and read from price lists. */
import { CsvError, parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { usageFailure } from '../../../../shared/operate/operator-failure.ts';

export type CsvCell = string | number | undefined;

/** @returns lines, each with its line end; empty if there are no rows */
export const csvText = (rows: CsvCell[][]): string => stringify(rows, { quoted_match: /\r/ });

/** Parses CSV. Quoted cells may contain commas, quotes, line ends. Unmatched quotes throw a Failure. */
export function parseCsv(text: string): string[][] {
  try {
    return parse(text, {
      bom: true,
      trim: true,
      record_delimiter: ['\r\n', '\n'],
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
    });
  } catch (error) {
    if (error instanceof CsvError) throw usageFailure(`this file is not readable as CSV: ${error.message}`);
    throw error;
  }
}
