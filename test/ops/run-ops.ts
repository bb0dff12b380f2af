import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { runProgram } from '../../infra/ops/cli/program.ts';
import { compileCache } from '../support/compile-cache.ts';
import { KeptOutput } from '../support/kept-output.ts';

export interface OpsRun {
  /** The exit code. */
  code: number;
  output: string;
  errors: string;
}

type Variables = Record<string, string>;

/** A command line; a list if a word contains a space. */
export type Words = string | readonly string[];

export const wordsIn = (words: Words): string[] =>
  typeof words === 'string' ? words.split(' ') : [...words];

/** Tests use many variable names. */
const named = { RELAY_ENV_SECRETS: '*' };

/**
 * Runs a command of the operators' tool as its process would but for the start of one; the SDK still
 * reads its own variables from the environment of the test.
 */
export async function runOps(words: Words, environment: Variables = {}, input = ''): Promise<OpsRun> {
  const output = new KeptOutput();
  const errors = new KeptOutput();
  const code = await runProgram(wordsIn(words), {
    input: Readable.from([input]),
    output,
    errors,
    environment: { ...named, ...environment },
  });
  return { code, output: output.text, errors: errors.text };
}

/**
 * Runs a command with a person before it, who answers each question as it appears: `[question's end, answer]`. What was
 * asked, and what a terminal shows of the answers, is in `errors`.
 */
export async function runOpsAttended(
  words: Words,
  environment: Variables,
  answers: [string, string][],
): Promise<OpsRun> {
  const input = Object.assign(new PassThrough(), { isTTY: true });
  const open = [...answers];
  const output = new KeptOutput();
  const errors = new KeptOutput((text) => {
    const next = open[0];
    if (next === undefined || !text.trimEnd().endsWith(next[0])) return;
    open.shift();
    input.write(`${next[1]}\r`);
  });
  const code = await runProgram(wordsIn(words), {
    input,
    output,
    errors,
    environment: { ...named, ...environment },
  });
  return { code, output: output.text, errors: errors.text };
}

const program = new URL('../../infra/ops/cli/main.ts', import.meta.url).pathname;

/** Runs the tool as its own process, with an environment that knows no AWS account. */
export async function runOpsProcess(words: Words, environment: Variables = {}, input = ''): Promise<OpsRun> {
  const child = spawn(process.execPath, [program, ...wordsIn(words)], {
    env: {
      PATH: process.env['PATH'] ?? '',
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_CONFIG_FILE: '/nonexistent',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
      ...compileCache,
      ...named,
      ...environment,
    },
  });
  child.stdin.end(input);
  const [output, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number]>,
  ]);
  return { code, output, errors };
}
