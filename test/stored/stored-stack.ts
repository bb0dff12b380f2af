/** The running stack, whose processes and store fail, with an account for each seed. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from '../support/fault-proxy.ts';
import { keyHash } from '../../shared/wire/ids.ts';
import type { SeededRandom } from '../simulation/seeded-random.ts';
import { startFaultedTables, sumOf, until, type FaultedTables, type Row } from '../support/faulted-tables.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';
import { waitUntilServed } from '../support/published.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { processOfPort } from './process-of-port.ts';
import type { Answered, Asked } from './seeded-client.ts';
import { hold } from './seen-events.ts';
import { slowAnswer } from './slow-answer.ts';
import type { EndpointName, Owned, Reported } from './stage.ts';
import { StackLog } from './stack-log.ts';

const nano = 1_000_000_000;
const grantedYuan = 1_000;
/** A killed process ends at once; its call may have been answered a moment before. */
const afterKillMs = 20_000;
const endsWithinMs = 200_000;

export const accountOf = (seed: number): string => `account-${seed}`;
const keyOf = (account: string): string => `sk-stored-${account}`;
export const strangersKey = keyOf('stranger');
export interface RowsLeft {
  responses: Row[];
  ledger: Row[];
  quotas: Row[];
  runtime: Row[];
}

interface Parts {
  running: AsyncDisposableStack;
  tables: FaultedTables;
  stack: LocalStack;
  ports: Map<number, number>;
  log: StackLog;
}

export class StoredStack {
  readonly #running: AsyncDisposableStack;
  readonly #tables: FaultedTables;
  readonly #stack: LocalStack;
  readonly #log: StackLog;
  /** The latest upstream call of each seed. */
  readonly #ports: Map<number, number>;
  readonly #sweeps: NodeJS.Timeout;
  readonly #kills: { name: string; atMs: number }[] = [];
  /** Process faults, by kind. */
  readonly befallen: Record<string, number> = {};

  private constructor({ running, tables, stack, ports, log }: Parts) {
    this.#running = running;
    this.#tables = tables;
    this.#stack = stack;
    this.#ports = ports;
    this.#log = log;
    this.#sweeps = setInterval(() => this.#sweep(), 10_000);
  }

  static async start(seeds: number[]): Promise<StoredStack> {
    await using started = new AsyncDisposableStack();
    const tables = started.adopt(await startFaultedTables(7), (running) => running.stop());
    const ports = new Map<number, number>();
    tables.upstream.script(slowScript(ports));
    const { put, rows } = tables;
    await put('charges', { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 });
    // A claim without a reservation, left by a killed process, lasts two more minutes.
    await put('settings', { name: 'limits', value: { account_concurrency: 50, request_seconds: 120 } });
    const accounts = [...seeds.map(accountOf), 'stranger'];
    for (const account of accounts)
      await put('keys', { hash: keyHash(keyOf(account)), account, store: true, hint: 'sk-...' });
    const log = new StackLog();
    const stack = await startLocalStack({
      heard: (text) => log.heard(text),
      seed: 'none',
      env: {
        DYNAMODB_ENDPOINT: tables.store.endpoint,
        RELAY_SWEEP_GRACE: '0',
      },
    });
    started.adopt(stack, (running) => running.stop());
    await waitUntilServed(tables.endpoint, ['m']);
    for (const account of accounts) await put('grants', { account, grant_id: 'first', amount: grantedYuan });
    await until(
      async () =>
        (await rows('quotas')).filter(({ granted }) => granted !== undefined).length >= accounts.length,
    );
    return new StoredStack({ running: started.move(), tables, stack, ports, log });
  }

  /** Once. */
  async ask(account: string, asked: Asked): Promise<Answered> {
    const response = await this.#fetch(account, asked).catch(() => undefined);
    if (!response) return { status: 599, headers: {}, body: '' };
    const { status, headers } = response;
    const body =
      status === 200 && response.body ? decoded(response.body) : await response.text().catch(() => '');
    return { status, headers: Object.fromEntries(headers), body };
  }

  /** Retries while processes and stores fail. */
  async own(account: string, asked: Asked): Promise<Owned> {
    for (let tries = 1; ; tries += 1) {
      const response = await this.#fetch(account, asked).catch(() => undefined);
      const text = await response?.text().catch(() => undefined);
      if (response && text !== undefined && response.status < 500 && response.status !== 429)
        return { status: response.status, headers: Object.fromEntries(response.headers), text, tries };
      await sleep(500);
    }
  }

