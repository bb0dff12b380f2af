import { describe, expect, it } from 'vitest';
import { compileSnapshot } from '../../../shared/config/compile-snapshot.ts';
import { emptyRows } from '../../../shared/config/rows/read-table.ts';
import { validateAccountRow } from '../../../shared/config/rows/alerted-account.ts';
import { validateKeyRow } from '../../../shared/config/rows/key-row.ts';
import { isAccountOff } from '../../../shared/config/rows/account-row.ts';
import { ChargeRow } from '../../../shared/config/rows/charge-row.ts';
import { KeyRow } from '../../../shared/config/rows/key-row.ts';
import { PlanRow } from '../../../shared/config/rows/plan-row.ts';
import { readChannel } from '../../../shared/config/rows/channel-row.ts';
import { readRow } from '../../../shared/config/rows/read-row.ts';
import { channel } from './rows.ts';

const read = (attributes: Record<string, unknown>) => readChannel(channel(attributes), { local: false });
const key = (attributes: Record<string, unknown>) =>
  readRow(KeyRow, { hash: 'a'.repeat(64), account: 'acme', ...attributes });

describe('what a console makes of a value is understood', () => {
  it.each([
    ['a number as text', { priority: ' 5 ' }, { priority: 5 }],
    ['a negative number as text', { priority: '-3' }, { priority: -3 }],
    ['a fraction as text', { weight: '0.5' }, { weight: 0.5 }],
    ['powers of ten as text', { weight: '1e-3', priority: '5e3' }, { weight: 0.001, priority: 5_000 }],
    ['a flag as text', { state: 'False' }, { state: false }],
    ['a string set, which is sorted', { models: new Set(['b', 'a']) }, { models: ['a', 'b'] }],
    ['a list, which keeps its order', { models: ['b', 'a'] }, { models: ['b', 'a'] }],
    ['blanks around a model name', { models: [' gpt-4o\n'] }, { models: ['gpt-4o'] }],
    [
      'slashes at the end of an endpoint',
      { endpoint: 'https://a.example/v1//' },
      { endpoint: 'https://a.example/v1' },
    ],
    ['a list of secrets', { secret: ['ssm:/relay/relay/a'] }, { secret: ['ssm:/relay/relay/a'] }],
  ])('%s', (_case, attributes, expected) => {
    expect(read(attributes)).toMatchObject({ row: expected });
  });

  it('NULL, as tools write null: an attribute and a member of a map that is NULL is absent', () => {
    const nothing = { priority: null, region: null, cost: null, mapper: { 'gpt-4o': null } };
    expect(read({ ...nothing, params: { stream: null, drop: null } })).toEqual(
      read({ params: {}, mapper: {} }),
    );
    expect(key({ models: null, budget: null })).toEqual(key({}));
    // In what goes into requests, null is a value.
    const set = { reasoning: null, deep: { none: null } };
    expect(read({ params: { set } })).toMatchObject({ row: { params: { set } } });
  });

  it('NULL in a switch is a mistake, and so off: whoever wrote it may have meant that', () => {
    const found = 'found null, wanted true or false';
    expect(validateKeyRow({ hash: 'a'.repeat(64), account: 'acme', enabled: null })).toEqual({
      problem: `enabled: ${found}; until this is mended, the key is refused`,
    });
    expect(isAccountOff({ account: 'acme', enabled: null })).toBe(true);
    expect(validateAccountRow({ account: 'acme', enabled: null })).toEqual({
      problem: `enabled: ${found}; until this is mended, the keys of the account are refused`,
    });
    expect(read({ state: null })).toEqual({
      problem: `state: ${found}; until state can be read, the channel is off`,
      off: true,
    });
    const closed = { ...emptyRows, settings: [{ name: 'relay_closed', value: null }] };
    expect(compileSnapshot(closed, { local: false, publishedAt: 1 })).toMatchObject({
      snapshot: { settings: { relayClosed: true } },
      results: [
        { problem: expect.stringContaining('until this can be read, the relay is closed') as string },
      ],
    });
  });

  it('a note: attributes that start with _ are dropped', () => {
    expect(read({ _problem: 'old', _note: { by: 'ann' }, _: 1 })).toEqual(read({}));
    expect(read({})).toHaveProperty('row');
  });
});

