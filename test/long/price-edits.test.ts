/**
 * Background responses on the running stack while their prices and their alias are edited in place, processes are killed and
 * store replies are lost. Each charge is compared with its reservation, by arithmetic that knows the written rows but no code of
 * the product. `RELAY_EDITED_CALLS=200` shortens it.
 */
import { DeleteCommand, DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { startFaultedTables, until, type FaultedTables, type Row } from '../support/faulted-tables.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { keyHash, keyOf } from '../local/money-reader.ts';

const callsWanted = Number(process.env['RELAY_EDITED_CALLS'] ?? 1_500);
const workers = 6;
const limit = 60;
const promptTokens = 5;
const granted = 1_000_000;
const account = 'edited';
const headers = { authorization: `Bearer ${keyOf(account)}`, 'content-type': 'application/json' };

/** Price of 1,000 tokens in nano-yuan. Undefined if no rule names the model. */
type Rate = { input: bigint; output: bigint } | undefined;

/** The content of the rows during some time. */
interface StoredEnd {
  status: string;
  error: { code: string } | null;
}

interface State {
  fromMs: number;
  rates: Record<string, Rate>;
  alias: string[];
}

interface Asked {
  model: string;
  sentMs: number;
  answeredMs: number;
}

const costs = (rate: Rate, input: number, output: number): bigint =>
  rate ? (BigInt(input) * rate.input + BigInt(output) * rate.output) / 1_000n : 0n;

const nanoOf = (yuan: unknown): bigint => BigInt(Math.round(Number(yuan) * 1e9));

/** Answers as an honest vendor whose model writes as much as the limit allows. */
const honest: Script = async ({ body }, reply) => {
  await sleep(Math.random() * 800);
  const most = Number(body['max_completion_tokens'] ?? body['max_tokens']);
  await reply.data(chunk({ role: 'assistant', content: 'Hello' }), chunk({}, 'length'));
  await reply.data(usageChunk({ prompt_tokens: promptTokens, completion_tokens: most }), '[DONE]');
  reply.end();
};

/** Writes rows and records their content by time. No two prices are equal. */
class Editor {
  readonly states: State[];
  readonly #tables: FaultedTables;
  readonly #documents: DynamoDBDocumentClient;
  #edits = 0;

  constructor(tables: FaultedTables) {
    this.#tables = tables;
    this.#documents = DynamoDBDocumentClient.from(tables.client);
    this.states = [{ fromMs: Date.now(), rates: {}, alias: ['small'] }];
  }

  get now(): State {
    return this.states.at(-1) as State;
  }

  /** Alternates between cheap and expensive, and sometimes has no price. */
  async price(id: number, model: string): Promise<void> {
    this.#edits += 1;
    if (this.#edits % 9 === 8) {
      await this.#documents.send(new DeleteCommand({ TableName: 'relay-charges', Key: { id } }));
      return this.#became({ rates: { ...this.now.rates, [model]: undefined } });
    }
    const isDear = (this.now.rates[model]?.input ?? 0n) < 1_000_000_000n;
    const milli = BigInt(isDear ? 5_000_000 : 100_000) + BigInt(this.#edits);
    const rate = { input: milli * 1_000n, output: milli * 2_000n };
    const [input, output] = [Number(rate.input) / 1e9, Number(rate.output) / 1e9];
    await this.#tables.put('charges', { id, type: 'token-billing', models: [model], input, output });
    this.#became({ rates: { ...this.now.rates, [model]: rate } });
  }

  async alias(models: string[]): Promise<void> {
    await this.#tables.put('settings', { name: 'aliases', value: { best: { models } } });
    this.#became({ alias: models });
  }

  #became(change: Partial<State>): void {
    this.states.push({ ...this.now, ...change, fromMs: Date.now() });
  }
}

const aliases = [['small'], ['large'], ['large', 'small'], ['small', 'large']];

/** Edits the price of the most called model six times a minute, and something else in between. */
async function editAlways(editor: Editor, signal: AbortSignal): Promise<void> {
  for (let turn = 1; ; turn += 1) {
    await sleep(5_000, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    if (turn % 2 === 1) await editor.price(1, 'm');
    else if (turn % 4 === 2) await editor.alias(aliases[(turn / 2) % aliases.length] ?? []);
    else await editor.price(turn % 8 === 0 ? 2 : 3, turn % 8 === 0 ? 'small' : 'large');
  }
}

async function killAlways(stack: LocalStack, random: SeededRandom, signal: AbortSignal): Promise<number> {
  for (let kills = 0; ;) {
    await sleep(7_000, undefined, { signal }).catch(() => {});
    if (signal.aborted) return kills;
    const pids = ['responses', 'background', 'background'].flatMap((name) => stack.environmentPids(name));
    try {
      if (pids.length > 0) process.kill(random.pick(pids as [number, ...number[]]), 'SIGKILL');
      kills += 1;
    } catch {
      // The process had exited by itself.
    }
  }
}

async function accepted(stack: LocalStack, model: string): Promise<{ id: string; asked: Asked } | undefined> {
  const sentMs = Date.now();
  const body = JSON.stringify({ model, input: 'hi', max_output_tokens: limit, background: true });
  const sent = { method: 'POST', headers, body, signal: AbortSignal.timeout(60_000) };
  try {
    const response = await fetch(`${stack.baseUrl}/responses`, sent);
    const { id } = (await response.json()) as { id?: string };
    if (response.status !== 200 || id === undefined) return undefined;
    return { id: id.replace('resp-', ''), asked: { model, sentMs, answeredMs: Date.now() } };
  } catch {
    return undefined;
  }
}

/**
 * An idle environment uses the configuration that it read last if the store takes more than 300 ms to return a newer one; on a
 * busy machine that was two minutes old. A call's reservation shows which configuration accepted it, since no two prices are equal.
 */
const oldMs = 600_000;

function statesOf(states: readonly State[], asked: Asked | undefined): State[] {
  if (!asked) return [...states];
  return states.filter(({ fromMs }, at) => {
    const untilMs = states[at + 1]?.fromMs ?? Infinity;
    return fromMs <= asked.answeredMs && untilMs + oldMs >= asked.sentMs;
  });
}

/** A late charge belongs to the row of the expiry. */
function wholeRows(rows: readonly Row[]): Row[] {
  const late = new Map(rows.map((row) => [String(row['id']), row['charge']]));
  return rows.flatMap((row) => {
    const id = String(row['id']);
    const charge = Number(row['charge']) + Number(late.get(`late#${id}`) ?? 0);
    return id.startsWith('late#') ? [] : [{ ...row, charge }];
  });
}

/** Checks a ledger row against every configuration that may have accepted its call. Returns what is wrong. */
function wrongWith(row: Row, states: readonly State[], inputMost: number): string | undefined {
  const [reserved, charge] = [nanoOf(row['reserved']), nanoOf(row['charge'])];
  if (charge > reserved) return `charged ${charge} above its hold of ${reserved}`;
  if (row['kind'] !== 'settled') return undefined;
  const model = String(row['model']);
  const isAlias = row['alias'] === 'best';
  const agreed = states.some(({ rates, alias }) => {
    const models = isAlias ? alias : [model];
    const holds = models.map((one) => costs(rates[one], inputMost, limit));
    const hold = holds.reduce((a, b) => (a > b ? a : b));
    return models.includes(model) && hold === reserved && costs(rates[model], promptTokens, limit) === charge;
  });
  return agreed
    ? undefined
    : `held ${reserved} and charged ${charge} by ${String(row['price'])}: no such moment`;
}

it('are charged the price at acceptance, and never more than they reserved', async () => {
  await using running = new AsyncDisposableStack();
  const tables = running.adopt(await startFaultedTables(7), (one) => one.stop());
  const editor = new Editor(tables);
  const models = ['m', 'small', 'large'];
  await tables.put('channels', { id: 'main', endpoint: tables.upstream.endpoint, models, state: true });
  for (const [at, model] of models.entries()) await editor.price(at + 1, model);
  await editor.alias(['small']);
  await tables.put('keys', { hash: keyHash(account), account, store: true });
  await tables.put('grants', { account, grant_id: 'first', amount: granted });
  tables.upstream.script(honest);
  const env = { DYNAMODB_ENDPOINT: tables.store.endpoint, RELAY_SWEEP_GRACE: '1' };
  const stack = running.adopt(await startLocalStack({ seed: 'none', env }), (one) => one.stop());
  const parts = async () =>
    (await tables.rows('quotas')).filter(({ account: name }) => String(name).startsWith(account));
  const rowsOf = async () =>
    (await tables.rows('ledger')).filter(({ kind }) => kind !== 'grant' && kind !== 'cancelled');
  await until(async () => (await parts()).length > 0);

  // The reservation of one call shows how many input tokens are reserved.
  await until(async () => (await accepted(stack, 'm')) !== undefined);
  await until(async () => (await rowsOf()).some(({ kind }) => kind === 'settled'));
  const first = (await rowsOf()).find(({ kind }) => kind === 'settled') ?? {};
  const rate = editor.now.rates['m'] ?? { input: 1n, output: 0n };
  const inputMost = Number(((nanoOf(first['reserved']) - costs(rate, 0, limit)) * 1_000n) / rate.input);
  expect(costs(rate, inputMost, limit)).toBe(nanoOf(first['reserved']));

  const asked = new Map<string, Asked>();
  const ending = new AbortController();
  const random = new SeededRandom(7);
  const editing = editAlways(editor, ending.signal);
  const killing = killAlways(stack, random, ending.signal);
  tables.store.rules.add({
    fault: { kind: 'lost_reply' },
    services: ['dynamodb'],
    tables: ['quotas', 'responses'],
    share: 0.02,
  });
  const worker = async (): Promise<void> => {
    while (asked.size < callsWanted) {
      const one = await accepted(stack, random.chance(0.65) ? 'm' : 'best');
      if (one) asked.set(one.id, one.asked);
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  ending.abort();
  await editing;
  const kills = await killing;
  const { lost_reply: lost = 0 } = tables.store.counts.faults;
  tables.store.rules.clear();

  const isOpen = ({ open }: Row): boolean =>
    Object.values((open ?? {}) as Record<string, unknown[]>).some((entry) => !String(entry[7]).includes('t'));
  const figure = (rows: Row[], name: string): bigint =>
    rows.reduce((sum, row) => sum + BigInt((row[name] ?? 0) as string | number), 0n);
  await until(async () => {
    process.kill(stack.pid, 'SIGUSR2');
    await sleep(2_000);
    return !(await parts()).some(isOpen);
  });
  const sumOfCharges = async () => (await rowsOf()).reduce((sum, row) => sum + nanoOf(row['charge']), 0n);
  const spent = figure(await parts(), 'spent');
  await until(async () => (await sumOfCharges()) === spent);
  expect(figure(await parts(), 'available') + spent).toBe(BigInt(granted) * 1_000_000_000n);

  const rows = wholeRows(await rowsOf());
  const wrong = rows.flatMap((row) => {
    const id = String(row['id']);
    const what = wrongWith(row, statesOf(editor.states, asked.get(id)), inputMost);
    return what === undefined ? [] : [`${id} (${asked.get(id)?.model ?? 'unknown'}) ${what}`];
  });
  const kinds = Object.entries(Object.groupBy(rows, ({ kind }) => String(kind))).map(
    ([kind, of]) => `${of?.length} ${kind}`,
  );
  console.log(
    `${asked.size} accepted, ${rows.length} rows (${kinds.join(', ')}), ${editor.states.length} states, ${kills} kills, ` +
      `${lost} lost replies, ${rows.filter(({ alias }) => alias).length} by the alias; ${wrong.length} wrong`,
  );
  expect(wrong.slice(0, 5)).toEqual([]);
  // Only a run that was killed before its reservation fails without a row; no edit makes a run fail.
  const unbilled = [...asked.keys()].filter((id) => !rows.some((row) => row['id'] === id));
  const failures = await Promise.all(
    unbilled.map(async (id) => {
      let ended = '';
      // A run that died before its reservation is reported as failed within 66 s.
      await until(async () => {
        const response = await fetch(`${stack.baseUrl}/responses/resp-${id}`, { headers });
        const { status, error } = (await response.json()) as StoredEnd;
        ended = `${status} ${error?.code ?? 'without an error'}`;
        return !['queued', 'in_progress'].includes(status);
      });
      return ended;
    }),
  );
  console.log(
    Object.entries(Object.groupBy(failures, (each) => each)).map(([each, of]) => `${of?.length} ${each}`),
  );
  expect(failures.filter((each) => each !== 'failed server_error')).toEqual([]);
  expect(failures.length).toBeLessThanOrEqual(kills);
}, 3_600_000);
