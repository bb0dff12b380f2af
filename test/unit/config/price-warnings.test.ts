import { describe, expect, it } from 'vitest';
import { findAccountWarnings } from '../../../shared/config/loss-warnings.ts';
import { channel, compile } from './rows.ts';

type Price = [input: number, output: number];
const typed = ([input, output]: Price, factor = 1) => ({ input: input * factor, output: output * factor });
const perMillion = 'per 1,000 tokens looks like a price per million tokens';

/** The warnings of one rule for one model, except that nobody serves it. */
function doubtsOf(model: string, prices: object, served: object = {}): string[] {
  const rows = {
    channels: [channel({ models: [model], ...served })],
    charges: [{ id: 1, type: 'token-billing', models: [model], ...prices }],
  };
  return compile(rows).results.flatMap(({ warning }) => warning?.split('; ') ?? []);
}

/** Public vendor prices per million tokens, in dollars, then in yuan. */
const dollars: [string, Price][] = [
  ['gpt-4o-mini', [0.15, 0.6]],
  ['gpt-4o', [2.5, 10]],
  ['gpt-4-32k', [60, 120]],
  ['gpt-4.5-preview', [75, 150]],
  ['gpt-5-nano', [0.05, 0.4]],
  ['gpt-5-pro', [15, 120]],
  ['o1', [15, 60]],
  ['o1-mini', [3, 12]],
  ['o1-pro', [150, 600]],
  ['claude-opus-4-1', [15, 75]],
  ['claude-sonnet-4-5', [3, 15]],
  ['claude-3-5-haiku', [0.8, 4]],
  ['vendor/x-flash-lite', [0.075, 0.3]],
  ['x-chat', [0.28, 0.42]],
];
const yuans: [string, Price][] = [
  ['x-turbo', [0.3, 0.6]],
  ['x-max', [2.4, 9.6]],
  ['x-reasoner', [4, 16]],
];

describe('a price per million tokens entered as one per 1,000', () => {
  it.each([...dollars, ...yuans])(
    'raises a warning, and the correct price does not: %s %j',
    (model, price) => {
      expect(doubtsOf(model, typed(price)).join()).toContain(perMillion);
      // In yuan, with a markup of 50 %.
      const isDollars = dollars.some(([name]) => name === model);
      expect(doubtsOf(model, typed(price, ((isDollars ? 7.2 : 1) * 1.5) / 1000))).toEqual([]);
    },
  );

  it('raises a warning below ¥1, with the model, the price and the price to write instead', () => {
    expect(doubtsOf('gpt-4o-mini', { input: 0.15, output: 0.0006 })).toEqual([
      `input: 0.15 yuan ${perMillion} for gpt-4o-mini`,
      'in that case write 0.00015',
    ]);
    const served = { mapper: { cheap: 'gpt-4o-mini' } };
    expect(doubtsOf('cheap', typed([0.15, 0.6]), served).join()).toContain(`${perMillion} for cheap`);
  });

  it('raises a warning for cache prices and tiers, but never for prices per call', () => {
    const prices = { input: 0.02, output: 0.1, cached_input: 0.3 };
    expect(doubtsOf('m', prices).join()).toContain(`cached_input: 0.3 yuan ${perMillion}`);
    const tiers = [{ above: 200_000, input: 6, output: 22.5, cached_input: 0.3 }];
    expect(doubtsOf('m', { ...prices, cached_input: 0.002, tiers }).join()).toMatch(
      /tiers\[0\]\.input: 6 yuan .*tiers\[0\]\.output: 22.5 yuan/,
    );
    expect(doubtsOf('gpt-4o-mini', { type: 'times-billing', output: 30 })).toEqual([]);
  });
});

it('a service tier factor that no vendor uses raises a warning, in prices and in costs', () => {
  const prices = { input: 0.002, output: 0.01, service_tiers: { flex: 0.5, ultrafast: 10, priority: 20 } };
  expect(doubtsOf('m', prices)).toEqual([
    'service_tiers.priority: 20 is a factor, so these calls cost 20 times the standard price',
  ]);
  const cost = { '*': { input: 0.001, output: 0.005, service_tiers: { fast: 60 } } };
  expect(doubtsOf('m', { ...prices, service_tiers: {} }, { cost })[0]).toContain(
    'cost.*.service_tiers.fast: 60',
  );
});

