import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

export interface LocalStack {
  /** The base address including `/v1`. */
  baseUrl: string;
  dynamodbEndpoint: string;
  /** The demo key; empty without a seed. */
  key: string;
  /** Process id of the stack's runner. */
  pid: number;
  /** The log so far, including lines of the functions, which start with `[<function>]`. */
  stderr(): string;
  /** Process ids of the function's live environments, oldest first. */
  environmentPids(functionName: string): number[];
  /** Stops the stack like Ctrl-C, and resolves when it has exited. Throws when it did not exit cleanly. */
  stop(): Promise<void>;
}

export interface LocalStackOptions {
  /** Added to this process's environment. `RELAY_TEMPLATE_FOLDER` runs another template. */
  env?: Record<string, string>;
  seed?: 'demo' | 'none';
  /** Receives the stack's log piece by piece, which is cheaper than reading all of it repeatedly. */
  heard?: (text: string) => void;
}

const root = path.resolve(import.meta.dirname, '../..');

/** Starts `infra/local/main.ts` on free ports, in memory. Requires the output of `npm run build` and `npm run app`. */
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

/** The runner as a child of this process: it stops when this process ends, for whatever reason. */
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
      // Tests set many different variables.
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
