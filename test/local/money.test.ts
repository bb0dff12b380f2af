import { GetCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startCountedStack, type CountedStack } from '../hardening/watched-stack.ts';
import { startScriptedUpstream, type Script, type ScriptedUpstream } from '../support/scripted-upstream.ts';
import { chunk, usageChunk } from '../support/upstream-frames.ts';
import { keyHash, keyOf, MoneyReader, nano, rowsOfAccount, until } from './money-reader.ts';

/** The guarantees of reservations on the running stack: distribution, functions, streams, sweeper, store. */
const balances: Record<string, number> = {
  killed: 100,
  repeater: 100,
  leaver: 100,
  unheard: 100,
  crowd: 10,
  outage: 100,
  warm: 100,
  tiered: 100,
};
/** A call may take 4 s, and only then is it swept. Each run starts every scheduled function. */
const sweepPauseMs = 1_000;
const messages = [{ role: 'user', content: 'hi' }];

let upstream: ScriptedUpstream;
let stack: CountedStack;
let money: MoneyReader;

beforeAll(async () => {
  upstream = await startScriptedUpstream();
  const channel = {
    id: 'money',
    endpoint: upstream.endpoint,
    models: ['metered', 'per-call'],
    state: true,
  };
  const planItem = { id: 'calls', value: 2, models: ['per-call'] };
  stack = await startCountedStack({
    environmentsMax: 6,
    functionEnvironment: { RELAY_SWEEP_GRACE: '0' },
    rows: [
      ['channels', channel],
      [
        'charges',
        {
          id: 10,
          type: 'token-billing',
          models: ['metered'],
          input: 1,
          output: 2,
          service_tiers: { flex: 0.5, priority: 2 },
        },
      ],
      ['charges', { id: 11, type: 'times-billing', models: ['per-call'], output: 1 }],
      ['plans', { level: 3, price: 9, items: [planItem] }],
      ['settings', { name: 'limits', value: { request_seconds: 4 } }],
      ...Object.entries(balances).flatMap(([account, amount]) => rowsOfAccount(account, amount)),
      ['keys', { hash: keyHash('planned'), account: 'planned' }],
      ['accounts', { account: 'planned', plan: { level: 3, since: '2026-01-01' } }],
    ],
  });
  money = new MoneyReader(stack);
  for (const [account, amount] of Object.entries(balances))
    await until(async () => (await quota(account))?.['available'] === amount * nano);
});
afterAll(async () => {
  await stack.stop();
  await upstream.close();
});
beforeEach(() => upstream.forget());

async function quota(account: string): Promise<Record<string, unknown> | undefined> {
  const { Item } = await stack.store.documents.send(
    new GetCommand({ TableName: 'relay-quotas', Key: { account } }),
  );
  return Item;
}

const openIn = (item: Record<string, unknown> | undefined): number =>
  Object.keys((item?.['open'] as object | undefined) ?? {}).length;

const post = (account: string, model: string, more: object = {}, signal?: AbortSignal): Promise<Response> =>
  stack.post(
    { model, messages, ...more },
    { headers: { authorization: `Bearer ${keyOf(account)}` }, ...(signal && { signal }) },
  );

const answered: Script = async (_call, reply) => {
  await reply.data(chunk({ role: 'assistant', content: 'ok' }), chunk({}, 'stop'), usageChunk(), '[DONE]');
  reply.end();
};

