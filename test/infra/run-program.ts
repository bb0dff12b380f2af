/** Runs a program for a test, and collects its output. */
import { spawn } from 'node:child_process';

export interface Ended {
  exitCode: number | null;
  /** Both streams, interleaved. */
  output: string;
}

/** Kills the program after 170 s, unless it may take longer. */
export async function runProgram(
  command: string,
  parameters: string[],
  { cwd, env, timeout = 170_000 }: { cwd: string; env: NodeJS.ProcessEnv; timeout?: number },
): Promise<Ended> {
  const child = spawn(command, parameters, {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  const exitCode = await new Promise<number | null>((ended, reject) => {
    child.on('error', reject).on('close', ended);
  });
  return { exitCode, output };
}