it('a value that breaks two rules which want the same is named once', () => {
  expect(key({ expires_at: 'soon' })).toEqual({
    problem: 'expires_at: found "soon", wanted an ISO 8601 time with its zone, such as 2026-12-31T00:00:00Z',
  });
});

it('an account has a name that keys of all tables can have', () => {
  expect(key({ account: 'ä'.repeat(300) })).toHaveProperty('row');
  expect(key({ account: 'a'.repeat(301) })).toEqual({
    problem: expect.stringContaining('wanted a name of at most 300 characters') as string,
  });
});

describe('a bad attribute of a channel is named, with what was found and what is wanted', () => {
  it.each([
    [{ priority: 1.5 }, 'priority: found 1.5, wanted a whole number'],
    [{ priority: '9'.repeat(19) }, 'priority: found "9999999999999999999", wanted a whole number'],
    [{ models: null }, 'models: found nothing, wanted a list'],
    [{ models: [null] }, 'models[0]: found null, wanted a model name'],
    [{ params: new Set([1]) }, 'params: found a set, wanted a map {set'],
    [{ params: new Uint8Array() }, 'params: found binary data, wanted a map {set'],
    [
      { weight: -1 },
      'weight: found -1, wanted a number of 0 or more, with a point for decimals, such as 0.018',
    ],
    [{ models: 'gpt-4o' }, 'models: found "gpt-4o", wanted a list (or a string set) of model names'],
    [{ models: undefined }, 'models: found nothing, wanted a list'],
    [{ models: ['ok', 'not ok'] }, 'models[1]: found "not ok", wanted a model name: 1 to 128'],
    [{ models: new Set(['gpt-*']) }, 'models[0]: found "gpt-*", wanted a model name'],
    [{ models: ['m'.repeat(129)] }, 'models[0]: found a text that looks like a secret (not shown), wanted'],
    [{ mapper: { 'a b': 'x' } }, 'mapper.a b: found this name, wanted a model name'],
    [{ mapper: { a: 5 } }, 'mapper.a: found 5, wanted a text'],
    [{ type: 'azzure' }, 'type: found "azzure", wanted "openai"'],
    [{ id: ' main' }, 'id: found " main", wanted a text on one line, with no blanks'],
    [{ idle_seconds: 0 }, 'idle_seconds: found 0, wanted a number of seconds, more than 0 and at most 900'],
    [
      { params: { max_output_tokens: 0 } },
      'params.max_output_tokens: found a number, wanted a whole number of 1',
    ],
    [{ params: { set: { stop: new Set([1]) } } }, 'params.set.stop: found a set, wanted a value that JSON'],
    [{ params: 'none' }, 'params: found a text, wanted a map {set, drop,'],
    [{ params: { sets: {} } }, 'params.sets: found, but not known here'],
    [{ secrets: 'x' }, 'secrets: found, but not known here (misspelt?'],
    [{ secret: [] }, 'secret: found an empty list, wanted a reference or no attribute'],
    [{ max_tokens_field: 'tokens' }, 'found "tokens", wanted "max_tokens" or "max_completion_tokens"'],
    [{ weight: new Uint8Array(2) }, 'weight: found binary data, wanted a number'],
  ])('%j', (attributes, problem) => {
    const reading = read(attributes);
    expect(reading).toHaveProperty('problem', expect.stringContaining(problem));
  });

  it('all of them at once, up to eight', () => {
    const reading = read({ priority: 'x', weight: 'y', models: 5 });
    expect(reading).toHaveProperty('problem', expect.stringMatching(/^models: .*; priority: .*; weight: /));
    const many = read({ models: Array.from({ length: 20 }, () => '?') });
    expect(many).toHaveProperty('problem', expect.stringMatching(/models\[7\].*; and 12 more$/));
  });

  it('an unreadable state also rules out an earlier version of the row; another bad attribute does not', () => {
    expect(read({ state: 'on', priority: 'x' })).toHaveProperty('off', true);
    expect(read({ priority: 'x' })).not.toHaveProperty('off');
  });

  it('something that is no row at all', () => {
    expect(readChannel(null, { local: false })).toHaveProperty(
      'problem',
      expect.stringContaining('found null'),
    );
  });
});

