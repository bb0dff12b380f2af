import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Failure } from '../../../../shared/operate/operator-failure.ts';
import { surroundings } from './process-context.ts';

/** A line of the result. */
export function say(line: string): void {
  surroundings.output.write(`${line}\n`);
}

/** A remark that is no result: not to be read by a program that reads the result. */
export function remark(line: string): void {
  surroundings.errors.write(`${line}\n`);
}

export function sayJson(value: unknown): void {
  say(JSON.stringify(value, null, 2));
}

/** Aligned columns; the first row is the head. */
export function sayColumns(rows: string[][]): void {
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  );
  for (const row of rows) {
    say(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  }
}

/** Whether a person is there to answer. */
export const isAttended = (): boolean => surroundings.input.isTTY === true;

/** Asks before something is taken away. Throws unless the answer is yes. */
export async function confirm(question: string, options: { yes?: boolean | undefined }): Promise<void> {
  if (options.yes) return;
  if (!isAttended()) throw new Failure(`${question} Nobody is here to answer: repeat with --yes.`);
  if (!/^y(es)?$/i.test(await ask(`${question} [y/N]`))) throw new Failure('nothing was changed');
}

/** One line, typed by a person. An input that ends instead ends the run. */
export async function ask(question: string): Promise<string> {
  return readTyped(question, surroundings.errors);
}

/** As `ask`, for a secret: what is typed or pasted does not show. */
export async function askHidden(question: string): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  remark(`${question} (it does not show)`);
  return readTyped('', nowhere);
}

async function readTyped(question: string, echo: Writable): Promise<string> {
  const reader = createInterface({ input: surroundings.input, output: echo, terminal: true, historySize: 0 });
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

/** The whole standard input, for values that should not stand in the shell's history. */
export async function readInput(prompt: string): Promise<string> {
  if (isAttended()) remark(`${prompt} (then Ctrl-D)`);
  return (await text(surroundings.input)).trim();
}
