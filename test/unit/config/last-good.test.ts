import { describe, expect, it } from 'vitest';
import { serializeConfiguration } from '../../../shared/config/compile-snapshot.ts';
import { emptyRows, type ConfigRows } from '../../../shared/config/rows/read-table.ts';
import { channel, compile } from './rows.ts';

const charge = (attributes: Record<string, unknown> = {}) => ({
  id: 1,
  type: 'token-billing',
  models: ['gpt-4o'],
  input: 0.01,
  output: 0.02,
  ...attributes,
});
const kept = 'until it is fixed, the last valid version stays in use';

/** Compiles valid rows, then the changed rows together with what the first snapshot kept. */
const afterEdit = (good: Partial<ConfigRows>, changed: Partial<ConfigRows>) => {
  const { rows } = compile(good);
  return compile(changed, { earlier: JSON.parse(JSON.stringify(rows)) as ConfigRows });
};

describe('an invalid row', () => {
  it('keeps its last valid version, and reports that', () => {
    const { snapshot, results } = afterEdit(
      { channels: [channel({ priority: 3 })], charges: [charge()], plans: [{ level: 1, price: 5 }] },
      {
        channels: [channel({ priority: 'high' })],
        charges: [charge({ output: 'cheap' })],
        plans: [{ level: 1, price: -5 }],
      },
    );
    expect(snapshot.channels).toMatchObject([{ id: 'main', priority: 3 }]);
    expect(snapshot.charges).toMatchObject([{ id: 1, output: 0.02 }]);
    expect(snapshot.plans).toMatchObject([{ level: 1, price: 5 }]);
    expect(results.map(({ problem }) => problem)).toEqual([
      `priority: found "high", expected a whole number; ${kept}`,
      `output: found "cheap", expected a number of 0 or more, with a decimal point, such as 0.018; ${kept}`,
      `price: found -5, expected a number of 0 or more, with a decimal point, such as 0.018; ${kept}`,
    ]);
  });

  it('keeps it through every later snapshot, until it is fixed or deleted', () => {
    const good = compile({ channels: [channel({ priority: 3 })] });
    const bad = { channels: [channel({ priority: 'high' })] };
    const once = compile(bad, { earlier: good.rows });
    const twice = compile(bad, { earlier: once.rows });
    expect(twice).toEqual(once);
    expect(serializeConfiguration(twice.snapshot, twice.rows)).toBe(
      serializeConfiguration(good.snapshot, good.rows),
    );
    expect(compile({}, { earlier: twice.rows }).snapshot.channels).toEqual([]);
    const mended = compile({ channels: [channel({ priority: 4 })] }, { earlier: twice.rows });
    expect(mended.snapshot.channels).toMatchObject([{ priority: 4 }]);
  });

  it.each<[string, Record<string, unknown>, string[]]>([
    ['an amount in words', { input: 'cheap' }, ['gpt-4o']],
    ['a comma in an amount', { input: '0,018' }, ['gpt-4o']],
    ['a name that is misspelt', { inputs: 0.018 }, ['gpt-4o']],
    ['an unknown type', { type: 'token billing' }, ['gpt-4o']],
    ['names in one text', { models: 'GPT-4o, gpt-4o-mini' }, ['gpt-4o', 'gpt-4o-mini']],
    ['a list as a text', { models: '["gpt-4o-mini"]' }, ['gpt-4o-mini']],
    ['half of its names', { models: ['gpt-4o', 7, null] }, ['gpt-4o']],
    ['a map of names', { models: { 'gpt-4o': true } }, ['gpt-4o']],
    ['a pattern', { models: ['gpt-*'] }, ['gpt-4o', 'gpt-4o-mini']],
    ['names in another attribute', { models: undefined, model: 'gpt-4o' }, ['gpt-4o']],
    ['unreadable names', { models: 7 }, ['gpt-4o', 'gpt-4o-mini', 'claude']],
    ['no names', { models: null }, []],
    ['an empty list of names', { models: [], type: 'x' }, []],
    ['the names of others', { models: ['other'], type: 'x' }, []],
  ])('keeps its models from being free when it was never valid: %s', (_name, wrong, refused) => {
    const channels = [channel({ models: ['gpt-4o', 'gpt-4o-mini', 'claude'] })];
    const { snapshot, results } = compile({ channels, charges: [charge(wrong)] });
    expect(snapshot.unreadPrices ?? []).toEqual(refused);
    const [, marked] = results;
    const said = `; until then calls of ${refused.join(', ')} are refused`;
    expect(marked?.problem?.endsWith(said)).toBe(refused.length > 0);
    expect(results[0]?.warning?.includes('so calls are free')).toBe(refused.length < 3);
  });

  it('keeps a newly added model from being free, and its last valid version applies to the others', () => {
    const channels = [channel({ models: ['gpt-4o', 'gpt-4o-mini'] })];
    const { snapshot, results } = afterEdit(
      { channels, charges: [charge()] },
      { channels, charges: [charge({ models: ['gpt-4o', 'gpt-4o-mini'], input: '0,018' })] },
    );
    expect(snapshot.unreadPrices).toEqual(['gpt-4o-mini']);
    expect(results[1]?.problem).toContain(`${kept}; until then calls of gpt-4o-mini are refused`);
  });

  it('does not keep a version that has become invalid', () => {
    const { rows } = compile({ channels: [channel({ endpoint: 'http://127.0.0.1:1/v1' })] }, { local: true });
    const { snapshot } = compile({ channels: [channel({ priority: 'high' })] }, { earlier: rows });
    expect(snapshot.channels).toEqual([]);
  });
});

