/** Starts and ends the processes of a comparison, and measures their processor time. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { processorMilliseconds } from '../start-cost.ts';

export interface Program {
  url: string;
  /** Of all its threads since its start. NaN if the system does not report it. */
  processorMs(): number;
  stop(): Promise<void>;
}

/** @param file in this folder; resolves once it listens */
export async function startProgram(
  file: string,
  {
    port,
    parameters = [],
    environment = {},
  }: { port: number; parameters?: string[]; environment?: Record<string, string> },
): Promise<Program> {
  const child = spawn(process.execPath, [join(import.meta.dirname, file), ...parameters], {
    // An empty environment, because certificates, proxies and Node options would change the measurement.
    env: { PATH: process.env['PATH'], PORT: String(port), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  await readiness(child, file);
  return {
    url: `http://127.0.0.1:${port}`,
    processorMs: () => processorMilliseconds(String(child.pid)),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function readiness(child: ChildProcess, file: string): Promise<void> {
  const { stdout, stderr } = child;
  if (!stdout || !stderr) throw new Error('no pipes');
  const said: string[] = [];
  // A function writes its log to stdout, which must be drained although nobody reads it.
  const listening = Promise.withResolvers<void>();
  for (const input of [stdout, stderr])
    createInterface({ input }).on('line', (line) => {
      if (line === 'ready') listening.resolve();
      else if (said.length < 20) said.push(line);
    });
  child.once('exit', (code) =>
    listening.reject(new Error(`${file} ended with ${code}:\n${said.join('\n')}`)),
  );
  await listening.promise;
}
