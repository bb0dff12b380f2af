/** Background responses on the running stack, whose processes and store fail while clients come and go. */
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBDocumentClient, PutCommand, ScanCommand } from '@aws-sdk/lib-dynamodb';
import { startFaultProxy, type FaultProxy } from '../../infra/local/faults/fault-proxy.ts';
import type { Fault } from '../../infra/local/faults/fault-rules.ts';
import type { Clock } from '../../shared/relay/ports/clock.ts';
import { keyHash } from '../../shared/tables/key-hash.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { emulatorClient, startEmulator } from '../support/emulator.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';
import { waitUntilServed } from '../support/published.ts';
import { startScriptedUpstream, type Script } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { SeededClient, type Ask, type Asked } from './seeded-client.ts';
import { checkGrammar, hold, responseOf, statusOf } from './seen-events.ts';

const nano = 1_000_000_000;
const grantedYuan = 1_000;
/** More would be refused for their number of calls at once. */
const accounts = Array.from({ length: 8 }, (_, i) => `account-${i}`);
const keyOf = (account: string): string => `sk-stored-${account}`;
const tokensOfPiece = 3;
const inputTokens = 5;

export interface StackRun {
  seed: number;
  status: string | undefined;
  events: number;
  cuts: number;
  befell: string;
}

export interface RowsLeft {
  responses: Record<string, unknown>[];
  ledger: Record<string, unknown>[];
  quotas: Record<string, unknown>[];
}

const realClock: Clock = {
  now: Date.now,
  sleep: (ms, signal) => sleep(ms, undefined, { signal }).catch(() => {}),
};

export interface StoredStack {
  run(seed: number): Promise<StackRun>;
  /** What is in the tables once no reservation is open. */
  rowsLeft(): Promise<RowsLeft>;
  log(): string;
  stop(): Promise<void>;
}

export async function startStoredStack(): Promise<StoredStack> {
  await using started = new AsyncDisposableStack();
  const emulator = started.adopt(await startEmulator(), (running) => running.stop());
  const upstream = started.adopt(await startScriptedUpstream(), (running) => running.close());
  upstream.script(slowAnswer);
  const store = started.adopt(await startFaultProxy({ upstream: emulator.endpoint, seed: 7 }), (proxy) =>
    proxy.close(),
  );
  const client = started.adopt(emulatorClient(emulator.endpoint), (running) => running.destroy());
  const documents = DynamoDBDocumentClient.from(client);
  const put = (table: string, Item: Record<string, unknown>) =>
    documents.send(new PutCommand({ TableName: `relay-${table}`, Item }));
  await put('channels', { id: 'main', endpoint: upstream.endpoint, models: ['m'], state: true });
  await put('charges', { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2 });
  for (const account of [...accounts, 'stranger'])
    await put('keys', { hash: keyHash(keyOf(account)), account, store: true, hint: 'sk-...' });
  const stack = started.adopt(
    await startLocalStack({
      seed: 'none',
      env: { DYNAMODB_ENDPOINT: store.endpoint, RELAY_SWEEP_GRACE: '0' },
    }),
    (running) => running.stop(),
  );
  await waitUntilServed(emulator.endpoint, ['m']);
  for (const account of accounts) await put('grants', { account, grant_id: 'first', amount: grantedYuan });
  const rows = async (table: string): Promise<Record<string, unknown>[]> => {
    const found: Record<string, unknown>[] = [];
    let from: Record<string, unknown> | undefined;
    do {
      const page = { TableName: `relay-${table}`, ConsistentRead: true, ExclusiveStartKey: from };
      const { Items = [], LastEvaluatedKey } = await documents.send(new ScanCommand(page));
      found.push(...Items);
      from = LastEvaluatedKey;
    } while (from);
    return found;
  };
  await until(
    async () =>
      (await rows('quotas')).filter(({ granted }) => granted !== undefined).length >= accounts.length,
  );
  const running = started.move();
  const parts = { stack, store };
  return {
    run: (seed) => new StackedRun(parts, seed).run(),
    log: () => stack.stderr(),
    async rowsLeft() {
      await until(async () => {
        process.kill(stack.pid, 'SIGUSR2');
        await sleep(2_000);
        return (await rows('quotas')).every(
          ({ open }) => open === undefined || Object.keys(open as object).length === 0,
        );
      });
      // The last closes are on their way to the ledger.
      await sleep(3_000);
      return {
        responses: await rows('responses'),
        ledger: await rows('ledger'),
        quotas: await rows('quotas'),
      };
    },
    stop: () => running.disposeAsync(),
  };
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(100);
}

