import { describe, expect, it } from 'vitest';
import { chatEndpoint } from '../../../../shared/endpoints/chat/chat-endpoint.ts';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import { readAttempts } from '../../../../shared/billing/attempts.ts';
import { findImbalance } from '../../../../shared/billing/quota-item.ts';
import { BillingRig, byCall, byTokens, free, small, stream, yuan } from '../../../support/billing-rig.ts';
import {
  data,
  delta,
  done,
  finish,
  hang,
  hello,
  reset,
  usage,
  type Step,
  demoKey,
  type UpstreamScript,
} from '../../../support/core-rig.ts';

const smallStream = { ...small, stream: true };
const usageOf = (counts: object): Step => data({ choices: [], usage: counts });

interface Expected {
  /** The cached input tokens of the close record. */
  cached?: number;
  /** Nano-yuan by tokens, and per call. */
  charge: [bigint, bigint];
  kind: 'settled' | 'released';
  end: 'completed' | 'failed' | 'client_gone';
  estimated?: boolean;
  /** A JSON answer that broke off never reached the client. */
  lostAsJson?: true;
}
const milli = 1_000_000n;
const call = 500_000_000n;
const nothing: Expected = { charge: [0n, 0n], kind: 'released', end: 'failed' };

/** Endings that docs/billing.md does not list; endings-doc.test.ts covers those that it does. */
const endings: [string, UpstreamScript, Expected][] = [
  ['is whole', { steps: hello }, { charge: [11n * milli, call], kind: 'settled', end: 'completed' }],
  [
    'includes cached and reasoning tokens in its totals',
    {
      steps: [
        delta('a'),
        finish(),
        usageOf({
          prompt_tokens: 7,
          completion_tokens: 5,
          total_tokens: 12,
          prompt_tokens_details: { cached_tokens: 6 },
          completion_tokens_details: { reasoning_tokens: 4 },
        }),
        done,
      ],
    },
    { charge: [17n * milli, call], kind: 'settled', end: 'completed', cached: 6 },
  ],
  [
    'counts reasoning in addition to its completion',
    {
      steps: [
        delta('a'),
        finish(),
        usageOf({
          prompt_tokens: 7,
          completion_tokens: 1,
          total_tokens: 12,
          completion_tokens_details: { reasoning_tokens: 4 },
        }),
        done,
      ],
    },
    { charge: [17n * milli, call], kind: 'settled', end: 'completed' },
  ],
  [
    'is cut without usage: input and streamed text',
    { steps: [delta('eight chars'), reset] },
    { charge: [9n * milli, call], kind: 'settled', end: 'failed', estimated: true, lostAsJson: true },
  ],
  [
    'runs out of time in the middle',
    { steps: [delta('a'), hang] },
    { charge: [7n * milli, call], kind: 'settled', end: 'failed', estimated: true, lostAsJson: true },
  ],
  [
    'breaks off with an error in its stream',
    { steps: [delta('a'), data({ error: { message: 'x' } })] },
    { charge: [7n * milli, call], kind: 'settled', end: 'failed', estimated: true, lostAsJson: true },
  ],
  ['never comes: refused connection', { connect: 'refused' }, nothing],
  ['never comes: silence', { connect: 'hang' }, nothing],
  ['is a rate limit', { status: 429, steps: ['{}'] }, nothing],
  ['is an error of the upstream', { status: 500, steps: ['oops'] }, nothing],
  ["is a refusal of the caller's request", { status: 400, steps: ['{"error":{"message":"no"}}'] }, nothing],
  ['is an unknown model at the upstream', { status: 404, steps: ['{"error":{"message":"no"}}'] }, nothing],
  ['is a rejected secret', { status: 401, steps: ['{"error":{"message":"no"}}'] }, nothing],
  ['is HTML', { steps: ['<html>hello</html>'] }, nothing],
  ['is empty', { steps: [] }, nothing],
  ['is an error in a 200', { steps: [data({ error: { message: 'x' } })] }, nothing],
  ['is silent until the time is up', { steps: [hang] }, nothing],
];

const asJson = endings.map(([name, script, expected]): (typeof endings)[number] => [
  name,
  script,
  expected.lostAsJson ? nothing : expected,
]);

describe.each([
  ['a stream', smallStream, endings],
  ['a JSON answer', small, asJson],
])('%s', (_mode, body, ofMode) => {
  it.each(ofMode)(
    'that %s is charged as documented, and no entry stays open',
    async (_case, script, expected) => {
      for (const [index, rule] of [byTokens, byCall].entries()) {
        const rig = new BillingRig({ charges: [rule] }).upstream(script).granted(yuan);
        await rig.call(body);
        const charge = expected.charge[index] ?? 0n;
        expect(rig.item).toMatchObject({ spent: charge, available: yuan - charge, settled: 1 });
        expect(rig.open).toEqual([]);
        expect(rig.item?.last).toMatchObject({
          kind: expected.kind,
          charge,
          end: expected.end,
          endpoint: 'chat',
        });
        expect(rig.item && findImbalance(rig.item)).toBeUndefined();
        expect(rig.events).toEqual([]);
      }
    },
  );

  const whole = ofMode.filter(([, , { kind }]) => kind === 'settled');
  it.each(whole)('that %s records whether its counts are estimated', async (_case, script, expected) => {
    const rig = new BillingRig().upstream(script).granted(yuan);
    await rig.call(body);
    expect(rig.item?.last?.estimated).toBe(expected.estimated ?? false);
    expect(rig.item?.last?.cached_tokens).toBe(expected.cached);
  });
});

