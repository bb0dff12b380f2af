import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { Endings, type CallAsked, type Delivered, type WindowEnd } from './endings.ts';
import { exactYuan, nano } from './exact.ts';
import { namedBudgets } from './budgets.ts';
import { budgetDay, planMonth } from './plan-month.ts';
import {
  costOf,
  priceOf,
  ruleAt,
  ruleIn,
  ruleOf,
  ruleOfText,
  servedIn,
  type ChargeText,
} from './price-list.ts';

const folder = import.meta.dirname;

it('the oracle imports nothing from the product', () => {
  const names = readdirSync(folder).flatMap((file) =>
    [...readFileSync(path.join(folder, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)/g)].map(
      ([, name]) => String(name),
    ),
  );
  expect(names.length).toBeGreaterThan(8);
  expect(names.filter((name) => !/^(\.\/[\w.-]+|node:.*|vitest)$/.test(name))).toEqual([]);
});

const plain: ChargeText = { id: 1, type: 'token-billing', models: ['m'], input: 0.018, output: 0.072 };
const cached: ChargeText = {
  ...plain,
  input: 0.02,
  output: 0.1,
  cached_input: 0.002,
  cache_write: 0.025,
  cache_write_1h: 0.04,
};
const split = { input: 5320, output: 100, cached: 4000, written: 300, writtenForHour: 20 };

