import { describe, expect, it } from 'vitest';
import { validateAccountRow } from '../../../shared/config/rows/alerted-account.ts';
import { KeyRow, validateKeyRow } from '../../../shared/config/rows/key-row.ts';
import { AccountRow, isAccountOff } from '../../../shared/config/rows/account-row.ts';
import { PlanRow } from '../../../shared/config/rows/plan-row.ts';
import { readChannel } from '../../../shared/config/rows/channel-row.ts';
import { readRow } from '../../../shared/config/rows/read-row.ts';
import { channel, compile } from './rows.ts';

const read = (attributes: Record<string, unknown>) => readChannel(channel(attributes), { local: false });
const hash = 'a'.repeat(64);
const key = (attributes: Record<string, unknown>) =>
  readRow(KeyRow, { hash, account: 'acme', ...attributes });
const problemThat = (text: string | RegExp) => ({ problem: expect.stringMatching(text) as string });

describe('reading attributes as consoles write them', () => {
  it.each([
    ['a number as text', { priority: ' -3 ' }, { priority: -3 }],
    [
      'a fraction and powers of ten as text',
      { weight: '1e-3', priority: '5e3' },
      { weight: 0.001, priority: 5_000 },
    ],
    ['a flag as text', { state: 'False' }, { state: false }],
    ['a string set, which is sorted', { models: new Set(['b', 'a']) }, { models: ['a', 'b'] }],
    ['a list, which keeps its order', { models: ['b', 'a'] }, { models: ['b', 'a'] }],
    ['blanks around a model name', { models: [' gpt-4o\n'] }, { models: ['gpt-4o'] }],
    ['slashes at the end', { endpoint: 'https://a.example/v1//' }, { endpoint: 'https://a.example/v1' }],
    ['a list of secrets', { secret: ['ssm:/relay/relay/a'] }, { secret: ['ssm:/relay/relay/a'] }],
  ])('%s', (_case, attributes, expected) => {
    expect(read(attributes)).toMatchObject({ row: expected });
  });

  it('NULL counts as absent, both for an attribute and for a member of a map', () => {
    const nothing = { priority: null, region: null, cost: null, mapper: { 'gpt-4o': null } };
    const empty = read({ params: {}, mapper: {} });
    expect(read({ ...nothing, params: { stream: null, drop: null } })).toEqual(empty);
    expect(key({ models: null, budget: null })).toEqual(key({}));
    // Null is a value in fields that are copied into requests.
    const set = { reasoning: null, deep: { none: null } };
    expect(read({ params: { set } })).toMatchObject({ row: { params: { set } } });
  });

  it('NULL as a boolean is invalid and counts as off, because its author may have meant that', () => {
    const off = { account: 'acme', enabled: null };
    const found = 'found null, expected true or false; until';
    expect(validateKeyRow({ hash, ...off })).toEqual({
      problem: `enabled: ${found} it is fixed, the key is rejected`,
    });
    expect(isAccountOff(off)).toBe(true);
    expect(validateAccountRow(off)).toEqual({
      problem: `enabled: ${found} it is fixed, the keys of the account are rejected`,
    });
    expect(read({ state: null })).toEqual({
      problem: `state: ${found} state is valid, the channel is disabled`,
      off: true,
    });
  });

  it('a metered account is read, and an unreadable value leaves the account prepaid', () => {
    expect(readRow(AccountRow, { account: 'acme', metered: 'true' })).toEqual({
      row: { account: 'acme', metered: true },
    });
    expect(validateAccountRow({ account: 'acme', metered: 'yes' })).toMatchObject({
      problem: expect.stringContaining('metered: found "yes", expected true or false') as string,
    });
    expect(readRow(AccountRow, { account: 'acme', metered: 'yes' })).not.toHaveProperty('row');
  });

  it('a note is ignored: attributes that start with _ are dropped', () => {
    expect(read({ _problem: 'old', _note: { by: 'ann' }, _: 1 })).toEqual(read({}));
    expect(read({})).toHaveProperty('row');
  });
});

