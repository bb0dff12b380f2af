/**
 * Prints results and remarks, and asks questions. The only place of the CLI that writes to a stream. Must never print
 * anything but data on standard output once a run is asked for JSON or CSV.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Writable, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Failure, usageFailure } from '../../../shared/operate/plan.ts';
import { csvCells, csvText, shownText } from './csv.ts';
import { masked } from '../markup.ts';

/** Streams and environment of a run, from the process or a test. Passed as an argument, never global. */
export interface ProcessContext {
  /** `isTTY`: a person uses the terminal. */
  input: Readable & { isTTY?: boolean };
  output: Writable;
  errors: Writable;
  environment: NodeJS.ProcessEnv;
}

export type Format = 'text' | 'json' | 'csv';

/**
 * What a list has of each row, once for all forms: its name in JSON and CSV, its head in the table for people, its value, and
 * what people read in its place. Without a name it is for people alone, without a head for programs alone. New names go to the
 * end, because programs may count the columns of CSV.
 */
export type Column<Row> = readonly [
  name: string,
  head: string,
  value: (row: Row) => unknown,
  text?: (row: Row) => string,
];

interface Listing<Row> {
  columns: readonly Column<Row>[];
  /** For people, in place of a table without rows. */
  empty: string;
  /** What JSON has of a row, where that is more than the columns. */
  json?: (row: Row) => object;
}

/** The attributes of a row, as JSON and CSV have them. */
export const namedValues = <Row>(columns: readonly Column<Row>[], row: Row): Record<string, unknown> =>
  Object.fromEntries(columns.flatMap(([name, , value]) => (name === '' ? [] : [[name, value(row)]])));

export const columnsIn = <Row, Part>(
  part: (row: Row) => Part,
  columns: readonly Column<Part>[],
): Column<Row>[] => columns.map(([name, head, value]) => [name, head, (row) => value(part(row))]);

export function textTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[][] {
  const shown = columns.filter(([, head]) => head !== '');
  return [
    shown.map(([, head]) => head),
    ...rows.map((row) => shown.map(([, , value, text]) => text?.(row) ?? cellText(value(row)))),
  ];
}

export function cellText(value: unknown): string {
  if (value === undefined || value === null) return '-';
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(' ') || '-';
  return JSON.stringify(value);
}

export interface Terminal {
  readonly format: Format;
  readonly in: (format: Format) => Terminal;
  readonly hasData: () => boolean;
  /** Keeps in words how far long work is, until they are taken to be printed. */
  readonly count: (words: string) => void;
  readonly takeCount: () => string | undefined;
  /** Whether nothing was printed and nobody was asked for so long. */
  readonly isSilent: (milliseconds: number) => boolean;
  /** Prints a line of the result; a remark where the result is data. */
  readonly print: (line: string) => void;
  /** Prints a line that is not part of the result, to the stream for errors. */
  readonly remark: (line: string) => void;
  readonly warn: (warnings: string[]) => void;
  readonly printJson: (value: unknown) => void;
  readonly printList: <Row>(rows: readonly Row[], listing: Listing<Row>) => void;
  /** Prints aligned columns; the first row is the header. */
  readonly printTable: (rows: string[][]) => void;
  /** Prints names with their values, each below the other. */
  readonly printFacts: (facts: readonly (readonly string[])[]) => void;
  /** Prints lines to send, apart from all others. */
  readonly printMessage: (lines: readonly string[]) => void;
  /** Prints a header, then of each row the attributes that it names. */
  readonly printCsv: (names: readonly string[], rows: readonly object[]) => void;
  /** Prints further rows of CSV, without a header. */
  readonly printCsvRows: (names: readonly string[], rows: readonly object[]) => void;
  /** Lets a key be printed that this run made. All other text of that form is masked, whatever table it comes from. */
  readonly reveal: (secretKey: string) => void;
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
    counted: undefined,
    isAsking: false,
    printedMs: performance.now(),
    revealed: new Set(),
  });

/** Of a run; all its terminals share it. */
interface RunState {
  hasData: boolean;
  counted: string | undefined;
  isAsking: boolean;
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
  const printCsvRows = (names: readonly string[], rows: readonly object[]): void =>
    data(csvText(csvCells(names, rows)));
  const printCsv = (names: readonly string[], rows: readonly object[]): void =>
    data(csvText([[...names], ...csvCells(names, rows)]));
  const printTable = (rows: string[][]): void => alignColumns(rows).forEach(print);
  return {
    format,
    in: (other) => terminalIn(other, context, state),
    hasData: () => state.hasData,
    count: (words) => void (state.counted = words),
    takeCount() {
      const words = state.counted;
      state.counted = undefined;
      return words;
    },
    isSilent: (milliseconds) => !state.isAsking && performance.now() - state.printedMs >= milliseconds,
    print,
    remark,
    warn: (warnings) => warnings.forEach((warning) => remark(`warning: ${warning}`)),
    printJson,
    printTable,
    printFacts: (facts) =>
      printTable(facts.map(([name = '', ...values]) => [name === '' ? '' : `  ${name}`, ...values])),
    printMessage: (lines) =>
      ['', ...lines.map((line) => (line === '' ? '' : `  ${line}`)), ''].forEach(print),
    printCsv,
    printCsvRows,
    reveal: (secretKey) => void state.revealed.add(secretKey),
    printList(rows, { columns, empty, json = (row) => namedValues(columns, row) }) {
      const names = columns.map(([name]) => name).filter((name) => name !== '');
      if (format === 'json') printJson(rows.map(json));
      else if (format === 'csv')
        printCsv(
          names,
          rows.map((row) => namedValues(columns, row)),
        );
      else if (rows.length === 0) print(empty);
      else printTable(textTable(columns, rows));
    },
    ...questionsOn(context, state, remark),
  };
}

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

/** The key of an upstream: from a hidden line if a person uses the terminal, else all of standard input. */
export const readSecret = async ({ isAttended, askHidden, readInput }: Terminal): Promise<string> =>
  isAttended ? askHidden("The upstream's key?") : readInput("The upstream's key");