describe('the cost of a call', () => {
  it('is that of the examples in docs/billing.md', () => {
    expect(costOf(plain, { input: 1200, output: 350 })).toBe(46_800_000n);
    expect(costOf(cached, split)).toBe(46_300_000n);
  });

  it('uses the tier of all input, cached or not, for all tokens', () => {
    const tiered = { ...cached, tiers: [{ above: 5319, input: 1, output: 2 }] };
    expect(costOf(tiered, split)).toBe(5_520_000_000n);
    expect(costOf({ ...cached, tiers: [{ above: 5320, input: 1, output: 2 }] }, split)).toBe(46_300_000n);
  });

  it('is rounded once, half up', () => {
    expect(nano(exactYuan('0.0000000005'))).toBe(1n);
    expect(nano(exactYuan('0.000000000499999999'))).toBe(0n);
    expect(costOf({ ...plain, input: 1e-7, output: 4e-7 }, { input: 3, output: 3 })).toBe(2n);
  });

  it('uses the rule with the latest start, then the lowest id', () => {
    const later = { ...plain, id: 5, from: '2026-11-21T00:00:00Z' };
    const list = [later, { ...later, id: 4 }, plain];
    expect(ruleAt(list, 'm', Date.UTC(2026, 10, 20))?.id).toBe(1);
    expect(ruleAt(list, 'm', Date.UTC(2026, 10, 21))?.id).toBe(4);
    expect(ruleAt(list, 'other', Date.UTC(2026, 10, 21))).toBeUndefined();
  });

  it("uses the customer's first price entry that names the model", () => {
    const prices = [
      { models: ['n', 'x*y'], factor: 2 },
      { models: ['*'], factor: 0.8 },
      { models: ['m'], factor: 9 },
    ];
    const own = ruleOf({ ...plain, service_tiers: { flex: 0.5 } }, 'm', prices);
    expect(costOf(own, { input: 1200, output: 350 })).toBe(37_440_000n);
    expect(costOf(servedIn(own, { asked: 'flex' }), { input: 1200, output: 350 })).toBe(18_720_000n);
    expect(['n', 'xy', 'x1y', 'ax1y', 'xyz'].map((name) => ruleOf(plain, name, prices)?.agreed)).toEqual([
      [2],
      [2],
      [2],
      [0.8],
      [0.8],
    ]);
    const instead = { models: ['m'], input: 0.01, output: 0.02 };
    expect(costOf(ruleOf(cached, 'm', [instead]), split)).toBe(55_200_000n);
    expect(ruleOf(undefined, 'm', [instead])).toBeUndefined();
    const byCall: ChargeText = { id: 2, type: 'times-billing', models: ['m'], output: 0.05 };
    expect(costOf(ruleOf(byCall, 'm', prices), split)).toBe(40_000_000n);
  });

  it("uses the customer's entries that apply when the call begins", () => {
    const prices = [
      { models: ['m'], factor: 2, from: '2026-11-30T00:00:00+08:00', until: '2026-12-01' },
      { models: ['m'], factor: 0.8, until: '2026-12-02' },
    ];
    const by = (text: string): bigint =>
      costOf(priceOf([plain], 'm', { startedMs: Date.parse(text), prices }), { input: 1200, output: 350 });
    expect(by('2026-11-29T15:59:59.999Z')).toBe(37_440_000n);
    expect(by('2026-11-29T16:00:00Z')).toBe(93_600_000n);
    expect(by('2026-12-01T00:00:00Z')).toBe(37_440_000n);
    expect(by('2026-12-02T00:00:00Z')).toBe(46_800_000n);
  });

  it('uses the window that is open when the call begins, by the clock of its zone', () => {
    const peak = { name: 'peak', days: ['mon', 'fri'], from: '09:00', to: '12:00', zone: 'Asia/Shanghai' };
    const night = { name: 'night', days: ['fri'], from: '22:00', to: '06:00', zone: 'Asia/Shanghai' };
    const windows = [
      { ...peak, factor: 2, except: ['2026-11-20'] },
      { ...night, input: 0.001, output: 0.002 },
    ];
    const by = (text: string): bigint =>
      costOf(ruleIn({ ...plain, windows }, Date.parse(text)), { input: 1200, output: 350 });
    expect(by('2026-11-30T01:00:00Z')).toBe(93_600_000n);
    expect(by('2026-11-30T00:59:59Z')).toBe(46_800_000n);
    expect(by('2026-11-30T04:00:00Z')).toBe(46_800_000n);
    expect(by('2026-11-20T02:00:00Z')).toBe(46_800_000n);
    expect(by('2026-11-24T02:00:00Z')).toBe(46_800_000n);
    expect(by('2026-11-27T21:59:59Z')).toBe(1_900_000n);
    expect(by('2026-11-27T22:00:00Z')).toBe(46_800_000n);
    const prices = [{ models: ['m'], factor: 0.8 }];
    const own = priceOf([{ ...plain, windows }], 'm', {
      startedMs: Date.parse('2026-11-30T01:00:00Z'),
      prices,
    });
    expect(costOf(own, { input: 1200, output: 350 })).toBe(74_880_000n);
  });

  it('can be computed from the text in a ledger row', () => {
    expect(costOf(ruleOfText('1:tokens:0.02:0.1:0.002:0.025:0.04:above=200'), split)).toBe(46_300_000n);
    expect(costOf(ruleOfText('1:tokens:0.018:0.072'), { input: 1200, output: 350 })).toBe(46_800_000n);
    expect(costOf(ruleOfText('2:call:0.05'), split)).toBe(50_000_000n);
    expect(costOf(ruleOfText('2:call:0.05:x0.8'), split)).toBe(40_000_000n);
    expect(costOf(ruleOfText('2:call:0.05:window=x9:x2'), split)).toBe(100_000_000n);
    expect(costOf(ruleOfText('1:tokens:0.018:0.072:x0.4'), { input: 1200, output: 350 })).toBe(18_720_000n);
  });
});

describe('the table of endings', () => {
  const byCall: ChargeText = { id: 2, type: 'times-billing', models: ['by-call'], output: 0.05 };
  const endings = new Endings([plain, byCall], 0.08);
  const asked = (model: string): CallAsked => ({
    account: 'a',
    key: 'k',
    model,
    official: false,
    startedMs: 0,
    inputTokens: 1200,
  });
  const whole: Delivered = {
    failed: false,
    anyContent: true,
    leftEarly: false,
    outputTokens: 350,
    reported: { input: 1200, output: 350 },
  };
  const cut = { ...whole, failed: true };
  const refused = { ...cut, anyContent: false };
  const cases: [string, Delivered, bigint, bigint][] = [
    ['a whole answer', whole, 46_800_000n, 50_000_000n],
    ['a whole answer, but empty', { ...whole, anyContent: false }, 46_800_000n, 0n],
    ['you have disconnected before any content', { ...whole, leftEarly: true }, 46_800_000n, 0n],
    ['a stream breaks off after content, with counts', cut, 46_800_000n, 50_000_000n],
    ['the provider fails before any content', refused, 0n, 0n],
    ['a whole answer with a search', { ...whole, searched: true }, 126_800_000n, 130_000_000n],
    ['the provider fails after a search', { ...refused, searched: true }, 80_000_000n, 80_000_000n],
  ];
  it.each(cases)('%s', (_what, delivered, byTokens, perCall) => {
    expect(endings.cost(asked('m'), delivered)).toEqual({ least: byTokens, most: byTokens });
    expect(endings.cost(asked('by-call'), delivered)).toEqual({ least: perCall, most: perCall });
    expect(endings.cost(asked('unpriced'), delivered).most).toBe(delivered.searched ? 80_000_000n : 0n);
  });
});