describe('a channel that is used but looks wrong carries a warning', () => {
  it.each([
    [{ models: [] }, 'models: empty'],
    [{ endpoint: 'https://api.example.com' }, 'endpoint: has no path'],
    [{ mapper: { other: 'x' } }, 'mapper: maps other, which is not in models'],
    [{ models: ['web-x', 'y-official'] }, 'models: web-x is out of reach'],
  ])('%j', (attributes, warning) => {
    expect(read(attributes)).toHaveProperty('warning', expect.stringContaining(warning));
    expect(read(attributes)).toHaveProperty('row');
  });
});

describe('times', () => {
  it.each([
    ['2026-12-31', Date.UTC(2026, 11, 31)],
    ['2026-12-31T10:00Z', Date.UTC(2026, 11, 31, 10)],
    ['2026-12-31T10:00:30.5+08:00', Date.UTC(2026, 11, 31, 2, 0, 30, 500)],
    ['2028-02-29', Date.UTC(2028, 1, 29)],
  ])('%s is understood', (written, expected) => {
    expect(key({ expires_at: written })).toMatchObject({ row: { expires_at: expected } });
  });

  it.each([
    '2026-02-30',
    '2026-02-30T00:00:00Z',
    '2026-13-01',
    '2026-12-31T25:00Z',
    '2026-12-31 10:00',
    '2026-12-31T10:00',
    1798675200,
    'soon',
  ])('%s is a problem', (written) => {
    expect(key({ expires_at: written })).toHaveProperty(
      'problem',
      expect.stringMatching(/^expires_at: found .*, wanted an ISO 8601 time with its zone/),
    );
  });
});

describe('keys, charges and plans', () => {
  it('a key without a whitelist has none, which is not the same as an empty one', () => {
    expect(key({})).toEqual({
      row: { hash: 'a'.repeat(64), account: 'acme', agent: 'api', official: false, enabled: true, hint: '' },
    });
    expect(key({ models: [] })).toMatchObject({ row: { models: [] } });
  });

  it.each([
    { enabled: 'yes' },
    { models: 'gpt-4o' },
    { model: ['gpt-4o'] },
    { hash: 'A'.repeat(64) },
    { rpm: 0 },
  ])('a typo refuses the key: %j', (attributes) => {
    expect(key(attributes)).toHaveProperty('problem');
  });

  it('a charge takes its defaults, and negative prices are a problem', () => {
    const charge = { id: 1, type: 'token-billing', models: ['m'] };
    expect(readRow(ChargeRow, charge)).toEqual({ row: { ...charge, input: 0, output: 0, anonymous: false } });
    expect(readRow(ChargeRow, { ...charge, input: '-0.1' })).toHaveProperty(
      'problem',
      'input: found "-0.1", wanted a number of 0 or more, with a point for decimals, such as 0.018',
    );
  });

  it('a charge takes prices of the cache, checked like any price, and has none by itself', () => {
    const charge = { id: 1, type: 'token-billing', models: ['m'], input: 1, output: 2, anonymous: false };
    const cache = { cached_input: 0.1, cache_write: 1.25, cache_write_1h: 2 };
    expect(readRow(ChargeRow, { ...charge, ...cache, cache_write: '1.25' })).toEqual({
      row: { ...charge, ...cache },
    });
    for (const attribute of Object.keys(cache))
      expect(readRow(ChargeRow, { ...charge, [attribute]: -1 })).toHaveProperty(
        'problem',
        `${attribute}: found -1, wanted a number of 0 or more, with a point for decimals, such as 0.018`,
      );
  });

  it('a plan has a level from 1 to 3, and entries with their own ids', () => {
    const item = { id: 'chat', value: -1, models: ['m'] };
    expect(readRow(PlanRow, { level: 1, items: [item] })).toMatchObject({
      row: { price: 0, items: [{ ...item, name: '', icon: '' }] },
    });
    expect(readRow(PlanRow, { level: 4 })).toHaveProperty(
      'problem',
      'level: found 4, wanted a plan level: 1, 2 or 3',
    );
    expect(readRow(PlanRow, { level: 1, items: [item, item] })).toHaveProperty(
      'problem',
      'items: found a list, wanted entries that each have their own id',
    );
  });
});
