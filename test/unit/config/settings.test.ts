import { describe, expect, it } from 'vitest';
import { readSetting } from '../../../shared/config/setting-rows.ts';
import { readAlertedAccount, validateAccountRow } from '../../../shared/config/rows/alerted-account.ts';
import type { ConfigRows } from '../../../shared/config/rows/read-table.ts';
import { defaultSettings, listCurrentNotices } from '../../../shared/config/settings.ts';
import { channel, compile } from './rows.ts';

const read = (name: string, value: unknown) => readSetting({ name, value }, { local: false });
const hook = 'ssm:/relay/relay/payments/api.stripe.com/hook';
const stripe = { live: 'true', webhook_secret: hook, link_secret: [hook, 'ssm:/relay/relay/payments/new'] };
const rates = { usd: 7.1, jpy: '0.048', kwd: 23 };
const paid = (changes: object) => ({ stripe: { ...stripe, rates, ...changes } });
const webhook = 'https://hooks.example.com/relay';

it.each<[string, unknown, object]>([
  [
    'aliases',
    { fast: ['b', 'a'], smart: { models: ['c'] }, constructor: { models: ['c'], on_context_length: 'true' } },
    {
      aliases: [
        { name: 'fast', models: ['b', 'a'], onContextLength: false },
        { name: 'smart', models: ['c'], onContextLength: false },
        { name: 'constructor', models: ['c'], onContextLength: true },
      ],
    },
  ],
  ['alerts', {}, { alerts: { planDays: 7, keyDays: 7 } }],
  [
    'notices',
    [
      { text: ' Maintenance <b>', from: '2026-12-01', until: '2026-12-02T06:00:00Z', models: ['a'] },
      { text: 'x' },
    ],
    {
      notices: [
        {
          text: 'Maintenance <b>',
          fromMs: Date.UTC(2026, 11, 1),
          untilMs: Date.UTC(2026, 11, 2, 6),
          models: ['a'],
        },
        { text: 'x' },
      ],
    },
  ],
  [
    'payments',
    paid({}),
    {
      payments: {
        stripe: {
          live: true,
          webhookSecrets: [hook],
          linkSecrets: stripe.link_secret,
          rates: { usd: '7.1', jpy: '0.048', kwd: '23' },
          unsigned: 'park',
        },
      },
    },
  ],
  [
    'payments',
    paid({ checkout: { secret_key: hook, currency: 'usd' } }),
    {
      payments: {
        stripe: expect.objectContaining({
          checkout: {
            secretKey: hook,
            currency: 'usd',
            endpoint: 'https://api.stripe.com',
            autoTopUp: false,
            plans: [],
          },
        }) as object,
      },
    },
  ],
  ['top_up_bonus', [{ pay: '100', get: 110.5 }], { topUpBonus: [{ pay: 100, get: 110.5 }] }],
  ['top_up_url', ' https://shop.example/{account}?a=b ', { topUpUrl: 'https://shop.example/{account}?a=b' }],
  [
    'search',
    { type: 'tavily' },
    { search: { type: 'tavily', endpoint: 'https://api.tavily.com', results: 5 } },
  ],
  [
    'search',
    { type: 'tavily', price: '0.08', cost: 0.057, per_minute: 10 },
    {
      search: {
        type: 'tavily',
        endpoint: 'https://api.tavily.com',
        results: 5,
        price: 0.08,
        cost: 0.057,
        perMinute: 10,
      },
    },
  ],
])('the setting %s is read from %j', (name, value, row) => {
  expect(read(name, value)).toEqual({ row });
});

