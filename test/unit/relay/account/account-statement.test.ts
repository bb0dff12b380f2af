import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { encodeEntry } from '../../../../shared/adapters/dynamodb/quotas/quota-items.ts';
import { buildMonthKey } from '../../../../shared/billing/daily-keys.ts';
import type { OpenEntry } from '../../../../shared/billing/quota-item.ts';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import { timeText } from '../../../../shared/wire/ids.ts';
import { AccountRig } from './account-rig.ts';

const key = `sk-${'s'.repeat(48)}`;
const entry: OpenEntry = {
  until: 1_800_000_000,
  amount: 1n,
  input: 0n,
  key: 'abc',
  model: 'm',
  price: '1:free',
  slot: '',
  official: false,
  tombstone: false,
};
const nano = (yuan: number) => ({ N: String(Math.round(yuan * 1e9)) });
let rig: AccountRig;

const month = (name: string, figures: Record<string, number>, account = 'acme'): Promise<void> =>
  rig.put('daily', { ...buildMonthKey(name, account), ...figures });
const day = (period: string, figures: Record<string, number>): Promise<void> =>
  rig.put('daily', { id: 'account#acme', period: `day#${period}`, ...figures });
const quota = (spent: number, open = {}, granted = 62, account = 'acme'): Promise<void> =>
  rig.putAttributes('quotas', {
    account: { S: account },
    available: nano(granted - spent),
    spent: nano(spent),
    granted: nano(granted),
    settled: { N: '1' },
    open: { M: open },
    plan: { M: {} },
    rate: { M: {} },
  });
const october = () => rig.get('/v1/account/statement?month=2026-10', key);

beforeAll(async () => {
  rig = await AccountRig.start();
  await rig.putKey(key, { account: 'acme' });
  const used = { prompt_tokens: 40, completion_tokens: 8, cached_tokens: 16 };
  await month('2026-09', { granted: 50, charged: 12.5 });
  await month('2026-10', { granted: 12, charged: 1.000000003 });
  await month('2026-11', { charged: 2 });
  await month('2026-10', { granted: 999, charged: 999 }, 'other');
  await day('2026-09-30#m', { calls: 5, charged: 12.5 });
  await day('2026-10-01#m', { calls: 2, failures: 1, ...used, charged: 0.5 });
  await day('2026-10-31#m', { calls: 1, ...used, charged: 0.25 });
  await day('2026-10-31#ünïcode/模型', { calls: 3, charged: 0.250000003 });
  await day('2026-10-07#(grants)', { grants: 1, granted: 12 });
  await day('2026-11-01#m', { calls: 4, charged: 2 });
  const grant = { account: 'acme', kind: 'grant', cost: 0 };
  await rig.put('ledger', {
    ...grant,
    id: 'grant#b',
    at: '2026-10-07T01:00:00Z',
    amount: 12,
    reason: 'card',
  });
  await rig.put('ledger', {
    ...grant,
    id: 'grant#a',
    at: '2026-09-02T01:00:00Z',
    amount: 50,
    reason: 'start',
  });
});
afterAll(() => rig.stop());
beforeEach(async () => {
  rig.settings = defaultSettings;
  await quota(15.500000003);
});

