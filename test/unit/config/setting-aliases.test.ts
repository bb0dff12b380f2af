import { describe, expect, it } from 'vitest';
import { readSetting } from '../../../shared/config/setting-rows.ts';
import type { ConfigRows } from '../../../shared/config/rows/read-table.ts';
import { channel, compile } from './rows.ts';

const read = (value: unknown) => readSetting({ name: 'aliases', value }, { local: false });
const row = (value: unknown) => ({ name: 'aliases', value });

describe('the setting aliases', () => {
  it('has lists of models, or maps that say when to fall back', () => {
    expect(
      read({
        fast: ['b', 'a'],
        smart: { models: ['c'] },
        long: { models: ['c', 'd'], on_context_length: 'true' },
      }),
    ).toEqual({
      row: {
        aliases: [
          { name: 'fast', models: ['b', 'a'], onContextLength: false },
          { name: 'smart', models: ['c'], onContextLength: false },
          { name: 'long', models: ['c', 'd'], onContextLength: true },
        ],
      },
    });
  });

  it.each([
    [['a'], /^value: found \["a"\], wanted a map from public names to lists of models/],
    [{ fast: 'a' }, /^value\.fast: found "a", wanted a list of 1 to 8 model names/],
    [{ fast: [] }, /^value\.fast: found \[\], wanted a list of 1 to 8/],
    [
      { fast: Array.from({ length: 9 }, (_, at) => `m${at}`) },
      /^value\.fast: found .*, wanted a list of 1 to 8/,
    ],
    [{ fast: ['a b'] }, /^value\.fast/],
    [{ fast: [1] }, /^value\.fast/],
    [{ fast: { on_context_length: true } }, /^value\.fast/],
    [{ fast: { models: ['a'], on_contxt_length: true } }, /^value\.fast/],
    [{ 'fa st': ['a'] }, /^value\.fa st: found this name, wanted a model name/],
    [{ 'web-fast': ['a'] }, /^value\.web-fast: found this name, wanted a name that does not begin with web-/],
    [{ 'fast-official': ['a'] }, /^value\.fast-official: found this name, wanted a name that does not begin/],
    [{ fast: ['a', 'b', 'a'] }, /^value\.fast: found a twice, wanted each model once/],
    [{ fast: ['a', 'smart'], smart: ['b'] }, /^value\.fast: found the alias smart, wanted models/],
    [{ fast: ['a', 'fast'] }, /^value\.fast: found the alias fast, wanted models/],
  ])('%j is refused', (value, problem) => {
    expect(read(value)).toMatchObject({ problem: expect.stringMatching(problem) as unknown });
  });

  it('takes names that objects have of their own', () => {
    expect(read({ constructor: ['a'], toString: ['b'] })).toMatchObject({
      row: { aliases: [{ name: 'constructor' }, { name: 'toString' }] },
    });
  });

  it('keeps its last good version while it is wrong', () => {
    const earlier = { ...compile({ settings: [row({ fast: ['gpt-4o'] })] }).rows };
    const { snapshot } = compile({ channels: [channel()], settings: [row({ fast: [] })] }, { earlier });
    expect(snapshot.settings.aliases).toMatchObject([{ name: 'fast' }]);
  });
});

describe('aliases and the other tables', () => {
  const compiled = (value: unknown, rows: Partial<ConfigRows> = {}) =>
    compile({ channels: [channel()], settings: [row(value)], ...rows });
  const warningOf = (value: unknown, rows: Partial<ConfigRows> = {}) =>
    compiled(value, rows).results.find(({ table }) => table === 'settings')?.warning;

  it('fit together without a word', () => {
    expect(warningOf({ fast: ['gpt-4o'] })).toBeUndefined();
  });

  it.each([
    ['on', {}],
    ['off', { state: false }],
  ])('a name that a channel has that is %s stays a model', (_case, more) => {
    const rows = { channels: [channel(more), channel({ id: 'second', models: ['o3'] })] };
    const { snapshot } = compiled({ 'gpt-4o': ['o3'], fast: ['o3'] }, rows);
    expect(snapshot.settings.aliases?.map(({ name }) => name)).toEqual(['fast']);
    expect(warningOf({ 'gpt-4o': ['o3'], fast: ['o3'] }, rows)).toBe(
      'value.gpt-4o: not used, because a channel has a model of this name, which stays that model',
    );
  });

  it('warns of models that nobody serves, and of aliases without any', () => {
    expect(warningOf({ fast: ['gpt-4o', 'o9'], none: ['o8', 'o9'] })).toBe(
      'value.fast: skips o9, which no channel that is on serves; ' +
        'value.none: not offered, because no channel that is on serves any of its models',
    );
  });

  it('counts a model without a price as not served where those are refused', () => {
    const refuse = { name: 'unpriced_models', value: 'refuse' };
    const rows = { settings: [row({ fast: ['gpt-4o'] }), refuse] };
    expect(compile({ channels: [channel()], ...rows }).results.at(-2)?.warning).toContain('not offered');
  });

  it('a plan may name one, a charge of one has a warning that it prices nothing', () => {
    const plans = [{ level: 1, items: [{ id: 'chat', value: 1, models: ['fast'] }] }];
    const charges = [{ id: 1, type: 'non-billing', models: ['fast'] }];
    const { results } = compiled({ fast: ['gpt-4o'] }, { plans, charges });
    expect(results.find(({ table }) => table === 'plans')?.warning).toBeUndefined();
    expect(results.find(({ table }) => table === 'charges')?.warning).toContain(
      'fast is an alias: the model that answers has its price',
    );
  });
});