describe('the cost of a channel', () => {
  const cost = (entry: object) => ({ cost: { '*': entry } });
  const dollar = { input: 0.000_15, output: 0.000_6, currency: 'USD', rate: 7.2 };

  it('alone decides where it is known, in yuan: more than a hundred times the cost raises a warning', () => {
    const cheap = cost({ input: 0.01, output: 0.02 });
    expect(doubtsOf('small', { input: 0.31, output: 120 }, cheap)).toEqual([
      'output: 120 yuan per 1,000 tokens exceeds 100 times the cost of small and looks like a price per million tokens',
      'in that case write 0.12',
    ]);
    expect(doubtsOf('m', { input: 0.15, output: 0.05 }, cost(dollar))[0]).toContain(
      'exceeds 100 times the cost of m and',
    );
    expect(doubtsOf('m', { input: 0.1, output: 0.05 }, cost(dollar))).toEqual([]);
  });

  it('raises a warning itself, by the rate of its currency', () => {
    const paid = { cost: { m: { ...dollar, input: 0.15, output: 0.0006 } } };
    expect(doubtsOf('m', { input: 0.002, output: 0.008 }, paid)).toEqual([
      `cost.m.input: 0.15 USD ${perMillion}`,
      'in that case write 0.00015',
      'models: m sold below cost: ¥2 per million input tokens, channel main costs ¥1080, a loss of ¥1078',
    ]);
  });
});

describe('a price below the cost of a channel', () => {
  const paid = {
    cost: { m: { input: 0.001, output: 0.004, cached_input: 0.0002, currency: 'USD', rate: 7 } },
  };
  const sold = (loss: string, who = 'models: m') => `${who} sold below cost: ${loss}`;
  it.each([
    ['is fine at cost', { input: 0.007, output: 0.028 }, undefined],
    [
      'names the largest loss of each kind of tokens, the largest first',
      { input: 0.006, output: 0.02 },
      sold(
        '¥20 per million output tokens, channel main costs ¥28, a loss of ¥8, and ¥6 per million input tokens, channel main costs ¥7, a loss of ¥1',
      ),
    ],
    [
      'counts the prices that the cost names',
      { input: 0.007, output: 0.028, cached_input: 0.001 },
      sold('¥1 per million cached_input tokens, channel main costs ¥1.4, a loss of ¥0.4'),
    ],
    ['is intended for a free type', { type: 'non-billing' }, undefined],
  ])('%s', (_what, prices, warning) => {
    const row = { id: 1, type: 'token-billing', models: ['m'], ...prices };
    const { results } = compile({ channels: [channel({ models: ['m'], ...paid })], charges: [row] });
    expect(results.find(({ table }) => table === 'charges')?.warning).toBe(warning);
  });

  it('is found at the worst hour of a week, whether the price or the cost depends on it', () => {
    const hours = { name: 'peak', days: ['sat'], from: '09:00', to: '12:00', zone: 'Asia/Shanghai' };
    const cost = { m: { input: 0.001, output: 0.004, windows: [{ ...hours, factor: 2 }] } };
    const warningOf = (windows: object[] | undefined, prices = { input: 0.0015, output: 0.006 }) => {
      const row = { id: 1, type: 'token-billing', models: ['m'], ...prices, ...(windows && { windows }) };
      const { results } = compile({ channels: [channel({ models: ['m'], cost })], charges: [row] });
      return results.find(({ table }) => table === 'charges')?.warning;
    };
    const loss =
      'in the window peak: ¥6 per million output tokens, channel main costs ¥8, a loss of ¥2, and ¥1.5 per million input tokens, channel main costs ¥2, a loss of ¥0.5';
    expect(warningOf(undefined)).toBe(`models: m sold below cost ${loss}`);
    expect(warningOf([{ ...hours, factor: 2 }])).toBeUndefined();
    const night = { ...hours, name: 'night', from: '00:00', to: '06:00', factor: 0.5 };
    expect(warningOf([{ ...hours, factor: 2 }, night])).toBe(
      'models: m sold below cost in the window night: ¥3 per million output tokens, channel main costs ¥4, a loss of ¥1, and ¥0.75 per million input tokens, channel main costs ¥1, a loss of ¥0.25',
    );
  });

  const charges = [{ id: 1, type: 'token-billing', models: ['m', 'n'], input: 0.01, output: 0.04 }];
  const channels = [channel({ models: ['m', 'n'], ...paid })];
  it('is reported on the setting for a group, and on the account row for a customer', () => {
    const groups = { cheap: [{ models: ['m'], factor: 0.6 }], fair: [{ models: ['*'], factor: 0.8 }] };
    const settings = [{ name: 'price_groups', value: groups }];
    const { results, snapshot } = compile({ channels, charges, settings });
    const below =
      '¥24 per million output tokens, channel main costs ¥28, a loss of ¥4, and ¥6 per million input tokens, channel main costs ¥7, a loss of ¥1';
    expect(results.find(({ table }) => table === 'settings')?.warning).toBe(sold(below, 'value.cheap: m'));
    const warnings = (row: object) => findAccountWarnings({ account: 'acme', ...row }, snapshot);
    expect(warnings({ price_group: 'fair' })).toEqual([]);
    expect(warnings({ price_group: 'cheap', prices: [{ models: ['n'], factor: 0.5 }] })).toEqual([
      sold(below, 'prices: m'),
    ]);
    expect(warnings({ prices: [{ models: ['n', 'm*', 'typo', 'x*'], factor: 1 }] })).toEqual([
      'prices[0].models: no rule or channel has typo, x*',
    ]);
    expect(warnings({ price_group: 'gone' })).toEqual([
      'price_group: the setting price_groups has no gone, so it changes no price',
    ]);
  });
});