describe('the statement of a month', () => {
  it('runs from the opening to the closing balance, with top-ups, models and the seller of that month only', async () => {
    rig.settings = {
      ...defaultSettings,
      seller: { name: 'Example Ltd', address: '1 Example Road\nShanghai' },
    };
    const { body, headers } = await october();
    expect(headers['cache-control']).toBe('no-store');
    expect(body).toEqual({
      object: 'account.statement',
      currency: 'CNY',
      account: 'acme',
      prices: null,
      month: '2026-10',
      seller: { name: 'Example Ltd', address: '1 Example Road\nShanghai' },
      opening: 37.5,
      granted: 12,
      charged: 1.000000003,
      metered: 0,
      closing: 48.499999997,
      final: true,
      grants: [
        { id: 'grant#b', created: Date.parse('2026-10-07T01:00:00Z') / 1000, amount: 12, reason: 'card' },
      ],
      models: [
        {
          model: 'm',
          calls: 3,
          failed_calls: 1,
          prompt_tokens: 80,
          completion_tokens: 16,
          cached_tokens: 32,
          charge: 0.75,
          searches: 0,
        },
        {
          model: 'ünïcode/模型',
          calls: 3,
          failed_calls: 0,
          prompt_tokens: 0,
          completion_tokens: 0,
          cached_tokens: 0,
          charge: 0.250000003,
          searches: 0,
        },
      ],
    });
  });

  it('is provisional while the month or one of its calls runs, or while its sums differ from the account', async () => {
    expect((await rig.get('/v1/account/statement?month=2026-11', key)).body).toMatchObject({
      final: false,
      opening: 48.499999997,
      closing: 46.499999997,
      seller: null,
    });
    const id = (at: string) => `${timeText(Date.parse(at))}${'0'.repeat(16)}`;
    await quota(15.500000003, { [id('2026-11-02T00:00:00Z')]: encodeEntry(entry) });
    expect((await october()).body['final']).toBe(true);
    await quota(15.500000003, { [id('2026-10-31T23:59:59Z')]: encodeEntry(entry) });
    expect((await october()).body['final']).toBe(false);
    await quota(15.6);
    expect((await october()).body['final']).toBe(false);
  });

  it('is provisional if its entries do not add up to its totals', async () => {
    await rig.putKey('sk-odd', { account: 'odd' });
    const odd = async () => (await rig.get('/v1/account/statement?month=2026-10', 'sk-odd')).body['final'];
    await quota(1, {}, 0, 'odd');
    await month('2026-10', { charged: 1 }, 'odd');
    expect(await odd()).toBe(false);
    await rig.put('daily', { id: 'account#odd', period: 'day#2026-10-03#m', charged: 1 });
    expect(await odd()).toBe(true);
    await quota(1, {}, 5, 'odd');
    await month('2026-10', { charged: 1, granted: 5 }, 'odd');
    expect(await odd()).toBe(false);
    const grant = { account: 'odd', kind: 'grant', cost: 0, reason: '', at: '2026-10-07T01:00:00Z' };
    await rig.put('ledger', { ...grant, id: 'grant#o', amount: 5 });
    expect(await odd()).toBe(true);
    // Charges of a metered month are not paid from the balance, so only the month's sums include them.
    await month('2026-10', { charged: 1, granted: 5, metered: 0.5 }, 'odd');
    expect(await odd()).toBe(false);
  });

  it('is all zeros for an account without money, and lists no models if there are too many', async () => {
    await rig.putKey('sk-new', { account: 'new' });
    const empty = { opening: 0, closing: 0, grants: [], models: [], final: true };
    expect((await rig.get('/v1/account/statement?month=2026-10', 'sk-new')).body).toMatchObject(empty);
    const names = Array.from({ length: 1001 }, (_, at) => at);
    await rig.putKey('sk-many', { account: 'many' });
    await Promise.all(
      names.map((at) => rig.put('daily', { id: 'account#many', period: `day#2026-10-05#m${at}`, calls: 1 })),
    );
    const { body } = await rig.get('/v1/account/statement?month=2026-10', 'sk-many');
    expect(body['models']).toBeNull();
  });

  it.each(['', '2026-13', '2026-12', '2026', '2026-1', '2026-10-01', "2026-10' OR"])(
    'is rejected with 400 for the month %j',
    async (written) => {
      const { status, body } = await rig.get(`/v1/account/statement?month=${written}`, key);
      expect([status, body.error['code'], body.error['param']]).toEqual([400, 'invalid_value', 'month']);
    },
  );

  it('is rejected without a key', async () => {
    expect((await rig.get('/v1/account/statement?month=2026-10')).status).toBe(401);
  });
});