describe('the money of the running stack', () => {
  it('balance after a kill -9 in mid-stream: the sweeper charges the input and releases the rest', async () => {
    upstream.script(async (_call, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'half an' }));
      await reply.hang();
    });
    const response = await post('killed', 'metered', { stream: true });
    await response.body?.getReader().read();
    const reserved = await quota('killed');
    expect(openIn(reserved)).toBe(1);
    expect(Number(reserved?.['available'])).toBeLessThan(100 * nano);

    stack.killChatProcesses();
    await until(async () => {
      await stack.runSchedules();
      return openIn(await quota('killed')) === 0;
    }, sweepPauseMs);
    const after = await quota('killed');
    expect(Number(after?.['available']) + Number(after?.['spent'])).toBe(100 * nano);
    expect(Number(after?.['spent'])).toBeGreaterThan(0);
    const [row] = await money.ledger('killed', 1);
    expect(row).toMatchObject({ kind: 'expired', model: 'metered' });
    expect(Math.round(Number(row?.['charge']) * nano)).toBe(after?.['spent']);
  });

  it('an Idempotency-Key of a killed call: free again once the sweeper closed the call, and not before', async () => {
    const repeat = (): Promise<Response> =>
      stack.post(
        { model: 'metered', messages },
        { headers: { authorization: `Bearer ${keyOf('repeater')}`, 'idempotency-key': 'killed' } },
      );
    const reached = upstream.nextRequest();
    upstream.script(async (_call, reply) => reply.hang());
    const killed = repeat().catch(() => undefined);
    await reached;
    stack.killChatProcesses();
    await killed;
    upstream.script(answered);
    const statuses = new Set<number>();
    for (;;) {
      const { status } = await repeat();
      if (status === 200) break;
      statuses.add(status);
      await new Promise((resolve) => setTimeout(resolve, sweepPauseMs));
      await stack.runSchedules();
    }
    // A call that hits a dying environment is a 502, as on Lambda.
    statuses.delete(502);
    expect([...statuses]).toEqual([409]);
  });

  it('needs two UpdateItem for a warm call and no read; one of them comes before the upstream request', async () => {
    /** Store requests of the answering function; functions on streams make their own. */
    const asked = (): string[] =>
      stack.store.calls
        .map(({ action, table }) => `${action} ${table}`)
        .filter((call) => /^(GetItem|BatchGetItem|UpdateItem|PutItem) /.test(call))
        .filter((call) => !/relay-(ledger|grants|daily)$/.test(call));
    let atUpstream: string[] = [];
    upstream.script(async (call, reply) => {
      atUpstream = asked();
      await answered(call, reply);
    });
    let calls = ['GetItem'];
    // The first calls find neither key nor configuration.
    while (calls.some((call) => /^(Batch)?GetItem/.test(call))) {
      stack.store.calls.length = 0;
      const answer = await post('warm', 'metered');
      await answer.text();
      await stack.logged(answer.headers.get('x-request-id') ?? '');
      calls = asked();
    }
    expect(calls).toEqual(['UpdateItem relay-quotas', 'UpdateItem relay-quotas']);
    expect(atUpstream).toEqual(['UpdateItem relay-quotas']);
  });

  it('bill the full usage once when the client leaves after three chunks', async () => {
    const words = Promise.withResolvers<void>();
    upstream.script(async (_call, reply) => {
      await reply.data(...['a', 'b', 'c'].map((content) => chunk({ role: 'assistant', content })));
      await words.promise;
      await reply.data(...['d', 'e', 'f'].map((content) => chunk({ content })));
      await reply.data(
        chunk({}, 'stop'),
        usageChunk({
          prompt_tokens: 1000,
          completion_tokens: 500,
          total_tokens: 1500,
          prompt_tokens_details: { cached_tokens: 800 },
        }),
        '[DONE]',
      );
      reply.end();
    });
    const leaving = new AbortController();
    const response = await post('leaver', 'metered', { stream: true }, leaving.signal);
    await response.body?.getReader().read();
    leaving.abort();
    words.resolve();
    expect(await money.ledger('leaver', 1)).toMatchObject([
      { kind: 'settled', charge: 2, prompt_tokens: 1000, completion_tokens: 500, cached_tokens: 800 },
    ]);
    expect(await quota('leaver')).toMatchObject({ available: 98 * nano, spent: 2 * nano, settled: 1 });
  });

  it('charge each call in the service tier that its upstream names, but in no more expensive one than requested', async () => {
    const asked: (string | undefined)[] = ['flex', 'flex', 'priority', 'priority', undefined, 'priority'];
    const named: (string | undefined)[] = ['flex', 'default', 'priority', undefined, 'priority', 'ultrafast'];
    const told: unknown[] = [];
    for (const [at, tier] of asked.entries()) {
      upstream.script(async (call, reply) => {
        expect(call.body['service_tier']).toBe(tier);
        const more = { service_tier: named[at] };
        await reply.data(chunk({ role: 'assistant', content: 'ok' }, null, more), chunk({}, 'stop', more));
        await reply.data(usageChunk(), '[DONE]');
        reply.end();
      });
      const answer = await post('tiered', 'metered', { ...(tier && { service_tier: tier }), max_tokens: 50 });
      told.push(((await answer.json()) as { service_tier?: string }).service_tier);
    }
    expect(told).toEqual(['flex', 'default', 'priority', 'priority', undefined, 'ultrafast']);
    // 11 x 0.001 + 7 x 0.002 = 0.025.
    const text = '10:tokens:1:2';
    expect(await money.ledger('tiered', 6)).toMatchObject([
      { charge: 0.0125, price: `${text}:x0.5`, service_tier: 'flex' },
      { charge: 0.025, price: text },
      { charge: 0.05, price: `${text}:x2`, service_tier: 'priority' },
      { charge: 0.05, price: `${text}:x2`, service_tier: 'priority' },
      { charge: 0.025, price: text },
      { charge: 0.025, price: text },
    ]);
    expect(await quota('tiered')).toMatchObject({ spent: 0.1875 * nano, available: 99.8125 * nano });
  });

  it('charge a price per call once although its client left before any content, which Lambda never reports', async () => {
    const asked = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    upstream.script(async (call, reply) => {
      asked.resolve();
      await left.promise;
      await answered(call, reply);
    });
    const leaving = new AbortController();
    const gone = post('unheard', 'per-call', { stream: true }, leaving.signal).catch(() => 'gone');
    await asked.promise;
    leaving.abort();
    expect(await gone).toBe('gone');
    left.resolve();
    expect(await money.ledger('unheard', 1)).toMatchObject([
      { kind: 'settled', charge: 1, end: 'completed' },
    ]);
  });

  it('let a balance for 10 calls reach the upstream at most 10 times, whatever the number of parallel calls', async () => {
    upstream.script(answered);
    const answers = await Promise.all(Array.from({ length: 24 }, () => post('crowd', 'per-call')));
    const statuses = answers.map((answer) => answer.status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    expect(new Set(statuses)).toEqual(new Set([200, 429]));
    expect(upstream.requests).toHaveLength(10);
    await until(async () => openIn(await quota('crowd')) === 0);
    expect(await quota('crowd')).toMatchObject({ available: 0, spent: 10 * nano });
  });

  it('serve the first call of an account with only a plan, and count its calls', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 3; i += 1) statuses.push((await post('planned', 'per-call')).status);
    expect(statuses).toEqual([200, 200, 429]);
    expect(Object.values((await quota('planned'))?.['plan'] as object)).toEqual([2]);
  });

  it('answer 503 and call no upstream if the store is down before the reservation', async () => {
    await (await post('outage', 'metered')).text();
    upstream.forget();
    stack.store.failWith({ status: 500, body: { __type: 'com.amazon.coral.service#InternalServerError' } });
    const answer = await post('outage', 'metered');
    stack.store.failWith(undefined);
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).not.toBeNull();
    expect(await answer.json()).toMatchObject({ error: { type: 'internal_error', code: 'unavailable' } });
    expect(upstream.requests).toHaveLength(0);
  });
});