describe('an entry of a price group', () => {
  const cost = { m: { input: 0.001, output: 0.004 } };
  const charges = [{ id: 1, type: 'token-billing', models: ['m', 'n'], input: 0.002, output: 0.008 }];
  const warningOf = (gold: object[], ofChannel: object = cost) => {
    const { results } = compile({
      channels: [channel({ models: ['m', 'n'], cost: ofChannel })],
      charges,
      settings: [{ name: 'price_groups', value: { gold } }],
    });
    return results.find(({ table }) => table === 'settings')?.warning;
  };
  const dated = { models: ['m'], factor: 0.4, from: '2099-12-07', until: '2099-12-08' };

  it('that will sell below cost raises a warning in advance, for its worst hour', () => {
    const loss =
      '¥3.2 per million output tokens, channel main costs ¥4, a loss of ¥0.8, and ¥0.8 per million input tokens, channel main costs ¥1, a loss of ¥0.2';
    expect(warningOf([dated])).toBe(`value.gold: m sold below cost from 2099-12-07T00:00:00Z: ${loss}`);
    const peak = { name: 'peak', from: '10:00', to: '11:00', zone: 'UTC', factor: 2 };
    expect(warningOf([{ ...dated, factor: 0.6 }], { m: { ...cost.m, windows: [peak] } })).toContain(
      'sold below cost from 2099-12-07T00:00:00Z in the window peak: ¥4.8',
    );
  });

  it('that will end a loss raises no warning for the standard price before and after it', () => {
    const dear = { m: { input: 0.003, output: 0.009 } };
    expect(warningOf([{ ...dated, factor: 2 }], dear)).toBeUndefined();
    expect(warningOf([{ ...dated, factor: 1.2 }], dear)).toBe(
      'value.gold: m sold below cost from 2099-12-07T00:00:00Z: ¥2.4 per million input tokens, channel main costs ¥3, a loss of ¥0.6',
    );
  });

  it.each<[string, object[], string | undefined]>([
    ['follows the one that it was to replace', [{ models: ['*'], factor: 1 }, dated], '[1]'],
    ['has ended', [{ ...dated, until: '2020-01-02', from: '2020-01-01' }], '[0]'],
    [
      'begins with another one',
      [
        { ...dated, factor: 1 },
        { ...dated, factor: 2 },
      ],
      '[1]',
    ],
    [
      'applies later again',
      [
        { ...dated, factor: 1 },
        { models: ['m'], factor: 1 },
      ],
      undefined,
    ],
    ['names no model that is served', [{ models: ['x'], factor: 1, until: '2020-01-01' }], undefined],
  ])('%s: marked %s', (_what, gold, index) => {
    if (index === undefined) expect(warningOf(gold)).toBeUndefined();
    else expect(warningOf(gold)).toContain(`value.gold${index}: has no effect`);
  });
});

const now = Date.parse('2026-11-22T12:00:00Z');
const hours = 3_600_000;
const names = ['gpt-4o', 'mini'];
const charge = (changes: Record<string, unknown> = {}) => ({
  id: 1,
  type: 'token-billing',
  models: names,
  input: 0.01,
  output: 0.02,
  ...changes,
});

