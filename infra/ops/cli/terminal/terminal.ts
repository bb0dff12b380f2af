/** Prints results and remarks, and asks questions. The only place of the CLI that writes to a stream. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import { csvText, type CsvCell } from './csv.ts';
import type { ProcessContext } from './process-context.ts';

export interface Terminal {
  /** Prints a line of the result. */
  readonly print: (line: string) => void;
  /** Prints a line that is not part of the result, to the stream for errors. */
  readonly remark: (line: string) => void;
  /** Prints each as a remark that begins with `warning:`. */
  readonly warn: (warnings: string[]) => void;
  readonly printJson: (value: unknown) => void;
  /** Prints aligned columns; the first row is the header. */
  readonly printTable: (rows: string[][]) => void;
  readonly printCsv: (rows: CsvCell[][]) => void;
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