describe('a client that hangs up', () => {
  const steps = [delta('a'), 10, delta('b'), 10, delta('c'), 10, finish(), usage(5, 3), done];

  it.each([1, 2, 3])('after %i chunks pays once for the whole answer', async (leaveAfter) => {
    const rig = new BillingRig().upstream({ steps }).granted(yuan);
    await rig.call(smallStream, { leaveAfter });
    expect(rig.stepsTaken).toBe(steps.length);
    expect(rig.item).toMatchObject({ spent: 11n * milli, settled: 1 });
    expect(rig.item?.last).toMatchObject({ kind: 'settled', end: 'client_gone', prompt_tokens: 5 });
    expect(rig.store.sent).toEqual(['reserve', 'close']);
  });
});

describe('the close record of a call', () => {
  it('names the last channel tried, the upstream’s model, the time to first content and the cost', async () => {
    const channels = [
      { id: 'down', priority: 1 },
      { id: 'up', mapper: { m: 'upstream-m' }, cost: { 'upstream-m': { input: 0.5, output: 1 } } },
    ];
    const rig = new BillingRig({ channels }).upstream({ steps: [500, reset] }, { steps: [250, ...hello] });
    await rig.granted(yuan).call(smallStream);
    expect(rig.item?.last).toMatchObject({
      channel: 'up',
      upstream_model: 'upstream-m',
      first_content_ms: 750,
      bought: 5_500_000n,
    });
  });
});

describe('the store writes of a call', () => {
  it('are omitted if it is free and free calls are not counted', async () => {
    const limits = { ...defaultSettings.limits, countFree: false };
    const rig = new BillingRig({ charges: [free], settings: { limits } }).upstream({ steps: hello });
    expect((await rig.call(stream)).status).toBe(200);
    expect(rig.store.sent).toEqual([]);
    expect(rig.item).toBeUndefined();
    expect(rig.freeAttempts).toMatchObject([
      { model: 'm', channel: 'main', end: 'completed', tried: expect.stringMatching(/^\[\["",/) as string },
    ]);
  });
});

describe('the attempts of a call', () => {
  const channels = [
    { id: 'main', priority: 2 },
    { id: 'backup', priority: 1 },
  ];
  const attemptsOf = (rig: BillingRig) =>
    readAttempts({ model: 'm', channel: rig.item?.last?.channel, tried: rig.item?.last?.tried, end: '' });

  it('are recorded with separate times', async () => {
    const rig = new BillingRig({ channels }).granted(yuan);
    rig.upstream({ steps: [4_000, reset] }, { steps: [250, ...hello] });
    await rig.call(smallStream);
    expect(attemptsOf(rig)).toMatchObject([
      { channel: 'main', outcome: 'reset', contentMs: undefined, endMs: 4_000 },
      { channel: 'backup', outcome: '', contentMs: 250, endMs: 250 },
    ]);
    expect(rig.item?.last).toMatchObject({ kind: 'settled', channel: 'backup', first_content_ms: 4_250 });
  });

  it('are recorded for a call that all channels failed, at no charge', async () => {
    const rig = new BillingRig({ channels }).granted(yuan).upstream({ status: 503 }, { status: 429 });
    await rig.call(smallStream);
    expect(attemptsOf(rig).map(({ channel, outcome }) => [channel, outcome])).toEqual([
      ['main', 'status_503'],
      ['backup', 'status_429'],
    ]);
    expect(rig.item?.last).toMatchObject({ kind: 'released', charge: 0n });
  });
});

describe('an unreachable store', () => {
  it('before the reservation answers 503 without a call to the upstream', async () => {
    const rig = new BillingRig().upstream({ steps: hello }).granted(yuan);
    rig.store.always('dropped', 'reserve', 'tombstone', 'close');
    const answer = await rig.call();
    expect(answer.status).toBe(503);
    expect(answer.headers['retry-after']).toBe('2');
    expect(JSON.parse(answer.text)).toMatchObject({ error: { type: 'internal_error', code: 'unavailable' } });
    expect(rig.sent).toEqual([]);
    expect(rig.item?.available).toBe(yuan);
  });
});

it('a call whose answer cannot begin releases its reservation and its Idempotency-Key', async () => {
  const read: typeof chatEndpoint.read = (...asked) => ({
    ...chatEndpoint.read(...asked),
    renderer: () => {
      throw new Error('no renderer');
    },
  });
  const rig = new BillingRig({ endpoint: { ...chatEndpoint, read } }).granted(yuan);
  const answer = await rig.call(small, {
    headers: { authorization: `Bearer ${demoKey}`, 'idempotency-key': 'k' },
  });
  expect(answer.status).toBe(500);
  expect(rig.item).toMatchObject({ available: yuan, spent: 0n, open: new Map() });
  expect(rig.sent).toEqual([]);
});