  #fetch(
    account: string,
    { method, path, at = 'responses', key, headers, body, signal }: Asked,
  ): Promise<Response> {
    return fetch(`${this.#stack.baseUrl}/${at}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key ?? keyOf(account)}`,
        'content-type': 'application/json',
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  }

  /** The process that called the upstream for a seed. Undefined if none did, or if it is gone. */
  signal(name: string, seed: number, signal: NodeJS.Signals): number | undefined {
    const port = this.#ports.get(seed);
    const pid = port === undefined ? undefined : processOfPort(port, this.#stack.environmentPids(name));
    return this.#signal(name, pid, signal);
  }

  /** To any process of a function. */
  signalAny(name: string, random: SeededRandom, signal: NodeJS.Signals): number | undefined {
    const pids = this.#stack.environmentPids(name);
    return this.#signal(name, pids[random.integer(0, Math.max(0, pids.length - 1))], signal);
  }

  #signal(name: string, pid: number | undefined, signal: NodeJS.Signals): number | undefined {
    if (pid === undefined || !send(pid, signal)) return undefined;
    if (signal === 'SIGKILL') this.#kills.push({ name, atMs: Date.now() });
    this.#befell(`${signal} ${name}`);
    return pid;
  }

  resume(pid: number): void {
    send(pid, 'SIGCONT');
  }

  failStore(fault: Fault, more: { tables: string[]; share: number; forMs: number }): void {
    this.#befell(`store ${fault.kind} ${more.tables.join('+')}`);
    this.#tables.store.rules.add({ fault, services: ['dynamodb'], ...more });
  }

  #befell(kind: string): void {
    this.befallen[kind] = (this.befallen[kind] ?? 0) + 1;
  }

  /** Faults of store calls, by kind. */
  get storeFaults(): Record<string, number | undefined> {
    return this.#tables.store.counts.faults;
  }

  async reportedEnd(requestId: string, at: EndpointName, sinceMs: number): Promise<Reported> {
    const name = at === 'responses' ? 'responses' : 'chat';
    const untilMs = Date.now() + endsWithinMs;
    for (;;) {
      const reported = this.#log.reported(requestId);
      if (reported.ended) return reported;
      const kills = this.#kills.filter((kill) => kill.name === name && kill.atMs >= sinceMs);
      if (kills.some(({ atMs }) => Date.now() > atMs + afterKillMs)) return reported;
      hold(Date.now() < untilMs, `${requestId} never ends, and nobody has killed its process`);
      await sleep(200);
    }
  }

  /** The content of the tables once no reservation is open. */
  async rowsLeft(): Promise<RowsLeft> {
    const { rows } = this.#tables;
    await until(async () => {
      this.#sweep();
      await sleep(2_000);
      const open = (await rows('quotas')).flatMap((row) =>
        Object.keys((row['open'] as object | undefined) ?? {}),
      );
      return open.length === 0;
    });
    // The last closes are on their way to the ledger.
    await until(async () => {
      const ledger = sumOf(
        (await rows('ledger')).filter(({ kind }) => kind !== 'grant'),
        'charge',
      );
      return Math.round(ledger * nano) >= sumOf(await rows('quotas'), 'spent');
    });
    return {
      responses: await rows('responses'),
      ledger: await rows('ledger'),
      quotas: await rows('quotas'),
      runtime: await rows('runtime'),
    };
  }

  /** Makes all stored data appear expired. Rows stay, because DynamoDB deletes them days later. */
  async expire(): Promise<void> {
    const expires = Math.floor(Date.now() / 1000) - 1;
    for (const table of ['responses', 'runtime'] as const)
      for (const row of await this.#tables.rows(table))
        if ('expires' in row) await this.#tables.put(table, { ...row, expires });
  }

  log(): string {
    return this.#stack.stderr();
  }

  async stop(): Promise<void> {
    clearInterval(this.#sweeps);
    await this.#running.disposeAsync();
  }

  /** Runs the scheduled functions. */
  #sweep(): void {
    send(this.#stack.pid, 'SIGUSR2');
  }
}

/** @param ports ports of the calling processes, by seed */
const slowScript =
  (ports: Map<number, number>): Script =>
  async ({ body, remotePort }, reply) => {
    const { seed, gapMs, pieces, promptTokens, completionTokens } = slowAnswer(body);
    if (remotePort !== undefined) ports.set(seed, remotePort);
    await reply.data(chunk({ role: 'assistant', content: '' }));
    for (const content of pieces) {
      await sleep(gapMs);
      await reply.data(chunk({ content }));
    }
    const counts = { prompt_tokens: promptTokens, completion_tokens: completionTokens };
    const total_tokens = promptTokens + completionTokens;
    await reply.data(chunk({}, 'stop'), usageChunk({ ...counts, total_tokens }), '[DONE]');
    reply.end();
  };

async function* decoded(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const bytes of body) yield decoder.decode(bytes, { stream: true });
}

/** False if the process has exited in the meantime. */
function send(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

export const randomFault = (random: SeededRandom): Fault => ({
  kind: random.pick(['throttle', 'error', 'hang_up', 'lost_reply'] as const),
});
