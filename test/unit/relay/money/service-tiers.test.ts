/** Requests, reservations, charges and answers of calls in service tiers. The amounts are by hand, from docs/billing.md. */
import { describe, expect, it } from 'vitest';
import { aliasRig, best, channelOf, charges as aliasCharges } from '../../../support/alias-rig.ts';
import {
  BillingRig,
  byTokens,
  small,
  smallNeed,
  yuan,
  type BillingOptions,
} from '../../../support/billing-rig.ts';
import { data, demoKey, done, finish, frames, hello, type Step } from '../../../support/core-rig.ts';

type Json = Record<string, unknown>;

const priced = { ...byTokens, service_tiers: { flex: 0.5, priority: 2 } };
const milli = 1_000_000n;
/** `hello` has 7 tokens of input and 2 of output. */
const helloCost = 11n * milli;

/** An answer in chunks that name the tier, if any. */
const served = (tier: string | undefined): Step[] => [
  data({ choices: [{ index: 0, delta: { content: 'Hello' } }], service_tier: tier }),
  finish(),
  data({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 2 }, service_tier: tier }),
  done,
];

async function called(
  asked: string | undefined,
  reported: string | undefined,
  { body = {}, ...options }: BillingOptions & { body?: object } = {},
) {
  const rig = new BillingRig({ charges: [priced], ...options }).granted(yuan);
  rig.upstream({ steps: served(reported) });
  const answer = await rig.call({ ...small, ...(asked && { service_tier: asked }), ...body });
  return { rig, answer, last: rig.item?.last, sent: rig.sent[0]?.json, line: rig.logged[0] };
}

