/**
 * POST /v1/messages/count_tokens: the upstream's count or the relay's estimate, the permissions, and the side effects.
 */
import { describe, expect, it } from 'vitest';
import { outcomeOf } from '../../../../shared/adapters/telemetry/log.ts';
import { createQuotaItem } from '../../../../shared/billing/quota-item.ts';
import { BillingRig, byTokens, free, yuan, type BillingOptions } from '../../../support/billing-rig.ts';
import {
  CoreRig,
  hang,
  keyRow,
  demoKey,
  type Answer,
  type UpstreamScript,
} from '../../../support/core-rig.ts';

const path = '/v1/messages/count_tokens';
const ask = { model: 'm', messages: [{ role: 'user', content: 'How many tokens are these words?' }] };
const claude = { type: 'anthropic', endpoint: 'https://claude.test/v1' };
const counted: UpstreamScript = { steps: [JSON.stringify({ input_tokens: 42 })] };
const refusal = (status: number, type: string): UpstreamScript => ({
  status,
  headers: { 'content-type': 'application/json' },
  steps: [JSON.stringify({ type: 'error', error: { type, message: 'messages.0: wrong' } })],
});

interface Asked extends BillingOptions {
  body?: object;
  balance?: bigint;
  upstreams?: UpstreamScript[];
  headers?: Record<string, string>;
}

const bearer = { authorization: `Bearer ${demoKey}` };

async function count({ body = ask, balance = yuan, upstreams = [counted], headers, ...options }: Asked = {}) {
  const rig = new BillingRig({ channels: [claude], ...options });
  if (balance !== 0n) rig.granted(balance);
  rig.upstream(...upstreams);
  const answer = await rig.post(body, { path, headers: { ...bearer, ...headers } });
  expect(rig.faults).toEqual([]);
  return { rig, answer };
}

const shown = ({ status, headers, text }: Answer): unknown[] => [
  status,
  headers['x-relay-estimated'],
  JSON.parse(text),
];
const problem = ({ status, text }: Answer): unknown[] => [status, JSON.parse(text).error?.type];
const estimate = { input_tokens: expect.any(Number) };

describe('an upstream that counts tokens', () => {
  it('receives the body of the call, without fields about the answer', async () => {
    const body = {
      ...ask,
      system: [{ type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } }],
      tools: [{ name: 'read', input_schema: { type: 'object' } }],
      tool_choice: { type: 'auto' },
      thinking: { type: 'enabled', budget_tokens: 60_000 },
    };
    const beside = { metadata: { user_id: 'u' }, future_field: { on: true } };
    const asked = { ...body, max_tokens: 64, stream: true, temperature: 1, ...beside };
    const headers = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'x-1' };
    const channels = [{ ...claude, mapper: { m: 'claude-opus-4-5' } }];
    const { rig, answer } = await count({ body: asked, channels, headers });
    expect(shown(answer)).toEqual([200, undefined, { input_tokens: 42 }]);
    expect(answer.headers).toMatchObject({
      'request-id': '01testrequest0000000000000',
      'x-request-id': '01testrequest0000000000000',
    });
    expect(rig.sent).toHaveLength(1);
    expect(rig.sent[0]).toMatchObject({ url: 'https://claude.test/v1/messages/count_tokens', headers });
    expect(rig.sent[0]?.json).toEqual({ ...body, model: 'claude-opus-4-5' });
  });

  it('causes no charge, and the count leaves one log line and nothing in the balance', async () => {
    const { rig } = await count();
    expect(rig.logged).toEqual([
      expect.objectContaining({
        endpoint: 'messages',
        status: 200,
        end: 'counted',
        channel: 'main',
        prompt_tokens: 42,
      }),
    ]);
    expect(rig.quotas.calls).toEqual(['read']);
    expect(rig.item).toMatchObject({ available: yuan, spent: 0n, settled: 0, open: new Map() });
  });

  it('receives no field that the row does not allow', async () => {
    const body = { ...ask, speed: 'fast', mcp_servers: [{ url: 'https://mcp.test' }] };
    const { rig } = await count({ body });
    expect(rig.sent[0]?.json).toEqual(ask);
  });

  it('is the candidate that would answer the conversation', async () => {
    const channels = ['a', 'b', 'c', 'd'].map((id) => ({
      id,
      type: 'anthropic',
      endpoint: `https://${id}.test/v1`,
    }));
    for (const session of ['one', 'two', 'three']) {
      const headers = { ...bearer, 'x-claude-code-session-id': session };
      const rig = new BillingRig({ channels }).granted(yuan).upstream(counted);
      await rig.post(ask, { path, headers });
      await rig.post({ ...ask, max_tokens: 5 }, { path: '/v1/messages', headers });
      const [first, second] = rig.sent.map(({ url }) => new URL(url).host);
      expect(first).toBe(second);
    }
  });

  it('has the text of its rejection shown', async () => {
    const { rig, answer } = await count({ upstreams: [refusal(400, 'invalid_request_error')] });
    expect(problem(answer)).toEqual([400, 'invalid_request_error']);
    expect(answer.text).toContain('messages.0: wrong');
    expect(rig.logged[0]).toMatchObject({ end: 'refused' });
  });
});

