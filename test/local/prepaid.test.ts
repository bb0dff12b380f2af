import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { WatchedStack } from '../hardening/watched-stack.ts';
import { runOps } from '../ops/run-ops.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import {
  accountsStack,
  leaveAccountsStack,
  crowd,
  dialects,
  inputPrice,
  outputPrice,
} from './accounts-stack.ts';
import { answersWith, limitsIn, writesUpTo } from './metered-upstream.ts';
import { keyOf, nano, rowsOfAccount, until, type MoneyReader, type Row } from './money-reader.ts';

/** Prepaid is prepaid: hostile customers and lying upstreams on the running stack. */
/** An answer of this many tokens costs 7.2 yuan. */
const longAnswer = 100_000;
const small = 0.32;
type Asked = (limit: number | undefined) => Row;
const said = { messages: [{ role: 'user', content: 'hi' }] };
/** The path of each endpoint, a request, and the field that shows that the limit ended the answer. */
const endpoints: Record<'chat' | 'responses' | 'messages', { path: string; asked: Asked; cut: string }> = {
  chat: {
    path: '/v1/chat/completions',
    asked: (limit) => ({ ...said, ...(limit && { max_tokens: limit }) }),
    cut: '"length"',
  },
  responses: {
    path: '/v1/responses',
    asked: (limit) => ({ input: 'hi', ...(limit && { max_output_tokens: limit }) }),
    cut: 'max_output_tokens',
  },
  // The API requires a limit.
  messages: {
    path: '/v1/messages?beta=true',
    asked: (limit = longAnswer) => ({ ...said, max_tokens: limit }),
    cut: '"stop_reason":"max_tokens"',
  },
};
type EndpointName = keyof typeof endpoints;
const endpointNames = Object.keys(endpoints) as EndpointName[];
const crowds = [1, crowd];

/** They cover every pair of the four options. */
const ways = dialects.flatMap((dialect, at) =>
  endpointNames.flatMap((endpoint, which) =>
    [true, false].map((stream) => ({
      dialect,
      endpoint,
      stream,
      limit: (at + which + Number(stream)) % 2 === 0 ? undefined : longAnswer,
    })),
  ),
);
const nameOf = ({ dialect, endpoint, stream, limit }: (typeof ways)[number]): string =>
  [dialect, endpoint, stream ? 'stream' : 'json', limit ? 'limit' : 'free'].join('-');

const prose = (
  'A relay stands between programs and the companies that run large models. It reads each request, decides where to ' +
  'send it, and passes the answer back word by word. Because customers pay before they ask, it has to know what an ' +
  'answer may cost before the first word is written, and what it did cost when the last one was. '
).repeat(3);
/** By OpenAI's tokenizer. */
const proseTokens = 202;
const chatCounts = (prompt: unknown, completion: unknown): object => ({
  prompt_tokens: prompt,
  completion_tokens: completion,
});
const lies: Record<string, (object | string)[]> = {
  huge: [usageChunk(chatCounts(10, 1e12))],
  nan: ['{"choices":[],"usage":{"prompt_tokens":NaN,"completion_tokens":NaN}}'],
  zero: [usageChunk(chatCounts(0, 0))],
  none: [],
  several: [1, 1e12, 200].map((count) => usageChunk(chatCounts(10, count))),
};

let upstream: ScriptedUpstream;
let stack: WatchedStack;
let money: MoneyReader;

beforeAll(async () => {
  ({ stack, upstream, money } = await accountsStack([
    ...ways.flatMap((way) => rowsOfAccount(nameOf(way), small)),
    ...crowds.flatMap((count) => rowsOfAccount(`crowd-${count}`, 29.6)),
    ...Object.keys(lies).flatMap((name) => rowsOfAccount(`lie-${name}`, 100)),
    ...rowsOfAccount('busy', 1000),
    ...rowsOfAccount('disputed', 60),
    ...rowsOfAccount('overrun', 0.6),
  ]));
});
afterAll(leaveAccountsStack);
beforeEach(() => upstream.forget());

const post = (account: string, endpoint: EndpointName, body: Row): Promise<Response> =>
  stack.postUntilTaken(body, {
    path: endpoints[endpoint].path,
    headers: { authorization: `Bearer ${keyOf(account)}` },
  });

const chat = (account: string, more: Row = {}): Promise<Response> =>
  post(account, 'chat', { model: 'chat', messages: [{ role: 'user', content: 'hi' }], ...more });

