/** Prints results and remarks, and asks the person at the terminal. The only place of the CLI that writes to a stream. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import { csvText, type CsvCell } from './csv.ts';
import type { ProcessContext } from './process-context.ts';

export interface Terminal {
  /** A line of the result. */
  readonly print: (line: string) => void;
  /** A line that is no part of the result: a program that reads the result does not see it. */
  readonly remark: (line: string) => void;
  /** Remarks, each as a warning. */
  readonly warn: (warnings: string[]) => void;
  readonly printJson: (value: unknown) => void;
  /** Aligned columns; the first row is the head. */
  readonly printTable: (rows: string[][]) => void;
  readonly printCsv: (rows: CsvCell[][]) => void;
  /** Whether a person is there to answer. */
  readonly isAttended: boolean;
  /** Asks before something is changed. Throws a Failure unless the answer is yes. */
  readonly confirm: (question: string, options: { yes?: boolean | undefined }) => Promise<void>;
  /** One line, typed by a person. An input that ends instead ends the run. */
  readonly ask: (question: string) => Promise<string>;
  /** As `ask`, for a secret: what is typed or pasted does not show. */
  readonly askHidden: (question: string) => Promise<string>;
  /** The whole standard input, for values that should not stand in the shell's history. */
  readonly readInput: (prompt: string) => Promise<string>;
}

export function openTerminal({ input, output, errors }: ProcessContext): Terminal {
  const print = (line: string): void => void output.write(`${line}\n`);
  const remark = (line: string): void => void errors.write(`${line}\n`);
  const isAttended = input.isTTY === true;
  const ask = (question: string): Promise<string> => readTyped(question, input, errors);
  return {
    print,
    remark,
    warn: (warnings) => warnings.forEach((warning) => remark(`warning: ${warning}`)),
    printJson: (value) => print(JSON.stringify(value, null, 2)),
    printTable: (rows) => alignColumns(rows).forEach(print),
    printCsv: (rows) => void output.write(csvText(rows)),
    isAttended,
    async confirm(question, { yes }) {
      if (yes) return;
      if (!isAttended) throw new Failure(`${question} Nobody is here to answer: repeat with --yes.`);
      if (!/^y(es)?$/i.test(await ask(`${question} [y/N]`))) throw new Failure('nothing was changed');
    },
    ask,
    async askHidden(question) {
      remark(`${question} (it does not show)`);
      return readTyped('', input, new Writable({ write: (_chunk, _encoding, done) => done() }));
    },
    async readInput(prompt) {
      if (isAttended) remark(`${prompt} (then Ctrl-D)`);
      return (await text(input)).trim();
    },
  };
}

function alignColumns(rows: string[][]): string[] {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
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