const amount = 'expected a number of 0 or more, with a decimal point, such as 0.018';
const cost = (entry: unknown) => ({ cost: { a: entry } });
const both = { input: 1, output: 2 };
const tier = { above: 5, ...both };

describe('an invalid attribute of a channel is named, with the found and the expected value', () => {
  it.each<[Record<string, unknown>, string]>([
    [{ priority: 1.5 }, 'priority: found 1.5, expected a whole number'],
    [{ priority: '9'.repeat(19) }, 'priority: found "9999999999999999999", expected a whole number'],
    [{ weight: -1 }, `weight: found -1, ${amount}`],
    [{ weight: new Uint8Array(2) }, 'weight: found binary data, expected a number'],
    [{ models: null }, 'models: missing, expected a list'],
    [{ models: [null] }, 'models[0]: found null, expected a model name'],
    [{ models: 'gpt-4o' }, 'models: found "gpt-4o", expected a list (or a string set) of model names'],
    [{ models: ['ok', 'not ok'] }, 'models[1]: found "not ok", expected a model name: 1 to 128'],
    [{ models: new Set(['gpt-*']) }, 'models[0]: found "gpt-*", expected a model name'],
    [{ models: ['m'.repeat(129)] }, 'models[0]: found a text that looks like a secret (not shown), expected'],
    [{ mapper: { 'a b': 'x' } }, 'mapper.a b: found this name, expected a model name'],
    [{ mapper: { a: 5 } }, 'mapper.a: found 5, expected a text'],
    [{ type: 'azzure' }, 'type: found "azzure", expected "openai"'],
    [{ id: ' main' }, 'id: found " main", expected a text on one line, without spaces'],
    [
      { idle_seconds: 0 },
      'idle_seconds: found 0, expected a number of seconds, more than 0 and at most 1800',
    ],
    [{ params: new Set([1]) }, 'params: found a set, expected a map {set'],
    [
      { params: { max_output_tokens: 0 } },
      'params.max_output_tokens: found a number, expected a whole number',
    ],
    [{ params: { set: { stop: new Set([1]) } } }, 'params.set.stop: found a set, expected a value that JSON'],
    [{ params: { sets: {} } }, 'params.sets: unknown attribute (did you mean set?'],
    [{ secrets: 'x' }, 'secrets: unknown attribute (did you mean secret?'],
    [{ colour: 'x' }, 'colour: unknown attribute (misspelled?'],
    [{ model: 'x', wieght: 1 }, 'model, wieght: unknown attribute (did you mean models, weight?'],
    [{ secret: [] }, 'secret: found an empty list, expected a reference or no attribute'],
    [{ max_tokens_field: 'tokens' }, 'found "tokens", expected "max_tokens" or "max_completion_tokens"'],
    [cost({ input: 1 }), 'cost.a.output: missing, expected an output cost'],
    [cost({ output: 1 }), 'cost.a.input: missing, expected an input cost'],
    [cost({ per_call: 1, cached_input: 1 }), 'expected prices of both input and output'],
    [cost({ input: 1, output: -2 }), `cost.a.output: found -2, ${amount}`],
    [cost({ ...both, currency: 'USD' }), 'cost.a.rate: missing, expected yuan per unit'],
    [cost({ ...both, rate: 7 }), 'cost.a.rate: found 7, expected yuan per unit of the currency, together'],
    [cost({ ...both, currency: '$', rate: 7 }), 'cost.a.currency: found "$", expected a currency code'],
    [cost({ ...both, curency: 'USD' }), 'cost.a.curency: unknown attribute (did you mean currency?'],
    [cost({ ...both, tiers: [tier, tier] }), 'expected tiers in ascending order of above'],
    [{ cost: { ' a': both } }, "expected the upstream's name of a model, or *"],
    [{ cost: 0.5 }, "cost: found 0.5, expected a map of the upstream's model name, or *, to its prices"],
  ])('%j', (attributes, problem) => {
    expect(read(attributes)).toMatchObject({ problem: expect.stringContaining(problem) as string });
  });

  it('all of them are listed at once, up to eight, and each once', () => {
    expect(read({ priority: 'x', weight: 'y', models: 5 })).toMatchObject(
      problemThat(/^models: .*; priority: .*; weight: /),
    );
    const many = read({ models: Array.from({ length: 20 }, () => '?') });
    expect(many).toMatchObject(problemThat(/models\[7\].*; and 12 more$/));
    expect(readChannel(null, { local: false })).toMatchObject(problemThat('found null'));
  });

  it("an unreadable state also rules out an earlier version of the row; other invalid attributes don't", () => {
    expect(read({ state: 'on', priority: 'x' })).toHaveProperty('off', true);
    expect(read({ priority: 'x' })).not.toHaveProperty('off');
  });
});