/** The request says how many pieces, and how long each takes. */
const slowAnswer: Script = async ({ body }, reply) => {
  const asked = JSON.stringify(body['messages']);
  const [, pieces = '1', gapMs = '0'] = /pieces=(\d+) gap=(\d+)/.exec(asked) ?? [];
  await reply.data(chunk({ role: 'assistant', content: '' }));
  for (let piece = 0; piece < Number(pieces); piece += 1) {
    await sleep(Number(gapMs));
    await reply.data(chunk({ content: `piece ${piece} ` }));
  }
  const counts = { prompt_tokens: inputTokens, completion_tokens: Number(pieces) * tokensOfPiece };
  await reply.data(
    chunk({}, 'stop'),
    usageChunk({ ...counts, total_tokens: counts.prompt_tokens + counts.completion_tokens }),
    '[DONE]',
  );
  reply.end();
};

type Befalls =
  | 'nothing'
  | 'run killed'
  | 'front killed'
  | 'run stands still'
  | 'store fails'
  | 'cancelled'
  | 'deleted';

const befalls: readonly [Befalls, ...Befalls[]] = [
  'nothing',
  'nothing',
  'run killed',
  'front killed',
  'run stands still',
  'store fails',
  'store fails',
  'cancelled',
  'deleted',
];

class StackedRun {
  readonly #stack: LocalStack;
  readonly #store: FaultProxy;
  readonly #seed: number;
  readonly #random: SeededRandom;
  readonly #key: string;
  readonly #befalls: Befalls;

  constructor({ stack, store }: { stack: LocalStack; store: FaultProxy }, seed: number) {
    this.#stack = stack;
    this.#store = store;
    this.#seed = seed;
    this.#random = new SeededRandom(seed);
    this.#key = keyOf(this.#random.pick(accounts as [string, ...string[]]));
    this.#befalls = this.#random.pick(befalls);
  }