describe('a disabled channel', () => {
  it.each([false, 'false'])('stays disabled although the row is invalid: state %j', (state) => {
    const { snapshot, results } = afterEdit(
      { channels: [channel()] },
      { channels: [channel({ state, priority: 'high' })] },
    );
    expect(snapshot.channels).toEqual([]);
    expect(results[0]?.problem).toBe('priority: found "high", expected a whole number');
  });

  it('is disabled while its state is unreadable, and then while another attribute is invalid', () => {
    const unreadable = afterEdit({ channels: [channel()] }, { channels: [channel({ state: 'on' })] });
    expect(unreadable.snapshot.channels).toEqual([]);
    const half = compile(
      { channels: [channel({ state: true, priority: 'high' })] },
      { earlier: unreadable.rows },
    );
    expect(half.snapshot.channels).toEqual([]);
  });
});

describe('an invalid setting', () => {
  it('keeps its last valid value', () => {
    const { snapshot, results } = afterEdit(
      { settings: [{ name: 'contact', value: 'ops@example.com' }] },
      { settings: [{ name: 'contact', value: 5 }] },
    );
    expect(snapshot.settings.contact).toBe('ops@example.com');
    expect(results[0]?.problem).toBe(`value: found 5, expected a text; ${kept}`);
  });

  it('never opens the relay and never makes models free', () => {
    const settings = (...values: unknown[]) => ({
      settings: ['relay_closed', 'subscription.enabled', 'unpriced_models'].map((name, at) => ({
        name,
        value: values[at],
      })),
    });
    const { snapshot } = afterEdit(settings(false, true, 'free'), settings('yes', 'no', 'refsue'));
    const safe = { relayClosed: true, subscriptionEnabled: false, unpricedModels: 'refuse' };
    expect(snapshot.settings).toMatchObject(safe);
  });
});

const contentOf = (some: Partial<ConfigRows>, publishedAt = 1) => {
  const { snapshot, rows: keptRows } = compile(some, { publishedAt });
  return serializeConfiguration(snapshot, keptRows);
};

describe('the digest of a configuration', () => {
  const rows = {
    channels: [channel({ id: 'b' }), channel({ id: 'a', state: false })],
    settings: [
      { name: 'page', value: true },
      { name: 'contact', value: '' },
    ],
  };
  it('is the same for any order of rows and attributes, and for any notes, marks and times', () => {
    const marked = (row: object) =>
      Object.fromEntries([['_problem', 'old'], ...Object.entries(row).toReversed()]);
    const channels = rows.channels.toReversed().map(marked);
    expect(contentOf({ channels, settings: rows.settings.toReversed() }, 2)).toBe(contentOf(rows));
  });

  it('differs when a disabled row changes, because a rollback restores those too', () => {
    const other = { ...rows, channels: [rows.channels[0], channel({ id: 'a', state: false, weight: 2 })] };
    expect(contentOf(other)).not.toBe(contentOf(rows));
  });

  it('is the same after a round trip through JSON', () => {
    const { snapshot } = compile({ ...emptyRows, ...rows });
    expect(JSON.parse(JSON.stringify(snapshot))).toEqual(snapshot);
  });
});