describe.each<[string, [unknown, RegExp][]]>([
  [
    'aliases',
    [
      [['a'], /^value: found \["a"\], expected a map from public names to lists of models/],
      [{ fast: 'a' }, /^value\.fast: found "a", expected a list of 1 to 8 model names/],
      [{ fast: [] }, /^value\.fast: found \[\], expected a list of 1 to 8/],
      [{ fast: 'abcdefghi'.split('') }, /^value\.fast: found .*, expected a list of 1 to 8/],
      [{ fast: ['a b'] }, /^value\.fast/],
      [{ fast: { models: ['a'], on_contxt_length: true } }, /^value\.fast/],
      [{ 'fa st': ['a'] }, /^value\.fa st: found this name, expected a model name/],
      [
        { 'web-fast': ['a'] },
        /^value\.web-fast: found this name, expected a name that does not start with web-/,
      ],
      [{ 'fast-official': ['a'] }, /^value\.fast-official: found this name, expected a name/],
      [{ fast: ['a', 'b', 'a'] }, /^value\.fast: found a twice, expected each model once/],
      [{ fast: ['a', 'smart'], smart: ['b'] }, /^value\.fast: found the alias smart, expected only models/],
      [{ fast: ['a', 'fast'] }, /^value\.fast: found the alias fast, expected only models/],
    ],
  ],
  [
    'top_up_url',
    [
      'http://a.example',
      'javascript:alert(1)',
      'https://{account}.example',
      'https://a:b@c.example',
      'https://a.example/{name}',
      '',
      5,
    ].map((value): [unknown, RegExp] => [value, /^value: found .*, expected /]),
  ],
  [
    'top_up_bonus',
    [
      [],
      [{ pay: 100, get: 100 }],
      [{ pay: 0, get: 1 }],
      [
        { pay: 100, get: 110 },
        { pay: 100, get: 120 },
      ],
      [
        { pay: 100, get: 110 },
        { pay: 200, get: 209 },
      ],
      [
        { pay: 200, get: 230 },
        { pay: 100, get: 110 },
      ],
      [{ pay: 1e-10, get: 1 }],
      [{ pay: 100, get: 2e9 }],
      [{ pay: 100, get: 110, bonus: 10 }],
      Array.from({ length: 21 }, (_, at) => ({ pay: at + 1, get: at + 2 })),
      { pay: 100, get: 110 },
    ].map((value): [unknown, RegExp] => [value, /^value/]),
  ],
  [
    'alerts',
    [
      [{ webhook }, /^value\.secret: missing/],
      [{ webhook: 'http://hooks.example.com', secret: hook }, /^value\.webhook: found http/],
      [{ webhook: 'https://10.0.0.1/', secret: hook }, /^value\.webhook: found 10\.0\.0\.1/],
      [{ secret: 'a-canary-secret' }, /^value\.secret: found a value that is not a reference(?!.*canary)/],
      [{ plan_days: 0 }, /^value\.plan_days: found 0/],
      [{ mail: 'me' }, /value\.mail: unknown attribute/],
    ],
  ],
  [
    'notices',
    [
      [{ text: 'x' }, /^value: found .*expected a list of at most 20 maps/],
      [Array.from({ length: 21 }, () => ({ text: 'x' })), /^value: found .*at most 20 maps/],
      [['x'], /^value\[0\]: found "x", expected a map \{text, from, until, models\}/],
      [[{ text: '' }], /^value\[0\]\.text: found an empty text, expected a text that is not empty/],
      [[{ text: 'x'.repeat(1_000_000) }], /^value\[0\]\.text: .{0,300}at most 500 characters$/],
      [[{ text: 'x', from: 'Monday' }], /^value\[0\]\.from: found "Monday", expected an ISO 8601 time/],
      [[{ text: 'x', from: '2026-12-02', until: '2026-12-02' }], /^value\[0\]\.until: .*later than from/],
      [[{ text: 'x', models: [] }], /^value\[0\]\.models: .*1 to 100 model names/],
    ],
  ],
  [
    'payments',
    [
      [paid({ live: 'yes' }), /^value\.stripe\.live: found "yes", expected true or false/],
      [paid({ webhook_secret: 'whsec_canary' }), /^value\.stripe\.webhook_secret: found a value(?!.*canary)/],
      [paid({ webhook_secret: [] }), /^value\.stripe\.webhook_secret: /],
      [paid({ link_secret: 'env:LINKS' }), /^value\.stripe\.link_secret: found an env: reference/],
      [paid({ link_secret: undefined }), /^value\.stripe\.link_secret: missing/],
      [paid({ rates: { usd: 0 } }), /^value\.stripe\.rates\.usd: found 0, expected yuan per unit/],
      [paid({ rates: { usd: 7.1234567 } }), /at most 6 decimals/],
      [paid({ rates: { USD: 7 } }), /^value\.stripe\.rates/],
      [paid({ rates: { ugx: 0.002 } }), /^value\.stripe\.rates\.ugx: found a rate, but Stripe/],
      [
        paid({ checkout: { secret_key: 'sk_live_canary', currency: 'usd' } }),
        /^value\.stripe\.checkout\.secret_key: found a value(?!.*canary)/,
      ],
      [
        paid({ checkout: { secret_key: hook, currency: 'eur' } }),
        /^value\.stripe\.checkout\.currency: found a currency without a rate/,
      ],
      [
        paid({ checkout: { secret_key: hook, currency: 'usd', endpoint: 'http://a.example' } }),
        /^value\.stripe\.checkout\.endpoint: found http/,
      ],
      [paid({ checkout: { currency: 'usd' } }), /^value\.stripe\.checkout\.secret_key: missing/],
      [paid({ unsigned: 'grant' }), /^value\.stripe\.unsigned: found "grant", expected "park" or "ignore"/],
    ],
  ],
  [
    'search',
    [
      [{ type: 'bing', endpoint: webhook }, /^value\.type: found "bing", expected "searxng" or "tavily"/],
      [{ type: 'searxng' }, /^value\.endpoint: missing/],
      [{ type: 'searxng', endpoint: 'http://search.example.com' }, /^value\.endpoint: found http/],
      [{ type: 'searxng', endpoint: 'http://127.0.0.1:8080' }, /^value\.endpoint: .*this machine itself/],
      [{ type: 'tavily', secret: 'tvly-canary' }, /^value\.secret: found a value(?!.*canary)/],
      [{ type: 'tavily', results: 11 }, /^value\.results: found 11, expected a whole number from 1 to 10/],
      [{ type: 'tavily', language: 'en' }, /^value\.language: /],
      [{ type: 'tavily', price: -1 }, /^value\.price: found -1/],
      [{ type: 'tavily', price: 1e-10 }, /^value\.price: found 1e-10, expected yuan per search/],
      [{ type: 'tavily', cost: 'cheap' }, /^value\.cost: found "cheap"/],
      [{ type: 'tavily', per_minute: 0 }, /^value\.per_minute: found 0/],
    ],
  ],
])('the setting %s', (name, cases) => {
  it.each(cases)('%j is rejected', (value, problem) => {
    expect(read(name, value)).toMatchObject({ problem: expect.stringMatching(problem) as unknown });
  });
});