/** The warnings of the rules after an edit; `atMs` is the time of the compile. */
function marked(before: unknown[], after: unknown[], atMs = now): (string | undefined)[] {
  const rowsOf = (charges: unknown[]) => ({
    channels: [channel({ models: names })],
    charges,
    plans: [],
    settings: [],
  });
  const { results } = compile(rowsOf(after), { earlier: rowsOf(before), publishedAt: atMs / 1000 });
  return results.filter(({ table }) => table === 'charges').map(({ warning }) => warning);
}

const at = 'models: at 2026-11-22T12:00:00Z the price of gpt-4o, mini';
const free = { type: 'non-billing', input: 0, output: 0 };
const tiers = [{ above: 1000, input: 0.02, output: 0.03 }];

describe('a rule that changes a price', () => {
  it.each<[object, object, string | undefined]>([
    [{}, { input: 0.013, output: 0.026 }, undefined],
    [{}, { input: 0.0131, output: 0.03 }, 'rises by 50 %: output 20 to 30 yuan per million tokens'],
    [{}, { input: 0.001 }, 'falls by 90 %: input 10 to 1 yuan per million tokens'],
    [{}, { cached_input: 0.001 }, 'falls by 90 %: cached_input 10 to 1 yuan per million tokens'],
    [{}, { tiers }, 'rises by 100 %: input above 1000 10 to 20 yuan per million tokens'],
    [{}, { service_tiers: { flex: 0.5, priority: 2 } }, undefined],
    [
      { service_tiers: { flex: 0.5, priority: 2 } },
      { service_tiers: { flex: 0.5, priority: 3 } },
      'rises by 50 %: input in priority 20 to 30 yuan per million tokens',
    ],
    [{}, free, 'drops to zero: calls are free'],
    [free, {}, 'is new: calls were free before'],
    [{}, { type: 'times-billing', input: 0 }, 'changes from token-billing to times-billing'],
  ])('from %j to %j is marked: %s', (before, after, mark) => {
    expect(marked([charge({ ...before })], [charge({ ...after })])).toEqual([mark && `${at} ${mark}`]);
  });

  it('is the one that prices the model from its start on, whichever row that is', () => {
    const dated = charge({ id: 2, models: ['mini'], from: '2026-12-01T00:00:00Z', input: 0.04 });
    expect(marked([charge()], [charge(), dated])).toEqual([
      undefined,
      'models: at 2026-12-01T00:00:00Z the price of mini rises by 300 %: input 10 to 40 yuan per million tokens',
    ]);
    const late = { ...dated, id: 3, from: '2027-01-01T00:00:00Z' };
    expect(marked([charge(), dated], [charge(), dated, late])[2]).toBeUndefined();
    expect(marked([], [charge()])).toEqual([undefined]);
  });

  it('with a past start is marked as effective at once, and only where it replaces another rule', () => {
    const over = charge({ id: 2, from: '2025-12-01T00:00:00Z', input: 0.011 });
    const said =
      'from: at 2026-11-22T12:00:00Z this time (2025-12-01T00:00:00Z) was already past, so the price took effect at once';
    expect(marked([charge()], [charge(), over])[1]).toBe(said);
    const justNow = { ...over, from: '2026-11-22T11:59:00Z' };
    expect(marked([charge()], [charge(), justNow])[1]).toBeUndefined();
    expect(marked([charge(), over], [charge(), { ...over, output: 0.021 }])[1]).toBeUndefined();
    expect(marked([], [over])[0]).toBeUndefined();
    expect(marked([charge(), over], [charge(), { ...over, _warning: said }], now + hours)[1]).toBe(said);
  });

  it('keeps only its own mark, until a day after the price begins or until the rule changes again', () => {
    const edited = charge({ output: 0.14 });
    const [mark = ''] = marked([charge()], [edited]);
    const row = { ...edited, _warning: mark };
    expect(marked([edited], [row], now + 23 * hours)).toEqual([mark]);
    expect(marked([edited], [row], now + 24 * hours)).toEqual([undefined]);
    expect(marked([edited], [{ ...row, output: 0.149 }], now + 1000)).toEqual([undefined]);
    const note = 'models: at noon it was cheaper; mine';
    expect(marked([charge()], [{ ...charge(), _warning: note }])).toEqual([undefined]);
  });
});
