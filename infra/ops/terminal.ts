import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import { Failure } from './failure.ts';

/** A line of the result. */
export function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** A remark that is no result: not to be read by a program that reads the result. */
export function remark(line: string): void {
  process.stderr.write(`${line}\n`);
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

/** Asks before something is taken away. Throws unless the answer is yes. */
export async function confirm(question: string, options: { yes?: boolean | undefined }): Promise<void> {
  if (options.yes) return;
  if (!process.stdin.isTTY) throw new Failure(`${question} Nobody is here to answer: repeat with --yes.`);
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await reader.question(`${question} [y/N] `);
  reader.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure('nothing was changed');
}

/** The whole standard input, for values that should not stand in the shell's history. */
export async function readInput(prompt: string): Promise<string> {
  if (process.stdin.isTTY) remark(`${prompt} (then Ctrl-D)`);
  return (await text(process.stdin)).trim();
}