  async run(): Promise<StackRun> {
    const random = this.#random;
    const [pieces, gapMs] = [random.integer(1, 20), random.integer(20, 300)];
    const first = this.#client();
    void this.#befall(pieces * gapMs);
    let changed = Promise.resolve();
    const input = `pieces=${pieces} gap=${gapMs}`;
    const id = await first.create({ model: 'm', input, background: true, stream: true }, (known) => {
      changed = this.#change(known, pieces * gapMs);
      changed.catch(() => {}); // Awaited below.
    });
    if (id === undefined) return this.#said({ status: undefined, events: 0, cuts: 0 });
    const others = Array.from({ length: random.integer(0, 2) }, () => this.#client());
    const clients = [first, ...others];
    await Promise.all([...clients.map((client) => client.follow(id)), changed, this.#stranger(id)]);
    const last = this.#client(true);
    await last.follow(id);
    const cuts = clients.reduce((sum, client) => sum + client.cuts, 0);
    if (last.gone) {
      hold(this.#befalls === 'deleted', `${id} is gone, which nobody deleted`);
      return this.#said({ status: undefined, events: 0, cuts });
    }
    const uncut = last.events;
    for (const { events } of clients)
      hold(
        JSON.stringify(events) === JSON.stringify(uncut),
        `a client saw\n${events.join('')}and not\n${uncut.join('')}`,
      );
    checkGrammar(uncut);
    const { text } = await this.#own('GET', `/${id}`);
    hold(
      text === JSON.stringify(responseOf(uncut)),
      `GET shows ${text}, the last event ${JSON.stringify(responseOf(uncut))}`,
    );
    if (this.#befalls === 'nothing') hold(statusOf(uncut) !== 'queued', 'it ends queued');
    return this.#said({ status: statusOf(uncut), events: uncut.length, cuts });
  }

  #said(seen: Pick<StackRun, 'status' | 'events' | 'cuts'>): StackRun {
    return { seed: this.#seed, befell: this.#befalls, ...seen };
  }

  #client(patient = false): SeededClient {
    const ask: Ask = (asked) => this.#ask(asked);
    // What breaks a connection is no answer of the relay's.
    return new SeededClient({
      clock: realClock,
      random: this.#random,
      ask,
      patient,
      isCut: () => true,
      absentMsMax: 2_000,
    });
  }

  /** What befalls processes and the store, at some moment of the answer. */
  async #befall(answerMs: number): Promise<void> {
    const random = this.#random;
    await sleep(random.integer(0, answerMs + 1_500));
    // Which process has the run is not known from outside: each kill may meet another run, too.
    if (this.#befalls === 'run killed')
      for (let kills = random.integer(1, 4); kills > 0; kills -= 1) this.#signal('background', 'SIGKILL');
    if (this.#befalls === 'front killed') this.#signal('responses', 'SIGKILL');
    if (this.#befalls === 'run stands still') {
      const pid = this.#signal('background', 'SIGSTOP');
      await sleep(random.chance(0.2) ? 75_000 : random.integer(500, 5_000));
      if (pid !== undefined) send(pid, 'SIGCONT');
    }
    if (this.#befalls === 'store fails') {
      const kind = random.pick(['throttle', 'error', 'hang_up', 'lost_reply'] as const);
      const tables = random.pick<string[]>([['responses'], ['quotas'], ['responses', 'quotas']]);
      const fault: Fault = { kind };
      this.#store.rules.add({
        fault,
        services: ['dynamodb'],
        tables,
        share: random.pick([0.3, 1]),
        forMs: random.integer(200, 2_500),
      });
    }
  }

  #signal(name: string, signal: NodeJS.Signals): number | undefined {
    const pids = this.#stack.environmentPids(name);
    const pid = pids[this.#random.integer(0, Math.max(0, pids.length - 1))];
    if (pid !== undefined) send(pid, signal);
    return pid;
  }

  /** What the caller does to it. */
  async #change(id: string, answerMs: number): Promise<void> {
    await sleep(this.#random.integer(0, answerMs));
    if (this.#befalls === 'cancelled') await this.#own('POST', `/${id}/cancel`);
    if (this.#befalls !== 'deleted') return;
    const { status, tries } = await this.#own('DELETE', `/${id}`);
    // A try that got no answer may have deleted it.
    hold(status === 200 || (status === 404 && tries > 1), `DELETE answers ${status}`);
    hold((await this.#own('GET', `/${id}`)).status === 404, 'what was deleted is there');
  }

  async #stranger(id: string): Promise<void> {
    const tried: [string, string][] = [
      ['GET', `/${id}`],
      ['GET', `/${id}?stream=true`],
      ['GET', `/${id}/input_items`],
      ['POST', `/${id}/cancel`],
      ['DELETE', `/${id}`],
    ];
    for (const [method, path] of tried) {
      const { status, text } = await this.#own(method, path, keyOf('stranger'));
      hold(status === 404, `a stranger got ${status} for ${method} ${path}: ${text}`);
    }
    const body = { model: 'm', input: 'pieces=1 gap=0', previous_response_id: id };
    const { status } = await this.#own('POST', '', keyOf('stranger'), body);
    hold(status === 404, `a stranger went on from it with ${status}`);
  }

  /** Asks again while processes and stores fail. */
  async #own(
    method: string,
    path: string,
    key = this.#key,
    body?: object,
  ): Promise<{ status: number; text: string; tries: number }> {
    for (let tries = 1; ; tries += 1) {
      const response = await this.#fetch({ method, path, key, body }).catch(() => undefined);
      const text = await response?.text().catch(() => undefined);
      if (response && text !== undefined && response.status < 500)
        return { status: response.status, text, tries };
      await sleep(500);
    }
  }

  async #ask(asked: Asked) {
    const response = await this.#fetch(asked).catch(() => undefined);
    if (!response) return { status: 599, headers: {}, body: '' };
    const { status, headers } = response;
    const body =
      status === 200 && response.body ? decoded(response.body) : await response.text().catch(() => '');
    return { status, headers: Object.fromEntries(headers), body };
  }

  #fetch({ method, path, key = this.#key, body }: Asked): Promise<Response> {
    return fetch(`${this.#stack.baseUrl}/responses${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  }
}

async function* decoded(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const bytes of body) yield decoder.decode(bytes, { stream: true });
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has ended meanwhile.
  }
}

/** Whether each reservation was charged once, whether no money is lost, and whether everything stored expires. */
export function checkRows({ responses, ledger, quotas }: RowsLeft): void {
  const nowSeconds = Date.now() / 1000;
  for (const { id, expires } of responses) {
    hold(typeof expires === 'number', `${String(id)} never expires`);
    const most = String(id).includes('#e#') ? 40 * 60 : 30 * 86_400 + 60;
    hold(expires < nowSeconds + most, `${String(id)} expires at ${String(expires)}`);
  }
  const requests = ledger.filter(
    ({ kind }) => kind === 'settled' || kind === 'expired' || kind === 'released',
  );
  const ids = requests.map((row) => String(row['id']));
  hold(new Set(ids).size === ids.length, 'a request was charged twice');
  const sum = (rows: Record<string, unknown>[], name: string): number =>
    rows.reduce((total, row) => total + Number(row[name] ?? 0), 0);
  const spent = sum(quotas, 'spent');
  hold(sum(quotas, 'available') + spent === sum(quotas, 'granted'), 'money is lost or made');
  const charged = Math.round(
    sum(
      ledger.filter(({ kind }) => kind !== 'grant'),
      'charge',
    ) * nano,
  );
  hold(charged === spent, `the ledger has ${charged}, the accounts ${spent}`);
}
