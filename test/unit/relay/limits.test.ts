/** Budgets of keys and limits of accounts, as callers see them. */
import { describe, expect, it } from 'vitest';
import { AccountRow } from '../../../shared/config/rows/account-row.ts';
import { ask, BillingRig, byTokens, free, small, smallNeed, yuan } from '../../support/billing-rig.ts';
import { demoKey, hello, keyRow } from '../../support/core-rig.ts';

const budgeted = (amount: string, options: ConstructorParameters<typeof BillingRig>[0] = {}): BillingRig =>
  new BillingRig({ key: { budget: { amount, period: 'month' } }, ...options })
    .upstream({ steps: hello })
    .granted(100n * yuan);
const errorOf = ({ text }: { text: string }): { code: string; message: string } =>
  (JSON.parse(text) as { error: { code: string; message: string } }).error;
const held = (rig: BillingRig): bigint[] => [...rig.counters.budgets.values()].map(({ used }) => used);

describe('a key with a budget', () => {
  it('is never held beyond it by calls at once, which hear that others hold it', async () => {
    const rig = budgeted('0.4');
    const answers = await Promise.all(Array.from({ length: 20 }, () => rig.call(small)));
    const refused = answers.filter(({ status }) => status === 429);
    expect([answers.length - refused.length, held(rig)]).toEqual([2, [2n * smallNeed]]);
    expect(new Set(refused.map((answer) => errorOf(answer).code))).toEqual(new Set(['balance_reserved']));
    expect(refused.every(({ headers }) => headers['retry-after'] === '1')).toBe(true);
  });

  it('lowers the limit that goes up to what is left, and says so', async () => {
    const rig = budgeted('3');
    const { headers } = await rig.call(ask);
    expect(headers).toMatchObject({ 'x-relay-limited-by': 'budget', 'x-relay-max-tokens': '1024' });
    expect(rig.sent[0]?.json).toMatchObject({ max_tokens: 1024 });
  });

  it('is refused beyond it, with what is left and when it resets, and nothing is held', async () => {
    const rig = budgeted('0.1');
    const answer = await rig.call(small);
    expect([answer.status, answer.headers['x-should-retry'], errorOf(answer).code]).toEqual([
      429,
      'false',
      'insufficient_quota',
    ]);
    expect(errorOf(answer).message).toMatch(
      /^This API key may spend 0\.1 yuan a month, and 0\.1 yuan are left; .* needs at least 0\.178 yuan\. The budget resets at 2026-12-01T00:00:00Z\.$/,
    );
    expect([rig.sent, rig.item?.available, held(rig).filter((used) => used !== 0n)]).toEqual([
      [],
      100n * yuan,
      [],
    ]);
  });

  it('begins anew in the time zone of the relay', async () => {
    const rig = budgeted('0.1', { settings: { timeZone: 'Asia/Shanghai' } });
    expect(errorOf(await rig.call(small)).message).toContain('resets at 2026-11-30T16:00:00Z');
  });

  it('asks nothing of calls that are free or that a plan pays', async () => {
    const plan = [{ id: 'a', value: 5, models: ['m'] }];
    for (const options of [{ charges: [free] }, { plan }]) {
      const rig = budgeted('0', options);
      expect([(await rig.call(small)).status, held(rig)]).toEqual([200, []]);
    }
  });
});

describe('an account with a limit', () => {
  const limited = (limits: object): BillingRig => {
    const account = AccountRow.parse({ account: 'acme', ...limits });
    const rig = new BillingRig({ keys: { [demoKey]: { row: keyRow({}), account } } });
    return rig.upstream({ steps: hello }).granted(100n * yuan);
  };

  it.each([
    ['of requests a minute', { rpm: 1 }, 'This account is limited to 1 requests a minute.'],
    ['of tokens a minute', { tpm: 5 }, 'This account is limited to 5 tokens a minute.'],
  ])('%s is refused beyond it, until the minute is over', async (_name, limits, message) => {
    const rig = limited(limits);
    expect((await rig.call()).status).toBe(200);
    const refused = await rig.call();
    expect([refused.status, errorOf(refused).code]).toEqual([429, 'rate_limit_exceeded']);
    expect(errorOf(refused).message).toContain(message);
    await rig.clock.run(rig.clock.sleep(1000 * Number(refused.headers['retry-after'])));
    expect((await rig.call()).status).toBe(200);
  });

  it('of calls at once admits as many, whatever their keys', async () => {
    const rig = limited({ concurrency: 2 });
    const answers = await Promise.all(Array.from({ length: 9 }, () => rig.call()));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
    const refused = answers.find(({ status }) => status === 429);
    expect(errorOf(refused ?? { text: '{}' }).message).toContain('limited to 2 requests at the same time');
    expect((await rig.call()).status).toBe(200);
  });
});

describe('a rule with an input_factor', () => {
  it('holds so much more for the input, and charges what was used', async () => {
    const dense = { ...byTokens, input_factor: 2 };
    const call = async (amount: bigint) => {
      const rig = new BillingRig({ charges: [dense] }).upstream({ steps: hello }).granted(amount);
      return [(await rig.call(small)).status, rig.item?.spent];
    };
    // 22 tokens of input at 0.001 yuan are 44, and 78 of output at 0.002 as they were.
    expect(await call(smallNeed + 22_000_000n)).toEqual([200, 11_000_000n]);
    expect(await call(smallNeed + 21_999_999n)).toEqual([429, 0n]);
  });
});
