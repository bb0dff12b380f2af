/** `npm start`'s own stack, started as its own process behind a fault proxy, with access to its processes for the soak. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdtempSync, rmSync, type WriteStream } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { startFaultProxy, type FaultProxy } from '../../support/fault-proxy.ts';
import { startEmulator } from '../../../infra/local/host/emulator.ts';
import { readOptions } from '../../../infra/local/host/local-options.ts';
import type { Death, Loss } from '../checker/observations.ts';
import { startEdgeLiar } from './edge-liar.ts';
import type { Lie } from './lies.ts';
import { startStoreLiar } from './store-liar.ts';

export interface SoakedStack {
  /** `http://127.0.0.1:port`, without `/v1`. */
  origin: string;
  /** The tables, around the fault proxy. */
  documents: DynamoDBDocumentClient;
  tablesEndpoint: string;
  store: FaultProxy;
  /** The folder where new processes look for their clock. */
  clockFolder: string;
  logFile: string;
  runnerPid: number;
  /** Log lines from which an audit can restore lost closes. */
  losses: Loss[];
  deaths: Death[];
  /** Live processes of the functions, by pid, oldest first. */
  environments: ReadonlyMap<number, string>;
  /** `kill -9`. */
  kill(pid: number): void;
  /** Runs the scheduled functions now. */
  runSchedules(): void;
  /** Starts the lie, if there is one, once the rows of the soak exist. */
  beginLie(): void;
  /** Stops everything. Safe to call twice. */
  stop(): Promise<void>;
}

export interface SoakedStackOptions {
  seed: number;
  /** Seconds that the sweeper waits beyond the end of a lease. */
  sweepGraceSeconds: number;
  lie?: Lie | undefined;
}

const root = path.resolve(import.meta.dirname, '../../..');
const clock = new URL('clock.mjs', import.meta.url).href;

export async function startSoakedStack(options: SoakedStackOptions): Promise<SoakedStack> {
  await using started = new AsyncDisposableStack();
  const folder = mkdtempSync(path.join(os.tmpdir(), 'relay-soak-'));
  const emulator = started.adopt(await startEmulator(readOptions({ RELAY_DATA: 'memory' })), (running) =>
    running.stop(),
  );
  const store = started.adopt(
    await startFaultProxy({ upstream: emulator.endpoint, seed: options.seed }),
    (proxy) => proxy.close(),
  );
  const storeLiar = started.adopt(await startStoreLiar(store.endpoint, options.lie), (liar) => liar.close());
  const logFile = path.join(os.tmpdir(), `${path.basename(folder)}.log`);
  const runner = new Runner(createWriteStream(logFile));
  const stackOrigin = await runner.start({
    DYNAMODB_ENDPOINT: storeLiar.endpoint,
    RELAY_SWEEP_GRACE: String(options.sweepGraceSeconds),
    NODE_OPTIONS: `--import=${clock}`,
    SOAK_CLOCKS: folder,
  });
  started.defer(() => runner.stop());
  const edge = started.adopt(await startEdgeLiar(stackOrigin, options.lie), (liar) => liar.close());
  const client = new DynamoDBClient({
    endpoint: emulator.endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  });
  started.defer(() => client.destroy());
  started.defer(() => rmSync(folder, { recursive: true, force: true }));
  const running = started.move();
  let stopping: Promise<void> | undefined;
  return {
    origin: edge.origin,
    documents: DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } }),
    tablesEndpoint: emulator.endpoint,
    store,
    clockFolder: folder,
    logFile,
    runnerPid: runner.pid,
    losses: runner.losses,
    deaths: runner.deaths,
    environments: runner.environments,
    kill: (pid) => runner.kill(pid),
    runSchedules: () => runner.signal('SIGUSR2'),
    beginLie: () => storeLiar.begin(),
    stop: () => (stopping ??= running.disposeAsync()),
  };
}

/** The runner of the local stack in a process group of its own: Ctrl-C is the soak's, which ends it in order. */
class Runner {
  readonly environments = new Map<number, string>();
  readonly deaths: Death[] = [];
  readonly losses: Loss[] = [];
  readonly #log: WriteStream;
  readonly #planned = new Set<number>();
  #child: ChildProcess | undefined;
  #lastLines: string[] = [];

  constructor(log: WriteStream) {
    this.#log = log;
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async start(environment: Record<string, string>): Promise<string> {
    const child = spawn(process.execPath, ['infra/local/main.ts'], {
      cwd: root,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      env: {
        ...process.env,
        PORT: '0',
        RELAY_DATA: 'memory',
        RELAY_LOG: 'stderr',
        RELAY_SEED: 'none',
        OPENAI_API_KEY: '',
        ...environment,
      },
    });
    this.#child = child;
    const ready = Promise.withResolvers<string>();
    createInterface({ input: child.stdout as Readable }).on('line', (line) => {
      const origin = /^relay ready on (\S+)\/v1$/.exec(line)?.[1];
      if (origin !== undefined) ready.resolve(origin);
    });
    createInterface({ input: child.stderr as Readable }).on('line', (line) => this.#read(line));
    child.once('exit', (code, signal) =>
      ready.reject(new Error(`the stack did not start (${signal ?? code}):\n${this.#lastLines.join('\n')}`)),
    );
    return ready.promise;
  }

  kill(pid: number): void {
    this.#planned.add(pid);
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has exited in the meantime.
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async stop(): Promise<void> {
    const child = this.#child;
    if (child && child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    }
    await new Promise((resolve) => this.#log.end(resolve));
  }

  #read(line: string): void {
    this.#log.write(`${new Date().toISOString()} ${line}\n`);
    this.#lastLines = [...this.#lastLines.slice(-20), line];
    const message = /"message":"(settle_lost|settle_late)"/.exec(line)?.[1];
    if (message !== undefined) this.losses.push({ atMs: Date.now(), message, line });
    const [, target, text, ended] = /^environment (\w+)#\d+ pid (\d+)( ended)?/.exec(line) ?? [];
    if (target === undefined) return;
    const pid = Number(text);
    if (ended === undefined) {
      this.environments.set(pid, target);
      return;
    }
    this.environments.delete(pid);
    this.deaths.push({ target, pid, atMs: Date.now(), planned: this.#planned.has(pid) });
  }
}