describe("the relay's token estimate, marked as such,", () => {
  it.each<[string, Asked, number, string]>([
    ['an upstream that speaks chat', { channels: [{}] }, 0, 'no_count'],
    ['a 404', { upstreams: [refusal(404, 'not_found_error')] }, 1, 'upstream_refused'],
    ['a 429', { upstreams: [refusal(429, 'rate_limit_error')] }, 1, 'upstream_status_429'],
    ['a 500', { upstreams: [{ status: 500 }] }, 1, 'upstream_status_500'],
    ['no connection', { upstreams: [{ connect: 'refused' }] }, 1, 'upstream_connect'],
    ['no answer in 3 s', { upstreams: [{ connect: 'hang' }] }, 1, 'upstream_timeout'],
    ['half an answer in 3 s', { upstreams: [{ steps: ['{"input', hang] }] }, 1, 'upstream_timeout'],
    ['an answer without a count', { upstreams: [{ steps: ['{"tokens": 3}'] }] }, 1, 'upstream_junk'],
    ['a secret that is not there', { secretError: new Error('gone') }, 0, 'upstream_secret_store'],
  ])('replaces the count for %s', async (_why, options, asked, reason) => {
    const secret = 'env:X';
    const channels = [
      { ...claude, id: 'a', secret },
      { ...claude, id: 'b', secret },
    ];
    const { rig, answer } = await count({ channels, ...options });
    expect(shown(answer)).toEqual([200, 'true', estimate]);
    expect(JSON.parse(answer.text).input_tokens).toBeGreaterThan(5);
    expect(answer.said[0]?.atMs).toBe(reason === 'upstream_timeout' ? 3_000 : 0);
    // One candidate is asked once, and gets no cooldown.
    expect(rig.sent).toHaveLength(asked);
    expect((await rig.health.entries()).size).toBe(0);
    expect(rig.logged).toEqual([expect.objectContaining({ end: 'counted', reason })]);
    expect(rig.logged.map(outcomeOf)).toEqual(['completed']);
  });

  it('is the same as the estimate that charges a call without a count', async () => {
    const { answer } = await count({ channels: [{}] });
    const rig = new BillingRig().granted(yuan).upstream({ steps: ['data: [DONE]\n\n'] });
    rig.upstream({
      steps: ['data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\n'],
    });
    await rig.post({ ...ask, max_tokens: 5 }, { path: '/v1/messages' });
    expect(rig.logged[0]?.prompt_tokens).toBe(JSON.parse(answer.text).input_tokens);
  });
});