it.each<[Record<string, unknown>, string]>([
  [{ models: [] }, 'models: empty'],
  [{ id: 'x'.repeat(201) }, 'id: has over 200 characters'],
  [{ endpoint: 'https://api.example.com' }, 'endpoint: has no path'],
  [{ mapper: { other: 'x' } }, 'mapper: maps other, which is not in models'],
  [{ models: ['web-x', 'y-official'] }, 'models: web-x is unreachable'],
  [
    { mapper: { 'gpt-4o': 'x' }, cost: { 'gpt-4o': { per_call: 1 }, x: both, '*': { per_call: 1 } } },
    'cost: has gpt-4o, which is not a model name of the upstream',
  ],
])('a suspicious channel is used and carries a warning: %j', (attributes, warning) => {
  expect(read(attributes)).toMatchObject({ row: {}, warning: expect.stringContaining(warning) as string });
});

describe('times', () => {
  it.each([
    ['2026-12-31', Date.UTC(2026, 11, 31)],
    ['2026-12-31T10:00Z', Date.UTC(2026, 11, 31, 10)],
    ['2026-12-31T10:00:30.5+08:00', Date.UTC(2026, 11, 31, 2, 0, 30, 500)],
    ['2028-02-29', Date.UTC(2028, 1, 29)],
  ])('%s is accepted', (written, expected) => {
    expect(key({ expires_at: written })).toMatchObject({ row: { expires_at: expected } });
  });

  const bad = ['2026-02-30', '2026-02-30T00:00:00Z', '2026-13-01', '2026-12-31T25:00Z', '2026-12-31 10:00'];
  it.each([...bad, '2026-12-31T10:00', 1798675200, 'soon'])('%s is reported once', (written) => {
    expect(key({ expires_at: written })).toEqual(
      problemThat(/^expires_at: found [^;]*, expected an ISO 8601 time with a time zone, such as [^;]*$/),
    );
  });
});

describe('keys and plans', () => {
  it('a missing whitelist differs from an empty one', () => {
    const row = { hash, account: 'acme', agent: 'api', official: false, enabled: true, hint: '' };
    expect(key({})).toEqual({ row });
    expect(key({ models: [] })).toEqual({ row: { ...row, models: [] } });
  });

  it.each([
    { enabled: 'yes' },
    { models: 'gpt-4o' },
    { model: ['gpt-4o'] },
    { hash: 'A'.repeat(64) },
    { rpm: 0 },
    { account: 'a'.repeat(301) },
    { account: 'acme#1' },
    { manage: 'yes' },
    { made_by: 'acme' },
    { made_by: true },
  ])('a typo rejects the key: %j', (attributes) => {
    expect(key(attributes)).toHaveProperty('problem');
  });

  it('a plan has a level from 1 to 3, and entries with separate ids', () => {
    const item = { id: 'chat', value: -1, models: ['m'] };
    const row = { price: 0, items: [{ ...item, name: '', icon: '' }] };
    expect(readRow(PlanRow, { level: 1, items: [item] })).toMatchObject({ row });
    expect(readRow(PlanRow, { level: 4 })).toEqual(
      problemThat('level: found 4, expected a plan level: 1, 2 or 3'),
    );
    expect(readRow(PlanRow, { level: 1, items: [item, item] })).toEqual(
      problemThat('items: found a list, expected entries with different ids'),
    );
  });
});

it('relay_closed with the value NULL closes the relay', () => {
  const { snapshot } = compile({ settings: [{ name: 'relay_closed', value: null }] });
  expect(snapshot.settings.relayClosed).toBe(true);
});
