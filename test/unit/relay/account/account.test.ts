import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mapInputParts } from '../../../../shared/wire/chat-response.ts';
import { encodeEntry } from '../../../../shared/adapters/dynamodb/quotas/quota-items.ts';
import type { OpenEntry } from '../../../../shared/billing/quota-item.ts';
import { defaultSettings } from '../../../../shared/config/settings.ts';
import { buildMonthKey } from '../../../../shared/billing/daily-keys.ts';
import { keyHash } from '../../../../shared/wire/ids.ts';
import { findTagBudget } from '../../../../shared/relay/money/call-costs.ts';
import { dayMs, utcDay } from '../../../../shared/wire/iso-time.ts';
import { AccountRig, nowMs } from './account-rig.ts';

const key = 'sk-acme-key';
const limitedKey = 'sk-limited-key';
const entry: OpenEntry = {
  until: 1_800_000_000,
  amount: 250_000_001n,
  input: 0n,
  key: 'abc',
  model: 'm',
  price: '1:free',
  slot: '',
  official: false,
  tombstone: false,
};

let rig: AccountRig;
beforeAll(async () => {
  rig = await AccountRig.start();
  await rig.putKey(key, { account: 'acme' });
  await rig.putKey(limitedKey, {
    account: 'acme',
    models: ['m'],
    expires_at: '2027-01-01',
    max_concurrency: 3,
    rpm: 60,
    budget: { amount: '2.5', period: 'month' },
  });
  await rig.putKey('sk-new-customer', { account: 'fresh' });
  await rig.putKey('sk-disabled', { account: 'acme', enabled: false });
  await rig.put('accounts', {
    account: 'acme',
    plan: { level: 1, since: '2026-10-05', until: '2027-01-05' },
  });
  await rig.putAttributes('quotas', {
    account: { S: 'acme' },
    // More digits than a JavaScript number can hold.
    available: { N: '20000000000000001' },
    spent: { N: '1500000000' },
    granted: { N: '20000001750000002' },
    settled: { N: '1' },
    open: { M: { one: encodeEntry(entry) } },
    plan: { M: { 'chat@2026-11-05': { N: '7' }, 'chat@2026-10-05': { N: '99' } } },
    rate: { M: {} },
  });
});
afterAll(async () => rig.stop());
beforeEach(() => {
  rig.settings = { ...defaultSettings, subscriptionEnabled: true };
  rig.plans = [
    {
      level: 1,
      price: 30,
      items: [
        { id: 'chat', name: 'Chat calls', icon: '', value: 1000, models: ['m'] },
        { id: 'vision', name: '', icon: '', value: -1, models: ['v'] },
      ],
    },
  ];
});

describe('GET /api/oauth/usage', () => {
  const counter = { key: keyHash(limitedKey).slice(0, 12), period: '2026-11', expires: 1_800_000_000 };

  it('shows the budget use of the calling key, sent in either header', async () => {
    await rig.useBudget(counter, 850_000_000n);
    const shown = {
      five_hour: null,
      seven_day: { utilization: 34, resets_at: '2026-12-01T00:00:00.000Z' },
    };
    expect(await rig.get('/api/oauth/usage', limitedKey)).toMatchObject({ status: 200, body: shown });
    const { body } = await rig.get('/api/oauth/usage', undefined, { headers: { 'x-api-key': limitedKey } });
    expect(body).toEqual(shown);
  });

  it('shows no limits for a key without a budget, and rejects a request without a key', async () => {
    await rig.putKey('sk-free-key', { account: 'acme' });
    const { body } = await rig.get('/api/oauth/usage', 'sk-free-key');
    expect(body).toEqual({ five_hour: null, seven_day: null });
    expect((await rig.get('/api/oauth/usage')).status).toBe(401);
  });
});