it.each([{ __proto__: null }, ['limits'], 7])('a row named %j is invalid, but not a crash', (name) => {
  const settings = [{ name, value: 1 }];
  expect(compile({ settings }).results.filter(({ problem }) => problem !== undefined)).toHaveLength(1);
});

it('a notice is shown from its start to its end, and one without times always', () => {
  const notices = [{ text: 'dated', fromMs: 1000, untilMs: 2000 }, { text: 'always' }];
  const at = (nowMs: number) =>
    listCurrentNotices({ ...defaultSettings, notices }, nowMs).map(({ text }) => text);
  expect([999, 1000, 1999, 2000].map((nowMs) => at(nowMs).length)).toEqual([1, 2, 2, 1]);
});

describe('aliases', () => {
  const row = (value: unknown) => ({ name: 'aliases', value });
  const compiled = (value: unknown, rows: Partial<ConfigRows> = {}) =>
    compile({ channels: [channel()], settings: [row(value)], ...rows });
  const warningOf = (value: unknown, rows: Partial<ConfigRows> = {}, of = 'settings') =>
    compiled(value, rows).results.find(({ table }) => table === of)?.warning;

  it.each([
    ['on', {}],
    ['off', { state: false }],
  ])('never hide a model of a channel that is %s', (_case, more) => {
    const rows = { channels: [channel(more), channel({ id: 'second', models: ['o3'] })] };
    const value = { 'gpt-4o': ['o3'], fast: ['o3'] };
    expect(compiled(value, rows).snapshot.settings.aliases.map(({ name }) => name)).toEqual(['fast']);
    expect(warningOf(value, rows)).toBe('value.gpt-4o: ignored, because a channel has a model of this name');
  });

  it('raise warnings for models that are unserved or unavailable, and for empty aliases', () => {
    expect(warningOf({ fast: ['gpt-4o'] })).toBeUndefined();
    expect(warningOf({ fast: ['gpt-4o', 'o9'], none: ['o8', 'o9'] })).toBe(
      'value.fast: skips o9, which no enabled channel serves; ' +
        'value.none: not offered, because no enabled channel serves any of its models',
    );
    const settings = [row({ fast: ['gpt-4o'] }), { name: 'unpriced_models', value: 'refuse' }];
    expect(warningOf({}, { settings })).toContain('not offered');
  });

  it('may be named by a plan, but a charge that names one has a warning that it prices nothing', () => {
    const plans = [{ level: 1, items: [{ id: 'chat', value: 1, models: ['fast'] }] }];
    const charges = [{ id: 1, type: 'non-billing', models: ['fast'] }];
    const warning = (table: string) => warningOf({ fast: ['gpt-4o'] }, { plans, charges }, table);
    expect(warning('plans')).toBeUndefined();
    expect(warning('charges')).toContain('fast is an alias: set the price of its models');
  });
});

