import { say } from '../../../infra/ops/cli/terminal/terminal.ts';

/** A line of CSV (RFC 4180). */
export function sayCsv(cells: (string | number | undefined)[]): void {
  say(cells.map(quoted).join(','));
}

function quoted(cell: string | number | undefined): string {
  const text = String(cell ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** The rows of a CSV text; quoted cells may hold commas, quotes and line ends. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  const cell = /(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g;
  const source = text.replace(/^\uFEFF/, '');
  for (const [, inQuotes, plain = '', end] of source.matchAll(cell)) {
    row.push(inQuotes === undefined ? plain.trim() : inQuotes.replaceAll('""', '"'));
    if (end === ',') continue;
    if (row.length > 1 || row[0] !== '') rows.push(row);
    row = [];
  }
  return rows;
}
