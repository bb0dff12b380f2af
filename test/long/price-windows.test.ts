/**
 * Calls on the running stack, streamed and not, on the three endpoints, while price windows open and close each minute, groups of
 * customers are edited, processes are killed and store replies are lost. The charge of each call is recomputed by the
 * oracle from the hour in its id, the tokens that the upstream reported and the rows that were written.
 * `RELAY_WINDOW_SECONDS=100` shortens it; any 60 seconds include a window's boundary.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { requestTimeMs } from '../../shared/wire/ids.ts';
import { keyHash, keyOf } from '../local/money-reader.ts';
import {
  costOf,
  priceOf,
  ruleOfText,
  type ChargeText,
  type CustomerPriceText,
  type Tokens,
  type WindowText,
} from '../oracle/price-list.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { startFaultedTables, until, type Row } from '../support/faulted-tables.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';
import type { Script } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';

const stormMs = Number(process.env['RELAY_WINDOW_SECONDS'] ?? 400) * 1_000;
const workers = 12;
const limit = 60;
const granted = 100_000;
const model = 'deepseek-v4-pro';
const minuteMs = 60_000;
/** A busy stack reads a configuration late; each edit uses a unique factor, so a charge shows which one applied. */
const oldMs = 600_000;

const zone = 'Asia/Shanghai';
const clock = new Intl.DateTimeFormat('sv-SE', { timeStyle: 'short', timeZone: zone });

/** Of every three minutes, one has a factor and one has its own prices. */
function windowsFrom(startMs: number): WindowText[] {
  return Array.from({ length: 24 }, (_, index): WindowText => {
    const fromMs = startMs + Math.floor(index / 2) * 3 * minuteMs + (index % 2) * minuteMs;
    const hours = { from: clock.format(fromMs), to: clock.format(fromMs + minuteMs), zone };
    const price = index / 1_000;
    return index % 2 === 0
      ? { name: `peak-${index}`, ...hours, factor: 2 + price }
      : {
          name: `night-${index}`,
          ...hours,
          input: 0.3 + price,
          output: 0.7 + price,
          cached_input: 0.1 + price,
        };
  });
}

/** The upstream's reported usage, by the number in the prompt. */
const reported = new Map<string, Tokens>();

const vendor: Script = async ({ text }, reply) => {
  const [, number = ''] = /call number (\d+)/.exec(text) ?? [];
  const random = new SeededRandom(Number(number));
  const tokens = {
    input: random.integer(20, 60),
    output: random.integer(1, limit),
    cached: random.integer(0, 20),
  };
  reported.set(number, tokens);
  await reply.data(chunk({ role: 'assistant', content: 'Hello' }));
  await sleep(random.integer(0, 6_000));
  await reply.data(chunk({ content: ' there.' }), chunk({}, 'stop'));
  const details = { prompt_tokens_details: { cached_tokens: tokens.cached } };
  await reply.data(
    usageChunk({ prompt_tokens: tokens.input, completion_tokens: tokens.output, ...details }),
    '[DONE]',
  );
  reply.end();
};

const customers = ['listed', 'grouped', 'agreed'] as const;
type Customer = (typeof customers)[number];
const agreed: CustomerPriceText[] = [{ models: ['deepseek-*'], factor: 0.85 }];

/** The entries of the group during some time. */
interface GroupState {
  fromMs: number;
  prices: CustomerPriceText[];
}

const bodies = {
  '/chat/completions': (content: string) => ({ messages: [{ role: 'user', content }], max_tokens: limit }),
  '/responses': (content: string) => ({ input: content, max_output_tokens: limit, store: false }),
  '/messages': (content: string) => ({ messages: [{ role: 'user', content }], max_tokens: limit }),
};