describe('a call that requests a service tier', () => {
  it.each<[string | undefined, bigint]>([
    [undefined, smallNeed],
    ['flex', smallNeed],
    ['priority', 2n * smallNeed],
    ['fast', 2n * smallNeed],
    ['default', smallNeed],
    ['ultrafast', smallNeed],
  ])('%s reserves the higher price of that tier and the standard one', async (asked, held) => {
    const rig = new BillingRig({ charges: [priced] }).granted(yuan).upstream({ steps: hello });
    rig.store.always('dropped', 'close');
    await rig.call({ ...small, service_tier: asked });
    expect(rig.open.map(({ amount }) => amount)).toEqual([held]);
  });

  it('is sent with the tier if its rule has a factor for it, else without, and the relay names it', async () => {
    for (const asked of ['flex', 'priority', 'fast']) {
      const { sent, answer } = await called(asked, undefined);
      expect([asked, sent?.['service_tier'], answer.headers['x-relay-dropped']]).toEqual([
        asked,
        asked,
        undefined,
      ]);
    }
    for (const asked of ['ultrafast', 'batch', 'Priority', 'constructor', '__proto__']) {
      const { sent, answer, last } = await called(asked, undefined);
      expect([asked, sent, answer.headers['x-relay-dropped']]).toEqual([
        asked,
        expect.not.objectContaining({ service_tier: asked }),
        'service_tier',
      ]);
      expect(last).toMatchObject({ charge: helloCost });
    }
  });

  it.each<[string, string | undefined, string | undefined, bigint, string | undefined, string]>([
    ['as it was served', 'flex', 'flex', 5_500_000n, 'flex', 'flex'],
    ['as it was served, at twice the price', 'priority', 'priority', 22n * milli, 'priority', 'priority'],
    ['by the requested tier if none is reported', 'priority', undefined, 22n * milli, 'priority', 'priority'],
    ['by the standard price if flex had no room', 'flex', 'default', helloCost, undefined, 'default'],
    ['by the standard price if priority had no room', 'priority', 'default', helloCost, undefined, 'default'],
    ['by the price of the tier’s other name', 'fast', 'priority', 22n * milli, 'priority', 'priority'],
    ['by the standard price in a tier without one', 'flex', 'ultrafast', helloCost, undefined, 'ultrafast'],
    [
      'by the standard price for an unknown word',
      'flex',
      'our-best-tier',
      helloCost,
      undefined,
      'our-best-tier',
    ],
    [
      'by the standard price for a name of object properties',
      'flex',
      'constructor',
      helloCost,
      undefined,
      'constructor',
    ],
    [
      'by the requested tier if the report leaves it open',
      'priority',
      'auto',
      22n * milli,
      'priority',
      'priority',
    ],
    ['by no tier above the requested one', 'flex', 'priority', helloCost, undefined, 'default'],
  ])('is charged %s', async (_how, asked, reported, charge, tier, told) => {
    const { rig, answer, last } = await called(asked, reported);
    expect(rig.item?.spent).toBe(charge);
    expect([last?.charge, last?.service_tier]).toEqual([charge, tier]);
    expect(JSON.parse(answer.text)).toMatchObject({ service_tier: told });
    expect(rig.events).toEqual([]);
  });

  it('has the requested factor in its open entry and the charged factor in its ledger row', async () => {
    const open = new BillingRig({ charges: [priced] }).granted(yuan).upstream({ steps: hello });
    open.store.always('dropped', 'close');
    await open.call({ ...small, service_tier: 'priority' });
    // 5 tokens of input are charged if nobody closes it.
    expect(open.open).toMatchObject([{ price: '1:tokens:1:2:x2', input: 10n * milli }]);
    expect((await called('priority', 'default')).last?.price).toBe('1:tokens:1:2');
    expect((await called('flex', 'flex')).last?.price).toBeUndefined();
    expect((await called(undefined, 'flex')).last?.price).toBe('1:tokens:1:2:x0.5');
  });

  it('is never charged a tier above the requested one, and the log names the reported tier', async () => {
    const { rig, line, answer, last } = await called(undefined, 'priority', { body: { stream: true } });
    expect([rig.item?.spent, last?.service_tier]).toEqual([helloCost, undefined]);
    expect(line).toMatchObject({ reported_tier: 'priority', charge: '0.011' });
    expect(line?.service_tier).toBeUndefined();
    expect(answer.text).not.toContain('service_tier');
  });

  it('shows the charged tier on the last chunk and in the log', async () => {
    const { answer, line } = await called('priority', 'default', { body: { stream: true } });
    const tiers = frames(answer.text).map((chunk) => (chunk as Json)['service_tier']);
    expect(tiers).toEqual([undefined, 'default', undefined]);
    expect([line?.service_tier, line?.reported_tier]).toEqual([undefined, undefined]);
    const fast = await called('fast', 'fast', {
      body: { stream: true, stream_options: { include_usage: true } },
    });
    expect(frames(fast.answer.text).map((chunk) => (chunk as Json)['service_tier'])).toEqual([
      undefined,
      'fast',
      'fast',
      undefined,
    ]);
    expect(fast.line).toMatchObject({ service_tier: 'fast', charge: '0.022' });
  });

  it('above the standard price is not covered by a plan', async () => {
    const paid = async (asked: string): Promise<unknown[]> => {
      const options = { plan: [{ id: 'a', value: 5, models: ['m'] }] };
      const { rig } = await called(asked, asked, options);
      return [rig.item?.spent, [...(rig.item?.plan.values() ?? [])]];
    };
    expect(await paid('flex')).toEqual([0n, [1]]);
    expect(await paid('priority')).toEqual([22n * milli, []]);
    expect(await paid('ultrafast')).toEqual([0n, [1]]);
  });

  it('in official mode shows the cost of its tier', async () => {
    const options = { key: { official: true }, body: { official: true } };
    const { answer, last } = await called('priority', 'priority', options);
    expect(JSON.parse(answer.text)).toMatchObject({ quota: 0.022 });
    expect(last).toMatchObject({ charge: 0n, cost: 22n * milli, price: undefined });
  });

  it('that breaks off is charged by the requested tier, or by the reported one if known', async () => {
    const cut = async (...steps: Step[]): Promise<bigint | undefined> => {
      const rig = new BillingRig({ charges: [priced] }).granted(yuan).upstream({ steps });
      await rig.call({ ...small, service_tier: 'priority', stream: true });
      return rig.item?.spent;
    };
    const [begin, , counts] = served(undefined);
    const [named] = served('default');
    expect(await cut(begin!, counts!)).toBe(22n * milli);
    expect(await cut(named!, counts!)).toBe(helloCost);
  });

  it('costs the operator the tier that the vendor reports, whatever the customer pays', async () => {
    const cost = {
      '*': { input: 0.5, output: 1, per_call: 0.001, service_tiers: { flex: 0.5, priority: 1.8 } },
    };
    const bought = async (asked: string | undefined, reported: string): Promise<bigint | undefined> =>
      (await called(asked, reported, { channels: [{ cost }] })).last?.bought;
    expect(await bought('flex', 'flex')).toBe(3_750_000n);
    expect(await bought(undefined, 'priority')).toBe(10_900_000n);
    expect(await bought('flex', 'default')).toBe(6_500_000n);
  });

  it('gets less output if the balance covers less at the tier’s price', async () => {
    const limitOf = async (asked: string): Promise<unknown> => {
      const rig = new BillingRig({ charges: [priced] }).granted(10n * yuan).upstream({ steps: hello });
      await rig.call({ model: 'm', messages: small.messages, max_tokens: 8_000, service_tier: asked });
      return rig.sent[0]?.json['max_tokens'];
    };
    // 5 yuan of 10 are held: 0.002 and 0.004 yuan a token, after 22 of input.
    expect([await limitOf('flex'), await limitOf('priority')]).toEqual([2_489, 1_239]);
  });

  it('is charged the standard price for a tier that its row allows or sets', async () => {
    const allowed = await called('ultrafast', 'ultrafast', {
      channels: [{ params: { allow: ['service_tier'] } }],
    });
    expect(allowed.sent).toMatchObject({ service_tier: 'ultrafast' });
    expect(allowed.last).toMatchObject({ charge: helloCost });
    expect(allowed.last?.service_tier).toBeUndefined();
    const left = await called('priority', undefined, { channels: [{ params: { drop: ['service_tier'] } }] });
    expect(left.answer.headers['x-relay-dropped']).toBe('service_tier');
    expect(left.last).toMatchObject({ charge: helloCost });
    const set = await called('priority', undefined, {
      channels: [{ params: { set: { service_tier: 'flex' } } }],
    });
    expect(set.sent).toMatchObject({ service_tier: 'flex' });
    expect(set.last).toMatchObject({ charge: helloCost });
  });
});