/** Recomputed from the upstream's counts. */
const costOf = (input: number, output: number): number =>
  Math.round((input * inputPrice + output * outputPrice) * 1e6);

async function errorCode(response: Response): Promise<string> {
  return ((await response.json()) as { error: { code: string } }).error.code;
}

const refusalOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { error: { message: string } }).error.message;

describe('a balance of 0.32 yuan', () => {
  it.each(ways)(
    'never buys an answer of 7.2: $dialect upstream, $endpoint endpoint, stream $stream, limit $limit',
    async (way) => {
      const { dialect, endpoint, stream, limit } = way;
      upstream.script(writesUpTo(longAnswer));
      const account = nameOf(way);
      const { asked, cut } = endpoints[endpoint];
      const response = await post(account, endpoint, { model: dialect, stream, ...asked(limit) });
      const text = await response.text();
      expect(response.status).toBe(200);
      expect(text).toContain(cut);
      const [sent] = upstream.requests.flatMap(limitsIn);
      expect(response.headers.get('x-relay-limited-by')).toBe('balance');
      expect(response.headers.get('x-relay-max-tokens')).toBe(String(sent));
      const { available, spent } = await money.settled(account);
      expect(spent).toBe(costOf(8, sent ?? Infinity));
      expect(available).toBe(small * nano - spent);
      expect(available).toBeGreaterThanOrEqual(0);
    },
  );
});

describe('a balance of 29.6 yuan', () => {
  it.each(crowds)('never ends below zero with %d calls at once', async (count) => {
    upstream.script(writesUpTo(longAnswer, { holdMs: 100 }));
    const account = `crowd-${count}`;
    const limits = [undefined, 1000, longAnswer];
    const answers = await Promise.all(
      Array.from({ length: count }, (_, at) =>
        chat(account, { stream: at % 2 === 0, max_tokens: limits[at % limits.length] }),
      ),
    );
    const refused = answers.filter(({ status }) => status !== 200);
    const codes = new Set(await Promise.all(refused.map(errorCode)));
    const { available, spent, granted } = await money.settled(account);
    expect(available).toBeGreaterThanOrEqual(0);
    expect(available + spent).toBe(granted);
    const limitsSent = upstream.requests.map((call) => Math.min(...limitsIn(call)));
    expect(spent).toBe(limitsSent.reduce((sum, limit) => sum + costOf(8, limit), 0));
    // Calls are refused permanently only once the balance is spent.
    const isSpent = available < costOf(20, 1024);
    expect([...codes].filter((code) => code !== 'balance_reserved' && !isSpent)).toEqual([]);
    expect([...codes].every((code) => /^(balance_reserved|insufficient_quota)$/.test(code))).toBe(true);
    await money.ledger(account, limitsSent.length);
  });
});

describe('an upstream with impossible counts', () => {
  it.each(Object.keys(lies))('is billed by plausible counts, and the row is flagged: %s', async (name) => {
    upstream.script(async (_call, reply) => {
      const said = lies[name] ?? [];
      await reply.data(chunk({ role: 'assistant', content: prose }), chunk({}, 'stop'), ...said, '[DONE]');
      reply.end();
    });
    const account = `lie-${name}`;
    const response = await chat(account, { stream: true });
    expect(await response.text()).toContain('A relay stands');
    const [row] = await money.ledger(account, 1);
    const { spent } = await money.settled(account);
    expect(row).toMatchObject({ kind: 'settled', estimated: true });
    expect(row?.['flag']).toMatch(/^(input|output):/);
    const plausible = costOf(8, proseTokens);
    expect(spent).toBeGreaterThan(0.7 * plausible);
    expect(spent).toBeLessThan(1.3 * plausible);
    expect(Math.round(Number(row?.['charge']) * nano)).toBe(spent);
  });
});