/** Returns the id of a call whose headers arrived. A call that is cut in its answer is also charged. */
async function callOnce(stack: LocalStack, customer: Customer, number: number): Promise<string | undefined> {
  const random = new SeededRandom(number);
  const path = random.pick(['/chat/completions', '/responses', '/messages'] as const);
  const content = `This is call number ${number} of a storm: say hello, please, and nothing else at all.`;
  const headers = { authorization: `Bearer ${keyOf(customer)}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model, stream: random.chance(0.5), ...bodies[path](content) });
  const signal = AbortSignal.timeout(random.chance(0.05) ? 2_000 : 60_000);
  try {
    const response = await fetch(`${stack.baseUrl}${path}`, { method: 'POST', headers, body, signal });
    const id = response.headers.get('x-request-id') ?? undefined;
    await response.text().catch(() => {});
    return id;
  } catch {
    return undefined;
  }
}

const nanoOf = (yuan: unknown): bigint => BigInt(Math.round(Number(yuan) * 1e9));

it('charges each call by the hour and the group at its acceptance, whatever happens to it', async () => {
  await using running = new AsyncDisposableStack();
  const tables = running.adopt(await startFaultedTables(11), (one) => one.stop());
  const startMs = Math.floor(Date.now() / minuteMs) * minuteMs;
  const windows = windowsFrom(startMs);
  const rule: ChargeText = {
    id: 1,
    type: 'token-billing',
    models: [model],
    input: 0.2,
    output: 0.5,
    cached_input: 0.05,
    windows,
  };
  const groups: GroupState[] = [];
  const editGroup = async (): Promise<void> => {
    const factor = 0.5 + groups.length / 1_000;
    const prices = [{ models: [model], factor }];
    await tables.put('settings', { name: 'price_groups', value: { many: prices } });
    groups.push({ fromMs: Date.now(), prices });
  };
  await tables.put('channels', {
    id: 'main',
    endpoint: tables.upstream.endpoint,
    models: [model],
    state: true,
  });
  await tables.put('charges', rule);
  await editGroup();
  for (const account of customers) {
    const priced = { listed: {}, grouped: { price_group: 'many' }, agreed: { prices: agreed } }[account];
    await tables.put('accounts', { account, ...priced });
    await tables.put('keys', { hash: keyHash(account), account });
    await tables.put('grants', { account, grant_id: 'first', amount: granted });
  }
  tables.upstream.script(vendor);
  const env = { DYNAMODB_ENDPOINT: tables.store.endpoint, RELAY_SWEEP_GRACE: '1' };
  const stack = running.adopt(await startLocalStack({ seed: 'none', env }), (one) => one.stop());
  let calls = 0;
  const askOnce = async (customer: Customer): Promise<string | undefined> => {
    calls += 1;
    const number = calls;
    const id = await callOnce(stack, customer, number);
    if (id !== undefined) numbers.set(id, String(number));
    return id;
  };
  /** The number of a call, by its id. */
  const numbers = new Map<string, string>();
  const rowsOf = async (): Promise<Row[]> =>
    (await tables.rows('ledger')).filter(({ kind }) => kind !== 'grant' && kind !== 'cancelled');
  await until(async () => {
    for (const customer of customers) await askOnce(customer);
    const rows = await rowsOf();
    return customers.every((name) =>
      rows.some(({ account, kind }) => account === name && kind === 'settled'),
    );
  });

  const random = new SeededRandom(11);
  const ending = AbortSignal.timeout(stormMs);
  tables.store.rules.add({
    fault: { kind: 'lost_reply' },
    services: ['dynamodb'],
    tables: ['quotas'],
    share: 0.02,
  });
  const worker = async (): Promise<void> => {
    while (!ending.aborted) await askOnce(random.pick(customers));
  };
  const repeat = async (everyMs: number, act: () => Promise<void> | void): Promise<void> => {
    while (!ending.aborted) {
      await sleep(everyMs, undefined, { signal: ending }).catch(() => {});
      if (!ending.aborted) await act();
    }
  };
  let kills = 0;
  const kill = (): void => {
    const pids = ['chat', 'responses', 'messages'].flatMap((name) => stack.environmentPids(name));
    try {
      if (pids.length > 0) process.kill(random.pick(pids as [number, ...number[]]), 'SIGKILL');
      kills += 1;
    } catch {
      // The process had exited by itself.
    }
  };
  const storm = Array.from({ length: workers }, worker);
  await Promise.all([...storm, repeat(9_000, kill), repeat(10_000, editGroup)]);
  const { lost_reply: lost = 0 } = tables.store.counts.faults;
  tables.store.rules.clear();

  const isOpen = ({ open }: Row): boolean =>
    Object.values((open ?? {}) as Record<string, unknown[]>).some((entry) => !String(entry[7]).includes('t'));
  await until(async () => {
    process.kill(stack.pid, 'SIGUSR2');
    await sleep(2_000);
    return !(await tables.rows('quotas')).some(isOpen);
  });
  const total = (rows: Row[], name: string): bigint =>
    rows.reduce((sum, row) => sum + BigInt((row[name] ?? 0) as string | number), 0n);
  const charged = (rows: readonly Row[]): bigint =>
    rows.reduce((sum, row) => sum + nanoOf(row['charge']), 0n);
  const quotas = await tables.rows('quotas');
  const spent = total(quotas, 'spent');
  await until(async () => charged(await rowsOf()) === spent);
  const rows = await rowsOf();
  expect(total(quotas, 'available') + spent).toBe(BigInt(granted * customers.length) * 1_000_000_000n);

  /** All prices that the oracle allows for a call: one, or those of the group's last edits. */
  const rulesFor = (row: Row): (ChargeText | undefined)[] => {
    const id = String(row['id']).replace('late#', '');
    const startedMs = requestTimeMs(id) ?? 0;
    const states = groups.filter(
      ({ fromMs }, at) => fromMs <= startedMs && (groups[at + 1]?.fromMs ?? Infinity) + oldMs >= startedMs,
    );
    const prices = { listed: [[]], agreed: [agreed], grouped: states.map((each) => each.prices) };
    return prices[row['account'] as Customer].map((own) =>
      priceOf([rule], model, { startedMs, prices: own }),
    );
  };
  const sample: Tokens = { input: 1_000_000, output: 1_000_000, cached: 100_000 };
  const wrong = rows.flatMap((row) => {
    const { id, kind, price, charge } = row;
    const late = rows.find((each) => each['id'] === `late#${String(id)}`);
    if (String(id).startsWith('late#')) return [];
    const rules = rulesFor(row);
    const named = costOf(ruleOfText(String(price)), sample);
    if (!rules.some((each) => costOf(each, sample) === named)) return [`${String(id)} has ${String(price)}`];
    const tokens = reported.get(numbers.get(String(id)) ?? '');
    const sum = nanoOf(charge) + nanoOf(late?.['charge'] ?? 0);
    if (kind !== 'settled' || row['estimated'] || !tokens) return [];
    const due = rules.map((each) => costOf(each, tokens));
    return due.includes(sum) ? [] : [`${String(id)} is charged ${sum}, the oracle says ${due.join(' or ')}`];
  });
  const settled = rows.filter(({ kind, estimated }) => kind === 'settled' && !estimated);
  const checked = settled.filter(({ id }) => reported.has(numbers.get(String(id)) ?? ''));
  const minuteOf = (ms: number): number => Math.floor(ms / minuteMs);
  const crossed = checked.filter(
    ({ id, at }) => minuteOf(requestTimeMs(String(id)) ?? 0) < minuteOf(Date.parse(String(at))),
  );
  const priced = new Set(rows.map(({ price }) => price));
  console.log(
    `${calls} calls, ${rows.length} rows, ${checked.length} recomputed by what the upstream reported, ${crossed.length} of them ` +
      `over a border, ${priced.size} prices, ${groups.length} edits, ${kills} kills, ${lost} lost replies; ${wrong.length} wrong`,
  );
  expect(wrong.slice(0, 5)).toEqual([]);
  expect(crossed.length).toBeGreaterThan(0);
  expect(priced.size).toBeGreaterThan(6);
}, 3_600_000);
