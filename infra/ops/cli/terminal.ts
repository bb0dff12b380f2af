/**
 * Prints results and remarks, and asks questions. The only place of the CLI that writes to a stream. Must never print
 * anything but data on standard output once a run is asked for JSON or CSV.
 */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Writable, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Failure, usageFailure } from '../../../shared/operate/plan.ts';
import { selectCsvCells, formatCsv, escapeUnprintable } from '../csv.ts';
import { maskKeys } from '../markup.ts';

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
 * A column of a list in all formats: its name in JSON and CSV, its heading in the table for people, its value, and the text that
 * people read instead. Without a name only people see it, without a heading only programs. Add new names at the end, because
 * programs may count the columns of CSV.
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
  /** The JSON form of a row, if it has more than the columns. */
  json?: (row: Row) => object;
}

/** The attributes of a row, as JSON and CSV have them. */
export const nameValues = <Row>(columns: readonly Column<Row>[], row: Row): Record<string, unknown> =>
  Object.fromEntries(columns.flatMap(([name, , value]) => (name === '' ? [] : [[name, value(row)]])));

export const nestColumns = <Row, Part>(
  part: (row: Row) => Part,
  columns: readonly Column<Part>[],
): Column<Row>[] => columns.map(([name, head, value]) => [name, head, (row) => value(part(row))]);

export function formatTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string[][] {
  const shown = columns.filter(([, head]) => head !== '');
  return [
    shown.map(([, head]) => head),
    ...rows.map((row) => shown.map(([, , value, text]) => text?.(row) ?? formatText(value(row)))),
  ];
}

export function formatText(value: unknown): string {
  if (value === undefined || value === null) return '-';
  if (typeof value === 'string') return value;
  if (Array.isArray(value) && value.every((each) => typeof each === 'string')) return value.join(' ') || '-';
  return JSON.stringify(value);
}

/** How often long work says where it is. Shorter work says nothing. */
const everyMs = 2000;

/** The terminal of a run, in one format. Its functions work without the object. */
export class Terminal {
  readonly #context: ProcessContext;
  readonly #run: RunState;
  readonly format: Format;
  readonly isAttended: boolean;

  constructor(
    context: ProcessContext,
    format: Format = 'text',
    run: RunState = { hasData: false, isAsking: false, printedMs: performance.now(), revealed: new Set() },
  ) {
    this.#context = context;
    this.#run = run;
    this.format = format;
    this.isAttended = context.input.isTTY === true;
  }

