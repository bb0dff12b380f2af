import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startWatchedStack, type WatchedStack } from '../hardening/watched-stack.ts';
import { answersWith, limitsIn } from '../local/metered-upstream.ts';
import { keyOf, MoneyReader, nano, rowsOfAccount, until, type StoredAccount } from '../local/money-reader.ts';
import { runOps } from '../ops/run-ops.ts';
import { SeededRandom } from '../simulation/seeded-random.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';

/** A busy account whose processes are killed and that is overdrawn and topped up all the time; its charges are recomputed from the upstream's output. */
const account = 'debtor';
const [inputPrice, outputPrice] = [18_000, 72_000];
const inputTokens = 8;
const calls = { held: 12, probes: 12, usual: 80, atOnce: 16 };
const rounds = 13;
const priceOf = (output: number): number => inputTokens * inputPrice + output * outputPrice;

const random = new SeededRandom(24);
/** The upstream's output, by the number at the start of its text. */
const written = new Map<number, number>();
let hold: Promise<void> | undefined;

let upstream: ScriptedUpstream;
let stack: WatchedStack;
let money: MoneyReader;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  upstream.script(async (call, reply) => {
    await (hold ?? maybeKill());
    const number = written.size;
    // One answer in eight exceeds its limit and overdraws the balance.
    const most = Math.min(...limitsIn(call));
    const output = random.chance(0.125) ? 4 * most : random.integer(20, most);
    written.set(number, output);
    const text = `${number} ${'word '.repeat(1.3 * output)}`;
    await answersWith({ text, input: inputTokens, output, isCut: false })(call, reply);
  });
  stack = await startWatchedStack({
    environmentsMax: calls.held + calls.probes,
    functionEnvironment: { RELAY_SWEEP_GRACE: '0' },
    rows: [
      ['channels', { id: 'chat', endpoint: upstream.endpoint, models: ['chat'], state: true }],
      ['charges', { id: 10, type: 'token-billing', models: ['chat'], input: 0.018, output: 0.072 }],
      ['settings', { name: 'limits', value: { request_seconds: 20 } }],
      ...rowsOfAccount(account, 60),
    ],
  });
  money = new MoneyReader(stack);
  await until(async () => (await money.accounts()).has(account));
});
afterAll(async () => {
  await stack?.stop();
  await upstream?.close();
});

interface Seen {
  status: number;
  id?: string | undefined;
  number?: number;
}
const seen: Seen[] = [];
let running = 0;

async function call(): Promise<Seen> {
  running += 1;
  const answered = await answerOf().catch((): Seen => ({ status: 0 }));
  running -= 1;
  seen.push(answered);
  return answered;
}

async function answerOf(): Promise<Seen> {
  const body = { model: 'chat', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] };
  const response = await stack.post(body, { headers: { authorization: `Bearer ${keyOf(account)}` } });
  const { status } = response;
  if (status !== 200) return { status };
  const { id, choices } = (await response.json()) as {
    id: string;
    choices: { message: { content: string } }[];
  };
  return {
    status,
    id: id.replace('chatcmpl-', ''),
    number: Number.parseInt(choices[0]?.message.content ?? ''),
  };
}

const many = (count: number): Promise<Seen[]> => Promise.all(Array.from({ length: count }, call));

function kill(): void {
  const alive = stack.chatProcesses().filter(isAlive);
  if (alive.length > 0) process.kill(random.pick(alive as [number, ...number[]]), 'SIGKILL');
}

/** Sometimes kills a process while the upstream answers. */
async function maybeKill(): Promise<void> {
  if (random.chance(0.04)) kill();
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

let grants = 0;
async function grant(nanoYuan: number): Promise<void> {
  const { granted } = await money.account(account);
  const Item = { account, grant_id: `grant-${(grants += 1)}`, amount: nanoYuan / nano };
  await stack.store.documents.send(new PutCommand({ TableName: 'relay-grants', Item }));
  await until(async () => (await money.account(account)).granted === granted + nanoYuan);
}

const owned = ({ granted, spent }: StoredAccount): number => granted - spent;

/** No call is served in debt, neither while running calls release their reservations, nor afterwards. */
async function owes(): Promise<void> {
  const gate = Promise.withResolvers<void>();
  hold = gate.promise;
  const before = upstream.requests.length;
  const held: Promise<Seen>[] = [];
  await until(async () => {
    // The relay caches a refusal from before the last grant for a second.
    while (running < calls.held) held.push(call());
    return upstream.requests.length >= before + calls.held;
  });
  const asked = upstream.requests.length;
  await grant(-owned(await money.account(account)) - nano / 2);
  const first = await many(calls.probes);
  kill();
  gate.resolve();
  const probes = many(calls.probes / 2);
  await Promise.all(held);
  hold = undefined;
  const after = await many(calls.probes / 2);
  const all = [...first, ...(await probes), ...after];
  expect(all.filter(({ status }) => status === 200)).toEqual([]);
  expect(upstream.requests.length).toBe(asked);
}

it('a busy account is never served in debt, and every charge of about 1,500 calls is in the ledger', async () => {
  for (let round = 0; round < rounds; round += 1) {
    for (let done = 0; done < calls.usual; done += calls.atOnce) await many(calls.atOnce);
    await until(async () => (await call()).status === 200);
    await owes();
    await grant(60 * nano + nano / 2);
  }
  await until(async () => {
    await stack.runSchedules();
    return (await money.account(account)).open === 0;
  });
  const sums = await money.account(account);
  const rows = await money.ledger(account, sums.settled);
  const charges = new Map(rows.map((row) => [String(row['id']), Math.round(Number(row['charge']) * nano)]));
  const sum = [...charges.values()].reduce((all, charge) => all + charge, 0);
  const served = seen.filter(({ status }) => status === 200);
  for (const { id = '', number = -1 } of served)
    expect([id, charges.get(id)]).toEqual([id, priceOf(written.get(number) ?? Number.NaN)]);
  const kinds = (kind: string): number => rows.filter((row) => row['kind'] === kind).length;
  expect(rows).toHaveLength(sums.settled);
  expect(sum).toBe(sums.spent);
  expect(sums).toMatchObject({ moved: 0, available: sums.granted - sum });
  expect(Math.round((await money.daily(account, 'charged')) * nano)).toBe(sum);
  expect(sums.parts).toBeGreaterThan(1);
  expect(kinds('expired')).toBeGreaterThan(0);
  expect(seen.length).toBeGreaterThan(1_400);
  const audit = await runOps(['audit', '--wait', '0'], { AWS_ENDPOINT_URL_DYNAMODB: stack.store.endpoint });
  expect(audit).toMatchObject({ code: 0, output: expect.stringContaining('all balances match') });
}, 600_000);
