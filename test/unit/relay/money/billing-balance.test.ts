import { describe, expect, it } from 'vitest';
import { ask, BillingRig, yuan, type BillingOptions } from '../../../support/billing-rig.ts';
import { delta, done, finish, hello, usage, type Answer } from '../../../support/core-rig.ts';

const rigOf = (available: bigint, options: BillingOptions = {}): BillingRig =>
  new BillingRig(options).upstream({ steps: hello }).granted(available);
const errorOf = (answer: Answer) => JSON.parse(answer.text).error;
const milli = 1_000_000n;

describe('a balance that covers the input and a part of the output', () => {
  const limited = { 'x-relay-limited-by': 'balance', 'x-relay-max-tokens': '1239' };
  /** A call reserves half of it: 22 tokens of input and 1,239 of output. */
  const available = 5_000n * milli;

  it.each([
    ['a limit in max_tokens', { ...ask, max_tokens: 3000 }, {}, { max_tokens: 1239 }],
    [
      'a limit in max_completion_tokens',
      { ...ask, max_completion_tokens: 3000 },
      {},
      { max_completion_tokens: 1239 },
    ],
    ['no limit', ask, {}, { max_tokens: 1239 }],
    ['no limit, at OpenAI', ask, { endpoint: 'https://api.openai.com/v1' }, { max_completion_tokens: 1239 }],
    [
      'no limit, with a field named by the channel',
      ask,
      { max_tokens_field: 'max_completion_tokens' },
      { max_completion_tokens: 1239 },
    ],
  ])('lowers %s at the upstream and reports it', async (_case, body, channel, sent) => {
    const rig = rigOf(available, { channels: [channel] });
    const answer = await rig.call(body);
    expect(answer.status).toBe(200);
    expect(answer.headers).toMatchObject(limited);
    expect(rig.logged[0]).toMatchObject({ limited_by: 'balance', max_tokens: 1239, limit_reached: false });
    const limits = Object.entries(rig.sent[0]?.json ?? {}).filter(([name]) => name.startsWith('max_'));
    expect(Object.fromEntries(limits)).toEqual(sent);
  });

  it('logs when the lowered limit ends the answer', async () => {
    const rig = rigOf(available).upstream({ steps: [delta('Hel'), finish('length'), usage(7, 1239), done] });
    expect((await rig.call(ask)).text).toContain('"finish_reason":"length"');
    expect(rig.logged[0]).toMatchObject({ limited_by: 'balance', limit_reached: true });
    const whole = rigOf(1_000n * yuan);
    await whole.call(ask);
    expect(whole.logged[0]).not.toHaveProperty('limited_by');
  });

  it('is reserved by halves down to the shortest answer, then calls wait for running ones', async () => {
    const rig = rigOf(available).upstream({ steps: [5_000, ...hello] });
    const answers = await Promise.all([rig.call(ask), rig.call(ask), rig.call(ask)]);
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 429]);
    const refused = answers.find(({ status }) => status === 429) as Answer;
    expect(errorOf(refused)).toMatchObject({ type: 'rate_limit_error', code: 'balance_reserved' });
    expect(errorOf(refused).message).toContain('needs 2.07 yuan');
    expect(refused.headers).toMatchObject({ 'retry-after': '1' });
    expect(refused.headers['x-should-retry']).toBeUndefined();
    expect(rig.sent).toHaveLength(2);
    expect(rig.item).toMatchObject({ spent: 22n * milli, available: available - 22n * milli });
  });
});

describe('a balance below the shortest answer', () => {
  it('rejects the call with both amounts, the plan and the contact, and reserves nothing', async () => {
    const rig = rigOf(100n * milli, { settings: { contact: 'billing@relay.test' } });
    const answer = await rig.call();
    expect(answer.status).toBe(429);
    expect(answer.headers['x-should-retry']).toBe('false');
    expect(errorOf(answer)).toEqual({
      message:
        'The balance of 0.1 yuan does not cover this request, which needs at least 0.178 yuan. ' +
        'No plan covers this model. Contact: billing@relay.test',
      type: 'quota_exceeded_error',
      param: null,
      code: 'insufficient_quota',
    });
    expect(rig.sent).toEqual([]);
    expect(rig.open).toEqual([]);
    expect(rig.item?.available).toBe(100n * milli);
    expect(rig.logged[0]).toMatchObject({ reason: 'quota_insufficient', end: 'refused', status: 429 });
  });
});

describe('a plan', () => {
  const plan = [
    { id: 'a', name: 'Small talk', value: 1, models: ['m'] },
    { id: 'b', value: 1, models: ['m'] },
  ];

  it('pays in row order, then the balance pays, then the refusal names both', async () => {
    const rig = rigOf(180n * milli, { plan });
    const answers: Answer[] = [];
    for (let call = 0; call < 4; call += 1) answers.push(await rig.call());
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    expect(rig.logged.map(({ plan_slot, charge }) => [plan_slot, charge])).toEqual([
      ['a@2026-11-10', '0'],
      ['b@2026-11-10', '0'],
      [undefined, '0.011'],
      [undefined, undefined],
    ]);
    expect(errorOf(answers[3] as Answer).message).toBe(
      'The balance of 0.169 yuan does not cover this request, which needs at least 0.178 yuan. ' +
        'Plan entry "Small talk": 1 of 1 calls are used; it resets on 2026-12-10. ' +
        'Plan entry "b": 1 of 1 calls are used; it resets on 2026-12-10.',
    );
  });
});
