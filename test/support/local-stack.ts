import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

export interface LocalStack {
  /** The base address including `/v1`. */
  baseUrl: string;
  dynamodbEndpoint: string;
  /** The demo key; empty when nothing was seeded. */
  key: string;
  /** Process id of the stack's runner. */
  pid: number;
  /** What it has logged so far: lines of the functions among them, each with `[<function>]` in front. */
  stderr(): string;
  /** Process ids of the function's environments that are alive, oldest first. */
  environmentPids(functionName: string): number[];
  /** Ends the stack as Ctrl-C would, and resolves when it is gone. Throws when it did not end in order. */
  stop(): Promise<void>;
}

export interface LocalStackOptions {
  /** On top of this process's environment. `RELAY_TEMPLATE_FOLDER` runs another template. */
  env?: Record<string, string>;
  seed?: 'demo' | 'none';
  /** Is given what the stack logs, piece by piece: cheaper than to look at all of it again and again. */
  heard?: (text: string) => void;
}

const root = path.resolve(import.meta.dirname, '../..');

/** Starts `infra/local/main.ts` on free ports, in memory. Needs what `npm run build` and `npm run app` write. */
export async function startLocalStack(options: LocalStackOptions = {}): Promise<LocalStack> {
  const child = spawnRunner({ RELAY_SEED: options.seed ?? 'demo', ...options.env });
  let stdout = '';
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
    options.heard?.(text);
  });
  const ready = new Promise<void>((resolve) => {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
      if (stdout.includes('relay ready on ')) resolve();
    });
  });
  const exited = once(child, 'exit');
  const failed = exited.then(([code]) => {
    throw new Error(`the local stack ended (${code}) before it was ready:\n${stderr}`);
  });
  await Promise.race([ready, failed]);
  failed.catch(() => {});
  return {
    baseUrl: /relay ready on (\S+)/.exec(stdout)?.[1] ?? '',
    dynamodbEndpoint: /^tables (\S+)/m.exec(stdout)?.[1] ?? '',
    key: /^key (\S+)/m.exec(stdout)?.[1] ?? '',
    pid: child.pid ?? 0,
    stderr: () => stderr,
    environmentPids: (name) => alivePids(stderr, name),
    async stop() {
      child.kill('SIGTERM');
      const [code, signal] = (await exited) as [number | null, string | null];
      if (code !== 0) throw new Error(`the local stack ended with ${signal ?? code}:\n${stderr}`);
    },
  };
}

/** The runner as a child of this process: it ends when this process does, however that happens. */
export function spawnRunner(environment: Record<string, string>): ChildProcess {
  return spawn(process.execPath, ['infra/local/main.ts'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    env: {
      ...process.env,
      PORT: '0',
      DYNAMODB_PORT: '0',
      RELAY_DATA: 'memory',
      RELAY_LOG: 'stderr',
      // Variables of tests have many names.
      RELAY_ENV_SECRETS: '*',
      ...environment,
    },
  });
}

function alivePids(log: string, functionName: string): number[] {
  const pids = new Set<number>();
  for (const [, name, pid, ended] of log.matchAll(/^environment (\S+)#\d+ pid (\d+)( ended)?/gm)) {
    if (name !== functionName) continue;
    if (ended === undefined) pids.add(Number(pid));
    else pids.delete(Number(pid));
  }
  return [...pids];
}