it('budgets by tag apply to their name, and * to each other name and to calls without the tag', () => {
  const all = [
    { by: 'tag:team', name: 'search', amount: 5, period: 'month' as const },
    { by: 'tag:team', amount: '0.5', period: 'month' as const },
    { by: 'end_user', name: '', amount: 0, period: 'day' as const },
  ];
  const at = Date.parse('2026-11-20T23:59:59.999Z');
  const of = (tags: Record<string, string>, endUser?: string) =>
    namedBudgets(all, { tags, endUser }, at).map((each) => [each.of, each.period, each.most]);
  expect(of({ team: 'search' }, 'alice')).toEqual([['tag:team search', '2026-11', 5_000_000_000n]]);
  expect(of({ team: 'ads' })).toEqual([
    ['tag:team ads', '2026-11', 500_000_000n],
    ['end_user ', '2026-11-20', 0n],
  ]);
  expect(of({}, 'alice')).toEqual([['tag:team ', '2026-11', 500_000_000n]]);
});

it('months of plans begin on the day of the first month, clamped; days of budgets begin at midnight', () => {
  const since = '2026-01-31T10:00:00Z';
  expect(planMonth(since, Date.parse('2026-02-28T09:59:59Z'))).toBe('2026-01-31');
  expect(planMonth(since, Date.parse('2026-02-28T10:00:00Z'))).toBe('2026-02-28');
  expect(planMonth(since, Date.parse('2026-03-31T10:00:00Z'))).toBe('2026-03-31');
  expect(budgetDay(Date.parse('2026-11-20T23:59:59.999Z'))).toBe('2026-11-20');
});

describe('a background window', () => {
  const rule: ChargeText = { ...plain, service_tiers: { background_2h: 0.7, background_8h: 0.6 } };
  const asked: CallAsked = {
    account: 'a',
    key: 'k',
    model: 'm',
    official: false,
    tier: 'background_8h',
    startedMs: 0,
    inputTokens: 1200,
  };
  const delivered: Delivered = {
    failed: false,
    anyContent: true,
    leftEarly: false,
    outputTokens: 350,
    reported: { input: 1200, output: 350 },
  };
  const endings = new Endings([rule]);

  it.each<[string, WindowEnd, Partial<Delivered>, bigint]>([
    ['the window that was submitted', 'finished', {}, 28_080_000n],
    ['the window that is reported', 'finished', { tier: 'background_2h' }, 32_760_000n],
    ['the standard price, where that is reported', 'finished', { tier: 'default' }, 46_800_000n],
    ['what is reported after a cancel', 'cancelled', {}, 28_080_000n],
    ['nothing after a cancel of which nothing is reported', 'cancelled', { reported: undefined }, 0n],
    ['nothing after a failure', 'failed', {}, 0n],
  ])('costs %s', (_case, end, more, cost) => {
    expect(endings.window(asked, end, { ...delivered, ...more })).toEqual({ least: cost, most: cost });
  });

  it('costs its input, in its window, when its end is unknown', () => {
    const { least, most } = endings.window(asked, 'unknown', delivered);
    expect(least).toBeLessThan(12_960_000n);
    expect(most).toBeGreaterThan(12_960_000n);
    expect(most).toBeLessThan(18_000_000n);
  });
});