describe('a sharded account whose sum falls below zero', () => {
  const grant = async (account: string, amount: number): Promise<void> => {
    const { granted } = await money.account(account);
    const Item = { account, grant_id: `more ${amount}`, amount };
    await stack.store.documents.send(new PutCommand({ TableName: 'relay-grants', Item }));
    await until(async () => (await money.account(account)).granted === granted + amount * nano);
  };

  it.each([
    { account: 'disputed', how: 'a dispute while calls run', most: 1000, writes: 100, taken: -60.5 },
    { account: 'overrun', how: 'answers beyond their limit', most: 10, writes: 1000, taken: 0 },
  ])('is rejected like an account with one item: by $how', async ({ account, most, writes, taken }) => {
    const ends = Promise.withResolvers<void>();
    upstream.script(async (call, reply) => {
      await ends.promise;
      const text = 'word '.repeat(1.3 * writes);
      await answersWith({ text, input: 8, output: writes, isCut: false })(call, reply);
    });
    const call = (): Promise<Response> => chat(account, { stream: true, max_tokens: most });
    const running = Array.from({ length: crowd }, async () => (await call()).text());
    await until(async () => upstream.requests.length === crowd && (await money.account(account)).parts > 1);
    if (taken !== 0) await grant(account, taken);
    ends.resolve();
    for (const text of await Promise.all(running)) expect(text).toContain('[DONE]');
    const owing = await money.settled(account);
    expect(owing.available).toBeLessThan(0);
    expect(owing).toMatchObject({ moved: 0, spent: crowd * costOf(8, writes) });

    const refused = await Promise.all(Array.from({ length: crowd }, call));
    expect(refused.filter(({ status }) => status !== 429)).toHaveLength(0);
    expect(new Set(await Promise.all(refused.map(errorCode)))).toEqual(new Set(['insufficient_quota']));
    expect(await refusalOf(await call())).toContain(`The balance of ${owing.available / nano} yuan`);
    expect(upstream.requests).toHaveLength(crowd);
    expect(await money.account(account)).toEqual(owing);

    await grant(account, 10);
    // Each environment caches a refusal for a second.
    const served = (): Promise<void> =>
      until(async () => (await (await call()).text()).includes('[DONE]'), 300);
    await Promise.all(Array.from({ length: crowd }, served));
    const after = await money.settled(account);
    expect(after).toMatchObject({ moved: 0, spent: 2 * crowd * costOf(8, writes) });
    expect(after.available).toBe(after.granted - after.spent);
  });
});

describe('a busy account', () => {
  const calls = 2 * crowd;
  it('is split without losing or doubling a charge: item, ledger and days add up', async () => {
    const full = Promise.withResolvers<void>();
    upstream.script(async (call, reply) => {
      if (upstream.requests.length >= crowd) full.resolve();
      await full.promise;
      await writesUpTo(300)(call, reply);
    });
    const answers = await Promise.all(
      Array.from({ length: calls }, () => chat('busy', { max_tokens: 1000 })),
    );
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    const account = await money.settled('busy');
    const cost = costOf(8, 300);
    expect(account).toMatchObject({
      spent: calls * cost,
      available: 1000 * nano - calls * cost,
      granted: 1000 * nano,
      moved: 0,
      settled: calls,
    });
    expect(account.parts).toBeGreaterThan(1);
    const rows = await money.ledger('busy', calls);
    expect(rows).toHaveLength(calls);
    expect(new Set(rows.map((row) => row['charge']))).toEqual(new Set([cost / nano]));
    expect(await money.daily('busy', 'calls')).toBe(calls);
    expect(Math.round((await money.daily('busy', 'charged')) * nano)).toBe(calls * cost);
  });

  it('shows the sums of its shards to customers and operators, and takes a correction from all of them', async () => {
    const cost = costOf(8, 300) * calls;
    await stack.store.documents.send(
      new PutCommand({
        TableName: 'relay-grants',
        Item: { account: 'busy', grant_id: 'correction', amount: -900, reason: 'typed twice' },
      }),
    );
    await until(async () => (await money.account('busy')).granted === 100 * nano);
    const left = { granted: 100, spent: cost / nano, available: (100 * nano - cost) / nano, reserved: 0 };
    expect(await money.account('busy')).toMatchObject({ moved: 0, available: left.available * nano });
    const shown = await fetch(`${stack.origin}/v1/account`, {
      headers: { authorization: `Bearer ${keyOf('busy')}` },
    });
    expect(await shown.json()).toMatchObject(left);
    const ops = (...words: string[]) => runOps(words, { AWS_ENDPOINT_URL_DYNAMODB: stack.store.endpoint });
    expect((await ops('customer', 'show', 'busy')).output).toContain(`available  ¥${left.available}`);
    expect(await ops('audit')).toMatchObject({
      code: 0,
      output: expect.stringContaining('all balances match'),
    });
  });
});
