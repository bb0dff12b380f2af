import { setTimeout as sleep } from 'node:timers/promises';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { readOptions } from '../../infra/local/host/local-options.ts';
import { startStack } from '../../infra/local/start-stack.ts';
import { physicalNameOf, type TableName } from '../../shared/tables/table-names.ts';
import type { RequestLog } from '../../shared/relay/ports/telemetry.ts';
import { compileCache } from '../support/compile-cache.ts';
import { type CountedStore, startCountedStore, startStore, type Store } from './counted-store.ts';

/** Attempts of one call: a late store recovers after the first ones. */
const repeatsMax = 5;

export interface WatchedStackOptions {
  /** Rows that exist before the first request, because functions cache the configuration for some seconds. */
  rows: [TableName, Record<string, unknown>][];
  /** With 1, a second process starts only after the first one died. */
  environmentsMax: number;
  /** Values of `env:NAME` references. */
  functionEnvironment?: Record<string, string>;
}

/** Runs the synthesized stack in this process, and records its output. */
export interface WatchedStack<Kind extends Store = Store> {
  /** `http://127.0.0.1:port`, without `/v1`. */
  origin: string;
  /** The demo key. */
  key: string;
  /** All lines of the functions and their host so far. */
  lines: string[];
  store: Kind;
  /** The environment of a function, by its name. */
  environments: ReadonlyMap<string, Readonly<Record<string, string>>>;
  /** Process ids of the chat function's environments in order of start, including dead ones. */
  chatProcesses(): number[];
  /** The same of any function. */
  processes(name: string): number[];
  /** Kills all processes of a function without notice, like `kill -9`. Resolves when the next call gets a new one. */
  killProcesses(name: string): Promise<void>;
  /** Waits for the log line of a request. */
  logged(requestId: string): Promise<RequestLog>;
  /** Runs the scheduled functions now. */
  runSchedules(): Promise<void>;
  post(body: object | string | Uint8Array<ArrayBuffer>, init?: PostOptions): Promise<Response>;
  /**
   * Repeats a call that is asked to come again, when it is asked to, as SDKs do: nothing is charged then, and a busy
   * machine's store may be late. Rejects when it is asked for the sixth time.
   */
  postUntilTaken: WatchedStack['post'];
  stop(): Promise<void>;
}

export interface PostOptions {
  /** Chat completions unless given. */
  path?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

export type CountedStack = WatchedStack<CountedStore>;

export const startWatchedStack = (options: WatchedStackOptions): Promise<WatchedStack> =>
  startWatchedStackOn(startStore, options);

/** Also records all store requests. The proxy for that takes as much time as the store itself. */
export const startCountedStack = (options: WatchedStackOptions): Promise<CountedStack> =>
  startWatchedStackOn(startCountedStore, options);

export async function startWatchedStackOn<Kind extends Store>(
  start: () => Promise<Kind>,
  options: WatchedStackOptions,
): Promise<WatchedStack<Kind>> {
  const lines: string[] = [];
  let written = Promise.withResolvers<void>();
  const log = (line: string) => {
    lines.push(line);
    written.resolve();
    written = Promise.withResolvers<void>();
  };
  await using started = new AsyncDisposableStack();
  const store = started.adopt(await start(), (running) => running.stop());
  await Promise.all(
    options.rows.map(([table, Item]) =>
      store.documents.send(new PutCommand({ TableName: physicalNameOf('relay', table), Item })),
    ),
  );
  const environments = new Map<string, Readonly<Record<string, string>>>();
  const stack = await startStack(
    {
      inPlaceOf: (live) => {
        environments.set(live.settings.name, live.settings.environment);
        return live;
      },
      ...readOptions({
        RELAY_ENV_SECRETS: '*',
        ...compileCache,
        ...options.functionEnvironment,
        PORT: '0',
        DYNAMODB_ENDPOINT: store.endpoint,
        RELAY_DATA: 'memory',
      }),
      environmentsMax: options.environmentsMax,
      newestRecord: store.newestRecord,
    },
    log,
  );
  started.defer(() => stack.close());
  const running = started.move();
  const key = stack.key ?? '';
  const post: WatchedStack['post'] = (body, { path = '/v1/chat/completions', headers, signal } = {}) =>
    fetch(`${stack.origin}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: body instanceof Uint8Array || typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal && { signal }),
    });
  const processes = (name: string): number[] => {
    const started = new RegExp(`^environment ${name}#\\d+ pid (\\d+)$`);
    return lines.flatMap((line) => started.exec(line)?.[1] ?? []).map(Number);
  };
  return {
    origin: stack.origin,
    key,
    lines,
    store,
    environments,
    chatProcesses: () => processes('chat'),
    async killProcesses(name) {
      const hasEnded = (pid: number) => lines.some((line) => line.includes(`pid ${pid} ended`));
      // The number of a dead process may belong to another program by now.
      const killed = processes(name)
        .filter((pid) => !hasEnded(pid))
        .filter((pid) => sendKill(pid));
      while (!killed.every(hasEnded)) await written.promise;
    },
    processes,
    async logged(requestId) {
      for (;;) {
        const line = lines.find((text) => text.includes(requestId) && text.includes('"duration_ms"'));
        if (line !== undefined) return JSON.parse(line.slice(line.indexOf('{'))) as RequestLog;
        await written.promise;
      }
    },
    post,
    async postUntilTaken(...call) {
      for (let repeats = 0; ; repeats += 1) {
        const response = await post(...call);
        if (response.status !== 503) return response;
        const said = await response.text();
        const seconds = Number(response.headers.get('retry-after') ?? NaN);
        if (Number.isNaN(seconds)) throw new Error(`a 503 that does not say when to come again: ${said}`);
        if (repeats === repeatsMax) throw new Error(`still a 503 after ${repeats} repeats: ${said}`);
        await sleep(seconds * 1_000);
      }
    },
    runSchedules: () => stack.runSchedules(),
    stop: () => running.disposeAsync(),
  };
}

/** False if the process had exited by itself. */
function sendKill(pid: number): boolean {
  try {
    return process.kill(pid, 'SIGKILL');
  } catch {
    return false;
  }
}
