import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listDays } from '../../../../shared/relay/account/account-usage.ts';
import type { AccountReader } from '../../../../shared/relay/ports/money-stores.ts';
import { AccountRig, nowMs } from './account-rig.ts';

const key = `sk-${'a'.repeat(48)}`;
let rig: AccountRig;
beforeAll(async () => {
  rig = await AccountRig.start();
  await rig.putKey(key, { account: 'acme' });
});
afterAll(() => rig.stop());

const put = (period: string, figures: Record<string, number>, id = 'account#acme'): Promise<void> =>
  rig.put('daily', { id, period, ...figures });
const secondsOf = (day: string): number => Date.parse(day) / 1000;

describe('the daily sums of an account', () => {
  it('cover its calls by day and model for the requested days', async () => {
    const used = { calls: 3, prompt_tokens: 40, completion_tokens: 8, cached_tokens: 16, charged: 0.25 };
    await put('day#2026-11-21#m', { ...used, bought: 0.1, bought_calls: 3 });
    await put('day#2026-11-20#a/b', { calls: 1 });
    await put('day#2026-11-20#(grants)', { grants: 1, granted: 50 });
    await put('day#2026-11-19#m', { calls: 9 });
    await put('hour#2026-11-21T11#m', { calls: 3 });
    await put('day#2026-11-21#m', { calls: 7 }, 'account#other');
    const { body } = await rig.get('/v1/account?days=2', key);
    const { charged: charge, ...counts } = used;
    const nothing = {
      failed_calls: 0,
      prompt_tokens: 0,
      completion_tokens: 0,
      cached_tokens: 0,
      charge: 0,
      searches: 0,
    };
    expect(body['days']).toEqual({
      from: secondsOf('2026-11-20'),
      data: [
        { day: secondsOf('2026-11-21'), model: 'm', ...counts, failed_calls: 0, charge, searches: 0 },
        { day: secondsOf('2026-11-20'), model: 'a/b', ...nothing, calls: 1 },
      ],
    });
  });

  it('end with a complete day when there are more sums than one answer holds', async () => {
    const sumsOf = (day: string) =>
      Array.from({ length: 300 }, (_, at) => ({
        key: { id: 'account#acme', period: `day#${day}#model-${at}` },
        figures: { counts: { calls: 1 }, amounts: {} },
      }));
    const all = ['2026-11-21', '2026-11-20', '2026-11-19', '2026-11-18'].flatMap(sumsOf);
    const reader: Pick<AccountReader, 'days'> = {
      days: async (_account, _from, limit) => all.slice(0, limit),
    };
    const { from, data } = await listDays(reader, { account: 'acme', days: 31, nowMs });
    expect(from).toBe(secondsOf('2026-11-19'));
    expect(data).toHaveLength(900);
  });

  it.each(['0', '32', '-1', '1.5', 'x', '', '007'])('are rejected with 400 for %s days', async (days) => {
    const { status, body } = await rig.get(`/v1/account?days=${days}`, key);
    expect([status, body.error['code'], body.error['param']]).toEqual([400, 'invalid_value', 'days']);
  });
});