describe('token counting', () => {
  const planned = { id: 'a', models: ['m'], value: 1 };
  it.each<[string, Asked, unknown[]]>([
    ['with money', {}, [200, undefined]],
    ['with the smallest balance', { balance: 1n }, [200, undefined]],
    ['without money and plan', { balance: 0n }, [402, 'billing_error']],
    ['in debt', { balance: -1n }, [402, 'billing_error']],
    ['without money, for a free model', { balance: 0n, charges: [free] }, [200, undefined]],
    ['without money, on a plan', { balance: 0n, plan: [planned] }, [200, undefined]],
    ['in debt, on a plan', { balance: -1n, plan: [planned] }, [200, undefined]],
    [
      'without money, on a plan for other models',
      { balance: 0n, plan: [{ ...planned, models: ['x'] }] },
      [402, 'billing_error'],
    ],
    ['for an unknown model', { body: { ...ask, model: 'x' } }, [404, 'not_found_error']],
    ['for a model outside the whitelist', { key: { models: ['x'] } }, [403, 'permission_error']],
    ['for official billing without leave', { body: { ...ask, official: true } }, [403, 'permission_error']],
    ['without messages', { body: { model: 'm' } }, [400, 'invalid_request_error']],
    ['with a wrong key', { headers: { authorization: 'Bearer sk-other' } }, [401, 'authentication_error']],
  ])('is requested by an account %s', async (_who, options, expected) => {
    const { rig, answer } = await count(options);
    expect(problem(answer)).toEqual(expected);
    expect(rig.sent).toHaveLength(answer.status === 200 ? 1 : 0);
    expect(rig.quotas.calls.filter((name) => name !== 'read')).toEqual([]);
  });

  it('is allowed for an account whose balance is reserved by running calls', async () => {
    const rig = new BillingRig({ channels: [claude] }).granted(yuan);
    const item = rig.item;
    if (!item) throw new Error('no item');
    const entry = { until: 9, amount: yuan, input: 0n, key: 'k', model: 'm', price: '', slot: '' };
    const open = new Map([['x', { ...entry, official: false, tombstone: false }]]);
    rig.quotas.items.set('acme', { ...item, available: 0n, open });
    expect((await rig.upstream(counted).post(ask, { path })).status).toBe(200);
  });

  it.each([
    [2n, 200],
    [1n, 402],
  ])('is decided by the total balance of an account in parts: -1 and %s', async (available, status) => {
    const rig = new BillingRig({ channels: [claude] });
    const part = { ...createQuotaItem('acme'), shardCount: 2, overdraft: true };
    rig.quotas.items.set('acme', { ...part, available: -1n });
    rig.quotas.items.set('acme#1', { ...part, shard: 1, available });
    expect((await rig.upstream(counted).post(ask, { path })).status).toBe(status);
  });

  it('is limited for a key to 60 a minute, or to the calls that it may make', async () => {
    const times = async (key: Record<string, unknown>, calls: number): Promise<number[]> => {
      const keys = { [demoKey]: { row: keyRow(key) } };
      const rig = new CoreRig({ channels: [claude], keys }).upstream(counted);
      const statuses = [];
      for (let i = 0; i < calls; i += 1) statuses.push((await rig.post(ask, { path })).status);
      return statuses;
    };
    expect((await times({}, 61)).filter((status) => status === 200)).toHaveLength(60);
    expect((await times({ rpm: 70 }, 71)).filter((status) => status === 200)).toHaveLength(70);
    expect(await times({ rpm: 1 }, 2)).toEqual([200, 429]);
  });

  it.each([
    ['a key', { key: { max_concurrency: 1 } }],
    ['an account', { concurrencyGiven: 2 }],
  ] as [string, BillingOptions][])(
    'is limited for %s to its number of concurrent calls',
    async (_who, options) => {
      const rig = new BillingRig({ channels: [claude], ...options }).granted(yuan);
      const slow = { steps: [100, ...(counted.steps ?? [])] };
      rig.upstream(slow);
      const both = [1, 2].map((n) => rig.respond(ask, { path, id: `01testrequest000000000000${n}` }));
      const [first, second] = await rig.clock.run(Promise.all(both));
      expect(new Set([first?.status, second?.status])).toEqual(new Set([200, 429]));
      expect((await rig.post(ask, { path })).status).toBe(200);
    },
  );

  it('rejects other methods', async () => {
    const { rig } = await count();
    const answer = await rig.post(undefined, { path, method: 'GET' });
    expect([...problem(answer), answer.headers['allow']]).toEqual([405, 'invalid_request_error', 'POST']);
  });
});

it('token counting for an alias uses the model that would answer', async () => {
  const channels = [{ ...claude, models: ['n'] }];
  const settings = { aliases: [{ name: 'm', models: ['n'], onContextLength: false }] };
  const { rig, answer } = await count({ channels, settings, charges: [{ ...byTokens, models: ['n'] }] });
  expect(shown(answer)).toEqual([200, undefined, { input_tokens: 42 }]);
  expect(rig.sent[0]?.json['model']).toBe('n');
  expect(rig.logged[0]).toMatchObject({ model: 'n', alias: 'm' });
});