  readonly in = (format: Format): Terminal => new Terminal(this.#context, format, this.#run);

  readonly hasData = (): boolean => this.#run.hasData;

  /** Prints a line of the result; a remark where the result is data. */
  readonly print = (line: string): void =>
    this.format === 'text'
      ? this.#write(this.#context.output, `${escapeUnprintable(line)}\n`)
      : this.remark(line);

  /** Prints a line that is not part of the result, to the stream for errors. */
  readonly remark = (line: string): void => this.#write(this.#context.errors, `${escapeUnprintable(line)}\n`);

  readonly warn = (warnings: readonly string[]): void =>
    warnings.forEach((warning) => this.remark(`warning: ${warning}`));

  /** Prints a result in the form that was asked for. */
  readonly printAs = (json: unknown, text: () => unknown, csv?: CsvRows): void => {
    if (this.format === 'json') this.printJson(json);
    else if (this.format === 'csv' && csv) this.printCsv(...csv);
    else text();
  };

  readonly printJson = (value: unknown): void =>
    this.#writeData(`${escapeUnprintable(JSON.stringify(value, null, 2))}\n`);

  /** Prints a header, then of each row the attributes that it names. */
  readonly printCsv = (names: readonly string[], rows: readonly object[]): void =>
    this.#writeData(formatCsv([[...names], ...selectCsvCells(names, rows)]));

  /** Prints further rows of CSV, without a header. */
  readonly printCsvRows = (names: readonly string[], rows: readonly object[]): void =>
    this.#writeData(formatCsv(selectCsvCells(names, rows)));

  readonly printList = <Row>(rows: readonly Row[], { columns, empty, json }: Listing<Row>): void => {
    const valuesOf = (row: Row): object => nameValues(columns, row);
    if (this.format === 'json') this.printJson(rows.map(json ?? valuesOf));
    else if (this.format === 'csv')
      this.printCsv(
        columns.map(([name]) => name).filter((name) => name !== ''),
        rows.map(valuesOf),
      );
    else if (rows.length === 0) this.print(empty);
    else this.printTable(formatTable(columns, rows));
  };

  /** Prints aligned columns; the first row is the header. */
  readonly printTable = (rows: string[][]): void => alignColumns(rows).forEach(this.print);

  /** Prints names with their values, each below the other. */
  readonly printFacts = (facts: readonly (readonly string[])[]): void =>
    this.printTable(facts.map(([name = '', ...values]) => [name === '' ? '' : `  ${name}`, ...values]));

  /** Prints lines to send, apart from all others. */
  readonly printMessage = (lines: readonly string[]): void =>
    ['', ...lines.map((line) => (line === '' ? '' : `  ${line}`)), ''].forEach(this.print);

  /** Lets a key be printed that this run made. All other text of that form is masked, whatever table it comes from. */
  readonly reveal = (secretKey: string): void => void this.#run.revealed.add(secretKey);

  readonly revealMade = async <Made extends { secretKey: string }>(work: Promise<Made>): Promise<Made> => {
    const made = await work;
    this.reveal(made.secretKey);
    return made;
  };

  /** Keeps in words how far long work is, until they are printed. */
  readonly count = (words: string): void => void (this.#run.counted = words);

  /** Says what was counted since, or that a command still works, as long as nothing else was printed and nobody is asked. */
  readonly whileWorking = async <Result>(
    what: string,
    work: () => Promise<Result>,
    more: () => string = () => '',
  ): Promise<Result> => {
    const startedMs = performance.now();
    const timer = setInterval(() => {
      const { counted, isAsking, printedMs } = this.#run;
      const nowMs = performance.now();
      this.#run.counted = undefined;
      if (counted !== undefined) this.remark(`... ${counted}`);
      else if (!isAsking && nowMs - printedMs >= everyMs)
        this.remark(`... ${what}: ${Math.round((nowMs - startedMs) / 1000)} s${more()}`);
    }, everyMs);
    return work().finally(() => clearInterval(timer));
  };

  /** Asks for confirmation of a change. Throws a Failure unless the answer is yes. */
  readonly confirm = async (question: string, { yes }: { yes?: boolean | undefined }): Promise<void> => {
    if (yes) return;
    if (!this.isAttended)
      throw usageFailure(`${question} Re-run with --yes: there is no terminal to confirm.`);
    if (!/^y(es)?$/i.test(await this.ask(`${question} [y/N]`)))
      throw new Failure('cancelled; nothing was changed');
  };

  /** Reads a line that a person types. Throws a Failure if the input ends first. */
  readonly ask = (question: string): Promise<string> =>
    this.#trackQuestion(readTyped(question, this.#context.input, this.#context.errors));

  /** All of standard input; for values that must not be in the shell's history. */
  readonly readInput = async (prompt: string): Promise<string> => {
    if (this.isAttended) this.remark(`${prompt}, then press Ctrl-D:`);
    return (await this.#trackQuestion(text(this.#context.input))).trim();
  };

  /** The key of an upstream: from a line that does not show if a person uses the terminal, else all of standard input. */
  readonly readSecret = async (): Promise<string> => {
    if (!this.isAttended) return this.readInput('Paste the secret');
    this.remark('Secret (input is hidden):');
    const unseen = new Writable({ write: (_chunk, _encoding, done) => done() });
    return this.#trackQuestion(readTyped('', this.#context.input, unseen));
  };

  async #trackQuestion<Answer>(answer: Promise<Answer>): Promise<Answer> {
    this.#run.isAsking = true;
    return answer.finally(() => {
      this.#run.isAsking = false;
      this.#run.printedMs = performance.now();
    });
  }

  #writeData(text: string): void {
    this.#run.hasData = true;
    this.#write(this.#context.output, text);
  }

  #write(stream: Writable, text: string): void {
    this.#run.printedMs = performance.now();
    stream.write(maskKeys(text, this.#run.revealed));
  }
}

/** Shared by a run's terminals in all formats. */
interface RunState {
  hasData: boolean;
  counted?: string | undefined;
  isAsking: boolean;
  printedMs: number;
  revealed: Set<string>;
}

type CsvRows = readonly [names: readonly string[], rows: readonly object[]];

/** A cell is on one line: what stands in a row cannot look like another row. */
function alignColumns(cells: string[][]): string[] {
  const rows = cells.map((row) => row.map((cell) => cell.replaceAll(/[\n\t]/g, ' ')));
  const widths = (rows[0] ?? []).map((_, column) =>
    // 120,000 rows are too many for one call's arguments.
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
    throw new Failure('cancelled; nothing was changed');
  });
  try {
    return (await Promise.race([reader.question(`${question} `), ended])).trim();
  } catch (error) {
    // Ctrl-C.
    if (error instanceof Error && error.name === 'AbortError')
      throw new Failure('cancelled; nothing was changed');
    throw error;
  } finally {
    given.abort();
    ended.catch(() => undefined);
    reader.close();
  }
}