describe('models that may answer a call in a service tier', () => {
  const [cheap, large] = aliasCharges;
  const rules = [
    { ...cheap, service_tiers: { flex: 0.5 } },
    { ...large, service_tiers: { priority: 3 } },
  ];
  const ask = { ...small, model: 'best' };

  it.each<[string, bigint]>([
    ['flex', 1_780n],
    ['priority', 5_340n],
  ])('reserve the highest cost among them in %s', async (tier, held) => {
    const rig = aliasRig({ charges: rules })
      .granted(10n * yuan)
      .upstream({ steps: hello });
    rig.store.always('dropped', 'close');
    await rig.call({ ...ask, service_tier: tier });
    expect(rig.open.map(({ amount }) => amount)).toEqual([held * milli]);
  });

  it('get the tier only if their own rule has a factor for it', async () => {
    const rig = aliasRig({ charges: rules, aliases: best('small', 'large') }).granted(10n * yuan);
    rig.upstream({ status: 500 }, { steps: served(undefined) });
    const answer = await rig.call({ ...ask, service_tier: 'priority' });
    expect(rig.sent.map(({ json }) => json['service_tier'])).toEqual([undefined, 'priority']);
    expect(answer.headers).not.toHaveProperty('x-relay-dropped');
    // 7 x 0.01 + 2 x 0.02, three times.
    expect(rig.item?.spent).toBe(330n * milli);
    const other = aliasRig({ charges: rules }).granted(10n * yuan);
    other.upstream({ steps: served('priority') });
    const dropped = await other.call({ ...ask, service_tier: 'priority' });
    expect([dropped.headers['x-relay-dropped'], other.item?.spent]).toEqual(['service_tier', helloCost]);
  });

  it('go into cooldown for no other call when the vendor has no room in the tier', async () => {
    const channels = [channelOf('m', { id: 'first', priority: 1 }), channelOf('m', { id: 'second' })];
    const hosts = async (tier: string | undefined): Promise<(string | undefined)[]> => {
      const rig = new BillingRig({ charges: [priced], channels }).granted(yuan);
      rig.upstream({ status: 429, headers: { 'retry-after': '600' } }, { steps: hello });
      await rig.call({ ...small, service_tier: tier });
      await rig.call(small);
      return rig.logged.map(({ channel }) => channel);
    };
    expect(await hosts('flex')).toEqual(['second', 'first']);
    expect(await hosts(undefined)).toEqual(['second', 'second']);
  });
});