describe('GET /v1/account', () => {
  it('shows the balance, the plan use of the current month, and the calling key', async () => {
    const { status, headers, body } = await rig.get('/v1/account', limitedKey);
    expect(status).toBe(200);
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-request-id': 'request-1' });
    const resets = Date.parse('2026-12-05') / 1000;
    expect(body).toEqual({
      object: 'account',
      account: 'acme',
      errors: [],
      alert_below: null,
      search_price: null,
      currency: 'CNY',
      available: Number('20000000.000000001'),
      reserved: 0.250000001,
      spent: 1.5,
      granted: Number('20000001.750000002'),
      days_left: null,
      plan: {
        level: 1,
        until: Date.parse('2027-01-05') / 1000,
        items: [
          { id: 'chat', name: 'Chat calls', used: 7, value: 1000, resets_at: resets },
          { id: 'vision', name: 'vision', used: 0, value: -1, resets_at: resets },
        ],
      },
      plan_ended_at: null,
      key: {
        hint: 'sk-ab...yz',
        models: ['m'],
        manage: false,
        expires_at: Date.parse('2027-01-01') / 1000,
        limits: {
          max_concurrency: 3,
          rpm: 60,
          budget: { amount: 2.5, period: 'month', resets_at: Date.parse('2026-12-01') / 1000 },
        },
      },
      notices: [],
      prices: [],
      price_changes: [],
      budgets: [],
      days: null,
    });
  });

  it('shows its tag budgets: the use of each name and the reset time', async () => {
    const key = 'sk-budgeted';
    const budgets = [
      { by: 'tag:team', name: 'search', amount: '2.5', period: 'month' },
      { by: 'end_user', amount: 1, period: 'day' },
    ];
    await rig.putKey(key, { account: 'budgeted' });
    await rig.put('accounts', { account: 'budgeted', budgets });
    const search = { by: 'tag:team', name: 'search', amount: 2.5, period: 'month' } as const;
    await rig.useBudget(findTagBudget('budgeted', search, 'UTC', nowMs).counter, 300_000_000n);
    expect((await rig.get('/v1/account', key)).body['budgets']).toEqual([
      { ...search, used: 0.3, resets_at: Date.parse('2026-12-01') / 1000 },
      {
        by: 'end_user',
        name: '*',
        amount: 1,
        period: 'day',
        used: null,
        resets_at: Date.parse('2026-11-22') / 1000,
      },
    ]);
  });

  it('estimates how many days the balance lasts from its monthly sums, after one full day of use', async () => {
    for (const [daysAgo, isKnown] of [
      [2, true],
      [1, false],
      [0, false],
    ] as const) {
      const first_day = utcDay(nowMs - daysAgo * dayMs);
      await rig.put('daily', { ...buildMonthKey('2026-11', 'acme'), charged: 1.5, first_day });
      const { body } = await rig.get('/v1/account', limitedKey);
      const days = (nowMs - Date.parse(first_day)) / dayMs;
      if (isKnown) expect(body['days_left']).toBeCloseTo((20_000_000 / 1.5) * days, 0);
      else expect(body['days_left']).toBeNull();
    }
  });

  it('shows current notices and later price changes', async () => {
    const from = Date.parse('2026-12-01');
    const price = { type: 'token-billing' as const, input: 1, output: 2, anonymous: false };
    rig.models = ['m', 'v'];
    rig.charges = [
      { id: 1, ...price, models: ['m', 'v'] },
      {
        id: 2,
        ...price,
        input: 3,
        cached_input: 0.3,
        service_tiers: { flex: 0.5 },
        models: ['m', 'unserved'],
        from,
      },
      // A rule with a lower id applies at that time.
      { id: 3, ...price, input: 9, models: ['m'], from },
    ];
    rig.settings = {
      ...rig.settings,
      notices: [
        { text: '<b>', untilMs: from },
        { text: 'later', fromMs: from },
      ],
    };
    const { body } = await rig.get('/v1/account', key);
    expect(body['notices']).toEqual([{ text: '<b>', from: null, until: from / 1000, models: null }]);
    expect(body['price_changes']).toEqual([
      {
        from: from / 1000,
        models: ['m'],
        type: 'token-billing',
        input: 3,
        output: 2,
        ...mapInputParts('price', () => null),
        cached_input: 0.3,
        tiers: [],
        service_tiers: { flex: 0.5 },
      },
    ]);
  });

  it('shows only the prices of this customer, current and announced, with their factor', async () => {
    const from = Date.parse('2026-12-01');
    const price = { type: 'token-billing' as const, input: 0.1, output: 0.7, anonymous: false };
    const tiers = [{ above: 9, input: 0.3, output: 1 }];
    rig.models = ['m', 'n', 'v', 'calls', 'unpriced'];
    rig.charges = [
      { id: 1, ...price, cached_input: 0.01, tiers, service_tiers: { flex: 0.5 }, models: ['m', 'n', 'v'] },
      { id: 2, ...price, type: 'times-billing', input: 0, output: 0.05, models: ['calls'] },
      { id: 3, ...price, input: 0.2, models: ['m', 'v'], from },
    ];
    const prices = [
      { models: ['v'], input: 0.4, output: 0.5 },
      { models: ['*'], factor: 0.3 },
    ];
    await rig.put('accounts', { account: 'special', prices });
    await rig.putKey('sk-special', { account: 'special' });
    const none = { ...mapInputParts('price', () => null), tiers: [], service_tiers: null };
    const third = { input: 0.03, output: 0.21, cached_input: 0.003, service_tiers: { flex: 0.5 } };
    const { body } = await rig.get('/v1/account', 'sk-special');
    const noWindow = { window: null, until: null };
    Object.assign(none, noWindow);
    const above = { above: 9, input: 0.09, output: 0.3, ...mapInputParts('price', () => null) };
    const byToken = { ...none, type: 'token-billing', ...third, tiers: [above] };
    expect(body['prices']).toEqual([
      { models: ['m'], ...byToken, until: from / 1000 },
      { models: ['n'], ...byToken },
      { models: ['v'], ...none, type: 'token-billing', input: 0.4, output: 0.5 },
      { models: ['calls'], ...none, type: 'times-billing', input: 0, output: 0.015 },
    ]);
    // The price of `v` is the customer's own, so the new rule changes nothing.
    expect(body['price_changes']).toMatchObject([
      { from: from / 1000, models: ['m'], input: 0.06, output: 0.21 },
    ]);
    expect((await rig.get('/v1/account/statement?month=2026-11', 'sk-special')).body['prices']).toEqual(
      body['prices'],
    );
    expect((await rig.get('/v1/account', key)).body).toMatchObject({
      prices: [],
      price_changes: [{ models: ['m', 'v'], input: 0.2, output: 0.7 }],
    });
  });

  it('shows prices by the hour with the customer’s factor until they change', async () => {
    const hours = { name: 'peak', from: '19:00', to: '21:00', zone: 'Asia/Shanghai', factor: 2 };
    const price = { type: 'token-billing' as const, input: 0.1, output: 0.7, anonymous: false };
    rig.models = ['m', 'n'];
    rig.charges = [
      { id: 1, ...price, models: ['m'], windows: [hours] },
      { id: 2, ...price, models: ['n'], windows: [{ ...hours, from: '18:00', to: '20:00' }] },
      // The new rule replaces it before the window opens again.
      { id: 3, ...price, models: ['n'], from: Date.parse('2026-11-22T08:00Z') },
    ];
    await rig.put('accounts', { account: 'hourly', prices: [{ models: ['n'], factor: 0.5 }] });
    await rig.putKey('sk-hourly', { account: 'hourly' });
    // It is 20:00 in Shanghai.
    expect((await rig.get('/v1/account', 'sk-hourly')).body['prices']).toMatchObject([
      {
        models: ['m'],
        input: 0.2,
        output: 1.4,
        window: 'peak',
        until: Date.parse('2026-11-21T13:00Z') / 1000,
      },
      {
        models: ['n'],
        input: 0.05,
        output: 0.35,
        window: null,
        until: Date.parse('2026-11-22T08:00Z') / 1000,
      },
    ]);
  });

  it('announces each later start or end of a customer’s price entries once', async () => {
    const price = { type: 'token-billing' as const, input: 0.1, output: 0.7, anonymous: false };
    const [monday, friday] = [Date.parse('2026-11-30'), Date.parse('2026-12-04')];
    const priceGroups = {
      gold: [
        { models: ['m'], factor: 2, from: monday, until: friday },
        // It begins when the price of the rule does, and the entry above stays before it.
        { models: ['m'], factor: 9, from: monday },
        { models: ['m', 'unpriced'], factor: 0.5, until: monday },
      ],
    };
    rig.models = ['m', 'n', 'unpriced'];
    rig.settings = { ...rig.settings, priceGroups };
    rig.charges = [
      { id: 1, ...price, models: ['m', 'n'] },
      { id: 2, ...price, input: 0.2, models: ['m'], from: monday },
    ];
    await rig.put('accounts', { account: 'golden', price_group: 'gold' });
    await rig.putKey('sk-golden', { account: 'golden' });
    const { body } = await rig.get('/v1/account', 'sk-golden');
    expect(body['prices']).toMatchObject([
      { models: ['m'], input: 0.05, output: 0.35, until: monday / 1000 },
    ]);
    expect(body['price_changes']).toMatchObject([
      { from: monday / 1000, models: ['m'], input: 0.4, output: 1.4 },
      { from: friday / 1000, models: ['m'], input: 1.8, output: 6.3 },
    ]);
    expect((await rig.get('/v1/account', key)).body['price_changes']).toMatchObject([
      { from: monday / 1000, models: ['m'], input: 0.2 },
    ]);
  });

  it('announces a rule’s price for the hour in which the rule begins', async () => {
    const price = { id: 1, type: 'token-billing' as const, models: ['m'], anonymous: false };
    const hours = { name: 'peak', from: '09:00', to: '12:00', zone: 'Asia/Shanghai', factor: 2 };
    const from = Date.parse('2026-12-01T01:00Z');
    rig.models = ['m'];
    rig.charges = [{ ...price, input: 0.1, output: 0.7, windows: [hours], from }];
    expect((await rig.get('/v1/account', key)).body['price_changes']).toMatchObject([
      { from: from / 1000, models: ['m'], input: 0.2, output: 1.4 },
    ]);
  });

  it.each([
    [{ alert_below: '12.5' }, 12.5],
    [{ alert_below: 5 }, 5],
    [{}, null],
    // An invalid value disables only this alert.
    [{ alert_below: 'little' }, null],
    [{ alert_below: 5, metered: true }, null],
  ])('shows the balance below which the operator is alerted: %j', async (row, level) => {
    await rig.put('accounts', { account: 'alerted', ...row });
    const secret = `sk-alerted-${JSON.stringify(row).length}-${level}`;
    await rig.putKey(secret, { account: 'alerted' });
    expect((await rig.get('/v1/account', secret)).body['alert_below']).toBe(level);
  });

  it('shows when the account’s plan ended, until the account row no longer has it', async () => {
    const ended = { level: 1, since: '2026-01-05', until: '2026-11-05T08:00:00Z' };
    await rig.put('accounts', { account: 'lapsed', plan: ended });
    await rig.putKey('sk-lapsed', { account: 'lapsed' });
    const { body } = await rig.get('/v1/account', 'sk-lapsed');
    expect(body).toMatchObject({ plan: null, plan_ended_at: Date.parse(ended.until) / 1000 });
    rig.settings = defaultSettings;
    expect((await rig.get('/v1/account', 'sk-lapsed')).body).toMatchObject({ plan_ended_at: null });
  });
});

describe('authentication of account requests', () => {
  it.each([
    ['no key', undefined, 'No API key was sent', 'key_missing'],
    ['a malformed key', 'pk-1', 'does not contain an API key', 'key_malformed'],
    ['an unknown key', 'sk-unknown', 'The API key is not valid', 'key_unknown'],
    ['a disabled key', 'sk-disabled', 'The API key is not valid', 'key_disabled'],
  ])(
    'rejects %s with the 401 of chat completions and logs the reason',
    async (_case, secretKey, message, reason) => {
      for (const path of ['/v1/account', '/v1/account/usage?limit=0']) {
        const { status, headers, body } = await rig.get(path, secretKey);
        expect(status).toBe(401);
        expect(headers['cache-control']).toBe('no-store');
        expect(body.error).toMatchObject({ code: 'invalid_api_key', type: 'authentication_error' });
        expect(body.error['message']).toContain(message);
        expect(rig.logged.at(-1)).toMatchObject({ status: 401, reason, end: 'refused' });
      }
    },
  );
});
