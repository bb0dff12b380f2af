/**
 * Prints results and remarks, and asks questions. The only place of the CLI that writes to a stream. Must never print
 * anything but data on standard output once a run is asked for JSON or CSV.
 */
import { type Readable, Writable } from 'node:stream';
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import { CsvError, parse } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';
import { usageFailure, Failure } from '../../../shared/operate/plan.ts';

// Streams and environment of a run, from the process or a test. Passed as an argument, never global.

export interface ProcessContext {
  /** `isTTY`: a person uses the terminal. */
  input: Readable & { isTTY?: boolean };
  /** Results. */
  output: Writable;
  /** Remarks, questions and failures. */
  errors: Writable;
  environment: NodeJS.ProcessEnv;
}

/**
 * Text as it may reach a terminal or a spreadsheet: rows, customers and upstreams write what they like, and must not move a
 * cursor, name a window, turn a line around or run as a formula.
 */

/** Control characters but tab and line feed, and the marks that turn the order of what follows. */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const unprintable = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** As JSON writes them, so that JSON stays the same value. */
const shownText = (text: string): string =>
  text.replaceAll(unprintable, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Some take a line feed off first, and full-width signs for the usual ones. */
const formulaStart = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;

/** A text that a spreadsheet would run begins with a quote. Numbers and names such as `@cf/model` run nothing, and stay. */
const shownCell = (text: string): string =>
  formulaStart.test(text) && !/^(?:[-@][\w.:/@-]*|[+-]?[\d.]+)$/.test(text) ? `'${text}` : text;

// CSV (RFC 4180), written for spreadsheets and read from price lists.

type CsvCell = string | number | undefined;

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

/** What standard output holds: lines for people, one JSON value, or CSV. */
export type Format = 'text' | 'json' | 'csv';

/** Rows of one kind, in each form. */
interface List {
  /** The names of the attributes of a row, in the order of the columns of CSV. New ones go to the end. */
  columns: readonly string[];
  /** As JSON has them. */
  rows: readonly object[];
  /** For people; the first row is the header. */
  table: () => string[][];
  /** For people, in place of a table without rows. */
  empty: string;
}

export interface Terminal {
  readonly format: Format;
  /** The same streams, another form. */
  readonly in: (format: Format) => Terminal;
  /** Whether standard output has data already. */
  readonly hasData: () => boolean;
  /** Whether nothing was printed and nobody was asked for so long. */
  readonly isSilent: (milliseconds: number) => boolean;
  /** Prints a line of the result; a remark where the result is data. */
  readonly print: (line: string) => void;
  /** Prints a line that is not part of the result, to the stream for errors. */
  readonly remark: (line: string) => void;
  /** Prints each as a remark that begins with `warning:`. */
  readonly warn: (warnings: string[]) => void;
  /** Prints the one value of JSON. */
  readonly printJson: (value: unknown) => void;
  /** Prints rows in the form that was asked for. */
  readonly printList: (list: List) => void;
  /** Prints aligned columns; the first row is the header. */
  readonly printTable: (rows: string[][]) => void;
  readonly printCsv: (rows: CsvCell[][]) => void;
  /** Lets a key be printed that this run made. All other text of that form is masked, whatever table it comes from. */
  readonly reveal: (secretKey: string) => void;
  /** Whether a person can answer questions. */
  readonly isAttended: boolean;
  /** Asks for confirmation of a change. Throws a Failure unless the answer is yes. */
  readonly confirm: (question: string, options: { yes?: boolean | undefined }) => Promise<void>;
  /** Reads a line that a person types. Throws a Failure if the input ends first. */
  readonly ask: (question: string) => Promise<string>;
  /** Like `ask`, but typed or pasted text is not shown; for secrets. */
  readonly askHidden: (question: string) => Promise<string>;
  /** Reads all of standard input; for values that must not be in the shell's history. */
  readonly readInput: (prompt: string) => Promise<string>;
}

export const openTerminal = (context: ProcessContext): Terminal =>
  terminalIn('text', context, {
    hasData: false,
    isAsking: false,
    printedMs: performance.now(),
    revealed: new Set(),
  });

/** Of a run; all its terminals share it. */
interface RunState {
  hasData: boolean;
  isAsking: boolean;
  /** Of `performance.now()`. */
  printedMs: number;
  revealed: Set<string>;
}

function terminalIn(format: Format, context: ProcessContext, state: RunState): Terminal {
  const { output, errors } = context;
  const write = (stream: Writable, text: string): void => {
    state.printedMs = performance.now();
    stream.write(masked(text, state.revealed));
  };
  const data = (text: string): void => {
    state.hasData = true;
    write(output, text);
  };
  const remark = (line: string): void => write(errors, `${shownText(line)}\n`);
  const print = format === 'text' ? (line: string) => write(output, `${shownText(line)}\n`) : remark;
  const printJson = (value: unknown): void => data(`${shownText(JSON.stringify(value, null, 2))}\n`);
  const printCsv = (rows: CsvCell[][]): void => data(csvText(rows));
  const printTable = (rows: string[][]): void => alignColumns(rows).forEach(print);
  return {
    format,
    in: (other) => terminalIn(other, context, state),
    hasData: () => state.hasData,
    isSilent: (milliseconds) => !state.isAsking && performance.now() - state.printedMs >= milliseconds,
    print,
    remark,
    warn: (warnings) => warnings.forEach((warning) => remark(`warning: ${warning}`)),
    printJson,
    printTable,
    printCsv,
    reveal: (secretKey) => void state.revealed.add(secretKey),
    printList({ columns, rows, table, empty }) {
      if (format === 'json') printJson(rows);
      else if (format === 'csv') printCsv(csvRows(columns, rows));
      else if (rows.length === 0) print(empty);
      else printTable(table());
    },
    ...questionsOn(context, state, remark),
  };
}

/** A client's key, or one of many vendors': one may stand in a wrong attribute, a note or an error. */
const keyPattern = /\bsk-[\w-]{20,}/g;

export const masked = (text: string, revealed: ReadonlySet<string> = new Set()): string =>
  text.replaceAll(keyPattern, (key) => (revealed.has(key) ? key : `${key.slice(0, 7)}...${key.slice(-4)}`));

/** Questions and what is asked appear on the stream for errors. */
function questionsOn(
  { input, errors }: ProcessContext,
  state: RunState,
  remark: (line: string) => void,
): Pick<Terminal, 'isAttended' | 'confirm' | 'ask' | 'askHidden' | 'readInput'> {
  const isAttended = input.isTTY === true;
  const whileAsking = async <Answer>(work: Promise<Answer>): Promise<Answer> => {
    state.isAsking = true;
    return work.finally(() => {
      state.isAsking = false;
      state.printedMs = performance.now();
    });
  };
  const ask = (question: string): Promise<string> => whileAsking(readTyped(question, input, errors));
  return {
    isAttended,
    async confirm(question, { yes }) {
      if (yes) return;
      if (!isAttended) throw usageFailure(`${question} Nobody is here to answer: repeat with --yes.`);
      if (!/^y(es)?$/i.test(await ask(`${question} [y/N]`))) throw new Failure('nothing was changed');
    },
    ask,
    async askHidden(question) {
      remark(`${question} (it does not show)`);
      return whileAsking(readTyped('', input, new Writable({ write: (_chunk, _encoding, done) => done() })));
    },
    async readInput(prompt) {
      if (isAttended) remark(`${prompt} (then Ctrl-D)`);
      return (await whileAsking(text(input))).trim();
    },
  };
}

/** A cell is on one line: what stands in a row cannot look like another row. */
function alignColumns(cells: string[][]): string[] {
  const rows = cells.map((row) => row.map((cell) => cell.replaceAll(/[\n\t]/g, ' ')));
  const widths = (rows[0] ?? []).map((_, column) =>
    // Of 120,000 rows, as arguments they would be too many.
    rows.reduce((most, row) => Math.max(most, (row[column] ?? '').length), 0),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

async function readTyped(question: string, input: ProcessContext['input'], echo: Writable): Promise<string> {
  const reader = createInterface({ input, output: echo, terminal: true, historySize: 0 });
  const given = new AbortController();
  const ended = once(reader, 'close', { signal: given.signal }).then(() => {
    throw new Failure('nothing was changed');
  });
  try {
    return (await Promise.race([reader.question(`${question} `), ended])).trim();
  } catch (error) {
    // Ctrl-C.
    if (error instanceof Error && error.name === 'AbortError') throw new Failure('nothing was changed');
    throw error;
  } finally {
    given.abort();
    ended.catch(() => undefined);
    reader.close();
  }
}

/** Finds what stands between the cells of a text that a spreadsheet wrote. */

/** The delimiter that is in most lines, outside of quotes; where commas stand in amounts, the other one. */
export function delimiterOf(text: string): string {
  const lines = text
    .replaceAll(/"([^"]|"")*"/g, '')
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '');
  const countOf = (delimiter: string): number => lines.filter((line) => line.includes(delimiter)).length;
  return ['\t', ';', ','].reduce((best, each) => (countOf(each) > countOf(best) ? each : best));
}

// Reads the key of an upstream: from a hidden line if a person uses the terminal, else all of standard input.

export const readSecret = async ({ isAttended, askHidden, readInput }: Terminal): Promise<string> =>
  isAttended ? askHidden("The upstream's key?") : readInput("The upstream's key");