describe('a service tier of a Responses upstream', () => {
  const event = (type: string, more: Json): Step => `event: ${type}\n${data({ type, ...more })}`;
  const answerIn = (begun: string, ended: string): Step[] => [
    event('response.created', { response: { id: 'resp_1', status: 'in_progress', service_tier: begun } }),
    event('response.output_item.added', { output_index: 0, item: { type: 'message', id: 'msg_1' } }),
    event('response.output_text.delta', { output_index: 0, content_index: 0, delta: 'Hello' }),
    event('response.completed', {
      response: { status: 'completed', service_tier: ended, usage: { input_tokens: 7, output_tokens: 2 } },
    }),
  ];

  it.each<[string, string, string, bigint, string]>([
    ['priority', 'auto', 'default', helloCost, 'default'],
    ['priority', 'auto', 'priority', 22n * milli, 'priority'],
    ['flex', 'flex', 'auto', 5_500_000n, 'flex'],
    ['flex', 'auto', 'priority', helloCost, 'default'],
  ])(
    '%s, begun in %s and ended in %s, is charged as it is reported',
    async (asked, begun, ended, spent, told) => {
      const endpoints: [string, Json][] = [
        ['/v1/chat/completions', { ...small }],
        ['/v1/responses', { model: 'm', input: 'hi', max_output_tokens: 78 }],
      ];
      for (const [path, body] of endpoints) {
        const rig = new BillingRig({ charges: [priced], channels: [{ dialect: 'responses' }] }).granted(yuan);
        rig.upstream({ steps: answerIn(begun, ended) });
        const answer = await rig.call({ ...body, service_tier: asked }, { path });
        expect(rig.sent[0]?.json).toMatchObject({ service_tier: asked });
        expect([rig.item?.spent, (JSON.parse(answer.text) as Json)['service_tier']]).toEqual([spent, told]);
      }
    },
  );
});

