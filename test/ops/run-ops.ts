import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

export interface OpsRun {
  /** The exit code. */
  code: number;
  output: string;
  errors: string;
}

const program = new URL('../../infra/ops/main.ts', import.meta.url).pathname;

/** Runs the operators' tool as its own process, with an environment that knows no AWS account. */
export async function runOps(
  words: string[],
  environment: Record<string, string> = {},
  input = '',
): Promise<OpsRun> {
  const child = spawn(process.execPath, [program, ...words], {
    env: {
      PATH: process.env['PATH'] ?? '',
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_CONFIG_FILE: '/nonexistent',
      AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
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