describe('a row of accounts', () => {
  const row = (more: object) => ({ account: 'acme', ...more });

  it('gives alerts exact amounts and addresses', () => {
    const contact = { email: 'ops@acme.example.com', webhook: 'https://acme.example.com/hook' };
    const plan = { level: 2, since: '2026-01-01', until: '2027-01-01' };
    expect(readAlertedAccount(row({ alert_below: '0.1', contact, plan }), { local: false })).toEqual({
      row: row({
        alertBelow: 100_000_000n,
        mayTopUp: true,
        planLevel: 2,
        planUntilMs: Date.UTC(2027, 0, 1),
        ...contact,
      }),
    });
  });

  it('a disabled account raises no low-balance alert, and its card is not charged', () => {
    const off = readAlertedAccount(row({ alert_below: '0.1', enabled: false }), { local: false });
    expect(off).toMatchObject({ row: { alertBelow: undefined, mayTopUp: false } });
  });

  it.each([
    [
      { alert_below: 0 },
      /^alert_below: found 0, expected an amount in yuan.*no alerts are sent for the account$/,
    ],
    [{ contact: 'me@example.com' }, /^contact: .*a map \{name, email, webhook\}/],
    [{ contact: { email: 'a@b.example.com\nBcc: c@d.example.com' } }, /^contact\.email: /],
    [{ contact: { email: 'a@example.com,b@example.com' } }, /^contact\.email: /],
    [{ contact: { webhook: 'https://192.168.0.1/' } }, /^contact\.webhook: found 192\.168\.0\.1/],
    [{ contact: { webhook: 'http://127.0.0.1:80' } }, /^contact\.webhook: .*this machine itself/],
    [
      { prices: [{ models: ['m'], factor: 0 }] },
      /^prices\[0\]\.factor: found 0, expected a factor of more than 0.*no limits, and pays the standard prices$/,
    ],
    [
      { rpm: 0, budgets: [{ by: 'end_user', amount: 1, period: 'day' }] },
      /^rpm: found 0.*no plan and no limits; its budgets still apply$/,
    ],
    [
      { budgets: [{ by: 'team', amount: 1, period: 'day' }] },
      /^budgets\[0\]\.by: found "team", expected "end_user", or "tag:" .*; it may spend nothing$/,
    ],
    [
      { budgets: ['day', 'day'].map((period) => ({ by: 'tag:team', name: 'a', amount: 1, period })) },
      /^budgets: .*expected one budget for a name and period/,
    ],
    [
      { budgets: [{ by: 'end_user', name: 'alice ', amount: 1, period: 'day' }] },
      /^budgets\[0\]\.name: .*without blanks around it/,
    ],
    [
      { budgets: ['a', 'b', 'c', 'd', 'e'].map((tag) => ({ by: `tag:${tag}`, amount: 1, period: 'day' })) },
      /^budgets: .*expected at most 4 pairs of by and period/,
    ],
    [{ concurrency: 0 }, /^concurrency: found 0.*the account has no plan and no limits$/],
    [{ enabled: 'maybe' }, /^enabled: found "maybe".*the keys of the account are rejected$/],
    [{ enabled: false, note: 4 }, /^note: .*the keys of the account are rejected$/],
  ])('%j has a problem that describes its effect', (more, problem) => {
    expect(validateAccountRow(row(more)).problem).toMatch(problem);
  });

  it('may name receivers on this machine on the local stack only', () => {
    const written = row({ contact: { webhook: 'http://127.0.0.1:8080/hook' } });
    expect(validateAccountRow(written, { local: true })).toEqual({});
  });
});