describe('fast mode of a Messages upstream', () => {
  const claude = {
    type: 'anthropic',
    secret: 'claude',
    endpoint: 'https://claude.test/v1',
    mapper: { m: 'claude-opus-5' },
  };
  const fast = { ...byTokens, service_tiers: { fast: 6 } };
  const event = (type: string, more: Json): Step => `event: ${type}\n${data({ type, ...more })}`;
  const answerIn = (speed: object): Step[] => [
    event('message_start', {
      message: { usage: { input_tokens: 7, output_tokens: 1, service_tier: 'standard', ...speed } },
    }),
    event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hello' } }),
    event('content_block_stop', { index: 0 }),
    event('message_delta', { delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
    event('message_stop', {}),
  ];
  const beta = 'fast-mode-2026-02-01';
  const endpoints: [string, Json, Json][] = [
    ['/v1/messages', { ...small, speed: 'fast' }, { 'anthropic-beta': beta }],
    ['/v1/chat/completions', { ...small, service_tier: 'fast' }, {}],
    ['/v1/chat/completions', { ...small, service_tier: 'priority' }, {}],
    ['/v1/responses', { model: 'm', input: 'hi', max_output_tokens: 78, service_tier: 'fast' }, {}],
  ];

  it.each(endpoints)('is requested by %s and charged if it was used', async (path, body, headers) => {
    const ask = async (speed: object) => {
      const rig = new BillingRig({ charges: [fast], channels: [claude] }).granted(10n * yuan);
      rig.upstream({ steps: answerIn(speed) });
      const answer = await rig.call(body, {
        path,
        headers: { authorization: `Bearer ${demoKey}`, ...headers },
      });
      expect(rig.sent[0]?.json).toMatchObject({ speed: 'fast' });
      expect(rig.sent[0]?.json).not.toHaveProperty('service_tier');
      expect(rig.sent[0]?.headers['anthropic-beta']?.split(',')).toContain(beta);
      expect(answer.headers).not.toHaveProperty('x-relay-dropped');
      return { spent: rig.item?.spent, said: JSON.parse(answer.text) as Json };
    };
    const used = await ask({ speed: 'fast' });
    const usual = await ask({ speed: 'standard' });
    expect([used.spent, usual.spent]).toEqual([66n * milli, helloCost]);
    // A vendor reports capacity that the operator bought under the tier's other name.
    const capacity = { service_tier: 'priority' };
    const [fastThere, usualThere] = [
      await ask({ speed: 'fast', ...capacity }),
      await ask({ speed: 'standard', ...capacity }),
    ];
    expect([fastThere.spent, usualThere.spent]).toEqual([66n * milli, helloCost]);
    const told = ({ usage: counts, service_tier: tier }: Json): unknown =>
      path === '/v1/messages' ? [(counts as Json)['speed'], (counts as Json)['service_tier']] : tier;
    const [inFast, inStandard] =
      path === '/v1/messages'
        ? [
            ['fast', 'standard'],
            [undefined, 'standard'],
          ]
        : ['fast', 'default'];
    expect([told(used.said), told(usual.said)]).toEqual([inFast, inStandard]);
  });

  it('of a Messages client becomes a service tier at other upstreams, and is dropped without a price', async () => {
    const chat = new BillingRig({ charges: [fast] }).granted(10n * yuan).upstream({ steps: served('fast') });
    await chat.call({ ...small, speed: 'fast' }, { path: '/v1/messages' });
    expect(chat.sent[0]?.json).toMatchObject({ service_tier: 'fast' });
    expect(chat.item?.spent).toBe(66n * milli);
    const unpriced = new BillingRig().granted(yuan).upstream({ steps: hello });
    const answer = await unpriced.call({ ...small, speed: 'fast' }, { path: '/v1/messages' });
    expect(unpriced.sent[0]?.json).not.toHaveProperty('service_tier');
    expect([answer.headers['x-relay-dropped'], unpriced.item?.spent]).toEqual(['speed', helloCost]);
  });

  it('is not sold to a chat client through the field of another endpoint', async () => {
    const rig = new BillingRig({ charges: [fast] }).granted(10n * yuan).upstream({ steps: hello });
    const answer = await rig.call({ ...small, speed: 'fast' });
    expect(rig.sent[0]?.json).not.toHaveProperty('speed');
    expect(answer.headers['x-relay-dropped']).toBe('speed');
    for (const speed of ['fast', 'priority']) {
      const both = new BillingRig({ charges: [fast] }).granted(10n * yuan).upstream({ steps: hello });
      const said = await both.call({ ...small, service_tier: speed, speed });
      expect(both.sent[0]?.json).toMatchObject({ service_tier: speed });
      expect(both.sent[0]?.json).not.toHaveProperty('speed');
      expect(said.headers['x-relay-dropped']).toBe('speed');
    }
    const { last, sent } = await called('priority', 'priority', { body: { speed: 'slow' } });
    expect(sent).toMatchObject({ service_tier: 'priority' });
    expect(last).toMatchObject({ charge: 22n * milli, service_tier: 'priority' });
  });

  it('sends no second tier without a price, except one that the row allows', async () => {
    const ask = async (allow: string[], tier: string) => {
      const rig = new BillingRig({ charges: [fast], channels: [{ ...claude, params: { allow } }] });
      rig.granted(10n * yuan).upstream({ steps: answerIn({ speed: 'fast' }) });
      const body = { ...small, speed: 'fast', service_tier: tier };
      const answer = await rig.call(body, { path: '/v1/messages' });
      const { speed, service_tier } = rig.sent[0]?.json ?? {};
      return [speed, service_tier, answer.headers['x-relay-dropped'], rig.item?.spent];
    };
    for (const tier of ['ultrafast', 'priority', 'auto', 'fast'])
      expect(await ask([], tier)).toEqual(['fast', undefined, 'service_tier', 66n * milli]);
    expect(await ask(['service_tier'], 'auto')).toEqual(['fast', 'auto', undefined, 66n * milli]);
  });

  it('is not sent if the row allows another field, and is kept from the event that reported it', async () => {
    const ask = async (allow: string[], steps: Step[]) => {
      const rig = new BillingRig({
        channels: [{ ...claude, params: { allow } }],
        charges: allow.length > 0 ? [byTokens] : [fast],
      });
      rig.granted(10n * yuan).upstream({ steps });
      const answer = await rig.call({ ...small, service_tier: 'fast' });
      return [rig.sent[0]?.json['speed'], answer.headers['x-relay-dropped'], rig.item?.spent];
    };
    expect(await ask(['service_tier'], answerIn({}))).toEqual([undefined, 'service_tier', helloCost]);
    const [begin, ...rest] = answerIn({ speed: 'fast' });
    const end = event('message_delta', { delta: {}, usage: { output_tokens: 2, service_tier: 'standard' } });
    expect(await ask([], [begin!, ...rest.slice(0, -1), end, rest.at(-1)!])).toEqual([
      'fast',
      undefined,
      66n * milli,
    ]);
  });
});
