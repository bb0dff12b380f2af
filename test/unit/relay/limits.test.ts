/** Budgets of keys and limits of accounts, as callers see them. */
import { describe, expect, it } from 'vitest';
import { AccountRow } from '../../../shared/config/rows/account-row.ts';
import { ask, BillingRig, free, small, smallNeed, yuan } from '../../support/billing-rig.ts';
import { demoKey, hello, keyRow, type RigOptions } from '../../support/core-rig.ts';

const budgeted = (amount: string, options: ConstructorParameters<typeof BillingRig>[0] = {}): BillingRig =>
  new BillingRig({ key: { budget: { amount, period: 'month' } }, ...options })
    .upstream({ steps: hello })
    .granted(100n * yuan);
const errorOf = ({ text }: { text: string }): { code: string; message: string } =>
  (JSON.parse(text) as { error: { code: string; message: string } }).error;
const held = (rig: BillingRig): bigint[] => [...rig.counters.budgets.values()].map(({ used }) => used);

describe('a key with a budget', () => {
  it('never reserves more than its budget in parallel, and refused calls learn that others hold it', async () => {
    const rig = budgeted('0.4');
    const answers = await Promise.all(Array.from({ length: 20 }, () => rig.call(small)));
    const refused = answers.filter(({ status }) => status === 429);
    expect([answers.length - refused.length, held(rig)]).toEqual([2, [2n * smallNeed]]);
    expect(new Set(refused.map((answer) => errorOf(answer).code))).toEqual(new Set(['balance_reserved']));
    expect(refused.every(({ headers }) => headers['retry-after'] === '1')).toBe(true);
  });

  it('lowers the output limit of the call to what is left, and reports it', async () => {
    const rig = budgeted('3');
    const { headers } = await rig.call(ask);
    expect(headers).toMatchObject({ 'x-relay-limited-by': 'budget', 'x-relay-max-tokens': '1024' });
    expect(rig.sent[0]?.json).toMatchObject({ max_tokens: 1024 });
  });

  it('rejects a call beyond its budget with the rest and the reset time, and reserves nothing', async () => {
    const rig = budgeted('0.1');
    const answer = await rig.call(small);
    expect([answer.status, answer.headers['x-should-retry'], errorOf(answer).code]).toEqual([
      429,
      'false',
      'insufficient_quota',
    ]);
    expect(errorOf(answer).message).toMatch(
      /^This API key may spend 0\.1 yuan a month, and 0\.1 yuan are left; .* needs at least 0\.178 yuan\. The budget resets at 2026-12-01T00:00:00Z \(midnight in UTC\)\.$/,
    );
    expect([rig.sent, rig.item?.available, held(rig).filter((used) => used !== 0n)]).toEqual([
      [],
      100n * yuan,
      [],
    ]);
  });

  it('resets its budget in the time zone of the relay', async () => {
    const rig = budgeted('0.1', { settings: { timeZone: 'Asia/Shanghai' } });
    expect(errorOf(await rig.call(small)).message).toContain('resets at 2026-11-30T16:00:00Z');
  });

  it('charges the day in which the call began, even if the key is found the next day', async () => {
    const rig = new BillingRig({
      key: { budget: { amount: '1', period: 'day' }, rpm: 5 },
      settings: { timeZone: 'UTC' },
      composed: (ports, handleOf) => {
        const find = async (key: string) => {
          await ports.clock.sleep(1000);
          return ports.keys.find(key);
        };
        return handleOf({ ...ports, keys: { find } });
      },
    });
    rig.upstream({ steps: hello }).granted(100n * yuan);
    await rig.clock.run(rig.clock.sleep(86_399_500));
    expect((await rig.call(small)).status).toBe(200);
    const [minute] = [...rig.counters.rates.keys()].map((name) => Number(name.split('#')[1]));
    expect([...rig.counters.budgets.keys()].join()).toMatch(/#2026-11-21$/);
    expect(new Date((minute ?? 0) * 60_000).toISOString()).toBe('2026-11-21T23:59:00.000Z');
  });

  it('reserves no budget for calls that are free or paid by a plan', async () => {
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
  ])('%s rejects calls beyond it until the minute is over', async (_name, limits, message) => {
    const rig = limited(limits);
    expect((await rig.call()).status).toBe(200);
    const refused = await rig.call();
    expect([refused.status, errorOf(refused).code]).toEqual([429, 'rate_limit_exceeded']);
    expect(errorOf(refused).message).toContain(message);
    await rig.clock.run(rig.clock.sleep(1000 * Number(refused.headers['retry-after'])));
    expect((await rig.call()).status).toBe(200);
  });

  it('of parallel calls admits that many over all its keys', async () => {
    const rig = limited({ concurrency: 2 });
    const answers = await Promise.all(Array.from({ length: 9 }, () => rig.call()));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(2);
    const refused = answers.find(({ status }) => status === 429);
    expect(errorOf(refused ?? { text: '{}' }).message).toContain('limited to 2 requests at the same time');
    expect((await rig.call()).status).toBe(200);
  });
});

describe('an account without its own limits', () => {
  const limits = { defaultOutputTokens: 16_384, requestSeconds: 600, stateDays: 30, countFree: true };
  const rigOf = (options: RigOptions, row?: object): BillingRig => {
    const account = row && AccountRow.parse({ account: 'acme', ...row });
    const keys = { [demoKey]: { row: keyRow({}), account } };
    return new BillingRig({ keys, ...options }).upstream({ steps: hello }).granted(100n * yuan);
  };
  const set = (more: object): RigOptions => ({ settings: { limits: { ...limits, ...more } } });
  const together = async (rig: BillingRig, count: number): Promise<string[]> => {
    const answers = await Promise.all(Array.from({ length: count }, () => rig.call()));
    return answers.filter(({ status }) => status === 429).map((answer) => errorOf(answer).message);
  };

  it.each([
    ['requests a minute', { accountRpm: 1 }, 'This account is limited to 1 requests a minute.'],
    ['tokens a minute', { accountTpm: 5 }, 'This account is limited to 5 tokens a minute.'],
  ])('is limited to the %s of the settings until the minute is over', async (_name, more, message) => {
    const rig = rigOf(set(more));
    expect((await rig.call()).status).toBe(200);
    const refused = await rig.call();
    expect(errorOf(refused).message).toContain(message);
    await rig.clock.run(rig.clock.sleep(1000 * Number(refused.headers['retry-after'])));
    expect((await rig.call()).status).toBe(200);
  });

  it.each([
    ['the number in the settings', set({ accountConcurrency: 3 }), 3],
    ['half of the deployed concurrency', { concurrencyGiven: 8 }, 4],
    ['one if the deployed concurrency is one', { concurrencyGiven: 1 }, 1],
    ['the setting before the half', { ...set({ accountConcurrency: 3 }), concurrencyGiven: 8 }, 3],
    ['any number if none was deployed', {}, 9],
  ])('may run this many calls at once: %s', async (_name, options, admitted) => {
    const refused = await together(rigOf(options), 9);
    expect(refused).toHaveLength(9 - admitted);
    for (const message of refused)
      expect(message).toContain(`This account is limited to ${admitted} requests at the same time.`);
  });

  it('can override them in its row, up or down', async () => {
    const options = { ...set({ accountConcurrency: 3, accountRpm: 4 }), concurrencyGiven: 8 };
    expect(await together(rigOf(options, { concurrency: 6, rpm: 20 }), 9)).toHaveLength(3);
    expect(await together(rigOf(options, { concurrency: 2 }), 9)).toHaveLength(7);
    expect(await together(rigOf(options, { concurrency: 9, rpm: 2 }), 9)).toHaveLength(7);
  });

  it('counts free calls among parallel calls, but not with count_free off', async () => {
    const counted = (countFree: boolean): RigOptions => ({
      ...set({ accountConcurrency: 2, countFree }),
      charges: [free],
    });
    expect(await together(rigOf(counted(true)), 9)).toHaveLength(7);
    expect(await together(rigOf(counted(false)), 9)).toHaveLength(0);
  });
});
