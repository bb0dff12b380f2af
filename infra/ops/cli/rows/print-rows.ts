/** Prints rows of the configuration as they are written, and what is known against them. */
import type { ShownRow } from '../../../../shared/operate/config/show-row.ts';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import type { Terminal } from '../terminal/terminal.ts';

interface Shape {
  /** The key attribute. */
  keyName: string;
  /** Attributes that lists show. */
  columns: readonly string[];
  empty: string;
}

const textOf = (value: unknown): string =>
  value === undefined ? '-' : typeof value === 'string' ? value : JSON.stringify(value);

const rowJson = (keyName: string, { key, row, problem, warning, by, at }: ShownRow): object => ({
  [keyName]: key,
  ...row,
  ...(problem !== undefined && { problem }),
  ...(warning !== undefined && { warning }),
  ...(by !== undefined && { written_by: by }),
  ...(at !== undefined && { written_at: at }),
});

export function printRows(terminal: Terminal, rows: ShownRow[], { keyName, columns, empty }: Shape): void {
  terminal.printList({
    columns: [keyName, ...columns, 'problem', 'warning', 'written_by', 'written_at'],
    rows: rows.map((each) => rowJson(keyName, each)),
    table: () => [
      [keyName, ...columns].map((name) => name.toUpperCase()),
      ...rows.map(({ key, row }) => [
        String(key),
        ...columns.map((name) => (row ? textOf(row[name]) : '(not shown)')),
      ]),
    ],
    empty,
  });
  if (terminal.format !== 'text') return;
  for (const { key, problem, warning } of rows) {
    if (problem !== undefined) terminal.remark(`${key} is not used: ${problem}`);
    if (warning !== undefined) terminal.remark(`${key}: ${warning}`);
  }
}

/** Throws a Failure for a row that is not used: none of its values is shown, as one may be a secret. */
export function printRow(terminal: Terminal, keyName: string, shown: ShownRow): void {
  if (shown.problem !== undefined) throw new Failure(`${shown.key} is not used: ${shown.problem}`);
  if (terminal.format === 'json') return terminal.printJson(rowJson(keyName, shown));
  const { key, row = {}, warning, by, at } = shown;
  terminal.printTable([
    [keyName, String(key)],
    ...Object.entries(row)
      .filter(([name]) => name !== keyName)
      .map(([name, value]) => [`  ${name}`, textOf(value)]),
  ]);
  if (by !== undefined) terminal.print(`written by ${by}${at === undefined ? '' : ` at ${at}`}`);
  if (warning !== undefined) terminal.warn([warning]);
}
