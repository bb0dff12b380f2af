import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { sumDaily } from '../../../shared/billing/daily-figures.ts';
import { servedId, parseServedKey } from '../../../shared/billing/daily-keys.ts';
import type { CloseRow } from '../../../shared/billing/ledger-row.ts';
import { emptyRows } from '../../../shared/config/rows/read-table.ts';
import type { ServedDay } from '../../../shared/operate/operator-ports.ts';
import { editEffects } from '../../../shared/operate/what-if/edit-effects.ts';
import { timeText } from '../../../shared/wire/ids.ts';
import { costOf, ruleAt, ruleIn, ruleOf, servedIn, type ChargeText } from '../../oracle/price-list.ts';
import { compile } from '../config/rows.ts';

const atMs = Date.parse('2026-11-20T12:00:00Z');
const models = ['a', 'b'];

/** Some rates are whole nano-yuan per token, and some are not. */
const rate = fc.constantFrom(0, 0.001, 0.018, 0.0000017, 0.072, 0.00000033);
const rates = fc.record({
  input: rate,
  output: rate,
  cached_input: fc.option(rate, { nil: undefined }),
  cache_write: fc.option(rate, { nil: undefined }),
});
const rule = fc
  .record({
    type: fc.constantFrom('token-billing' as const, 'times-billing' as const, 'non-billing' as const),
    own: rates,
    higher: fc.option(rates, { nil: undefined }),
    models: fc.subarray(models),
    service_tiers: fc.option(fc.constantFrom({ flex: 0.5 }, { flex: 0.333_333, priority: 2.5 }), {
      nil: undefined,
    }),
    hours: fc.option(fc.constantFrom(0.5, 1.5), { nil: undefined }),
  })
  .map(({ type, own, higher, models: named, service_tiers, hours }) => {
    const tiers = type === 'token-billing' && higher ? [{ ...higher, above: 500 }] : undefined;
    const windows = hours && [
      { name: 'peak', from: '09:00', to: '12:00', zone: 'Asia/Shanghai', factor: hours },
    ];
    return Object.assign({ type, models: named, tiers, service_tiers, windows }, own);
  });
const list = fc
  .array(rule, { maxLength: 3 })
  .map((rules) => rules.map((each, at): ChargeText => JSON.parse(JSON.stringify({ ...each, id: at + 1 }))));

const call = fc.record({
  model: fc.constantFrom(...models),
  day: fc.integer({ min: 14, max: 20 }),
  channel: fc.constantFrom('x', 'y#1'),
  input: fc.nat(2000),
  output: fc.nat(900),
  cached: fc.nat(100),
  written: fc.nat(100),
  tier: fc.constantFrom('flex', 'priority', undefined),
  factor: fc.constantFrom(undefined, 0.8, 1.25),
  hour: fc.integer({ min: 0, max: 23 }),
  how: fc.constantFrom('paid', 'paid', 'paid', 'left', 'plan', 'official', 'released', 'expired'),
});
type Call = typeof call extends fc.Arbitrary<infer Made> ? Made : never;

const tokensOf = ({ input, output, cached, written }: Call) => ({
  input: input + cached + written,
  output,
  cached,
  written,
});

/** Computed only from the documentation. */
function dueOf(rules: readonly ChargeText[], each: Call): bigint {
  const { model, how, tier, factor, hour } = each;
  const own = factor === undefined ? [] : [{ models: ['*'], factor }];
  const rule = ruleIn(ruleAt(rules, model, atMs), Date.UTC(2026, 10, 20, hour));
  const found = servedIn(ruleOf(rule, model, own), { asked: tier, reported: tier });
  if (how === 'paid') return costOf(found, tokensOf(each));
  // A client that leaves before the first content pays tokens, but no price per call.
  if (how === 'left') return found?.type === 'times-billing' ? 0n : costOf(found, tokensOf(each));
  return how === 'expired' && found?.type === 'token-billing'
    ? costOf(found, { input: each.input, output: 0 })
    : 0n;
}

function rowOf(each: Call, at: number, charge: bigint): CloseRow {
  const { model, day, channel, input, output, cached, written, how } = each;
  const kind = how === 'released' || how === 'expired' ? how : 'settled';
  return {
    account: 'acme',
    id: timeText(Date.parse(`2026-11-${day}T10:00:00Z`)) + String(at).padStart(16, '0'),
    at: '2026-11-20T11:00:00Z',
    kind,
    model,
    key: '0123456789ab',
    charge,
    reserved: 0n,
    price: '1:free',
    channel,
    ...(kind === 'settled' && {
      prompt_tokens: input + cached + written,
      completion_tokens: output,
      cached_tokens: cached,
      cache_write_tokens: written,
    }),
    ...(how === 'plan' && { plan_slot: 'chat@2026-11-01' }),
    ...(how === 'official' && { official: true as const }),
  };
}

const servedBy = (rows: CloseRow[]): ServedDay[] =>
  sumDaily(rows).flatMap(({ key, figures }) =>
    key.id === servedId ? [{ ...parseServedKey(key), figures }] : [],
  );

const configOf = (charges: readonly ChargeText[]) =>
  compile({
    ...emptyRows,
    channels: ['x', 'y#1'].map((id) => ({ id, endpoint: 'https://api.example.com/v1', models, state: true })),
    charges: [...charges],
  }).snapshot;

const run = (calls: Call[], { before, after }: { before: ChargeText[]; after: ChargeText[] }) =>
  editEffects({
    before: configOf(before),
    after: configOf(after),
    served: servedBy(calls.map((each, at) => rowOf(each, at, dueOf(before, each)))),
    atMs,
    customers: [...new Set(calls.map(({ factor }) => factor))].flatMap((factor) =>
      factor === undefined ? [] : [{ prices: [{ models: ['*'], factor }] }],
    ),
  });

const sumOver = (calls: Call[], rules: ChargeText[]): bigint =>
  calls.reduce((sum, each) => sum + dueOf(rules, each), 0n);

const withoutExpired = (calls: Call[]): Call[] => calls.filter(({ how }) => how !== 'expired');
const isBetween = (due: bigint, { low, high }: { low: bigint; high: bigint }): boolean =>
  low <= due && due <= high;

describe('the estimated effect of an edit on past calls, from their sums,', () => {
  it('is exactly the charged amount for an unchanged configuration', () => {
    fc.assert(
      fc.property(fc.array(call), list, (calls, rules) => {
        const { total, models: effects, ...marks } = run(calls, { before: rules, after: rules });
        const due = sumOver(calls, rules);
        expect(total.revenue.after).toEqual({ low: due, high: due });
        expect(total.revenue.before).toEqual(total.revenue.after);
        expect(marks).toEqual({ lost: [], free: [], unpriced: [] });
        for (const { model, revenue } of effects)
          expect(revenue.after.low).toBe(
            sumOver(
              calls.filter((each) => each.model === model),
              rules,
            ),
          );
      }),
    );
  });

  it('contains the cost of the same calls by other rules within its bounds', () => {
    fc.assert(
      fc.property(fc.array(call), list, list, (all, before, after) => {
        const calls = withoutExpired(all);
        const { models: effects } = run(calls, { before, after });
        for (const { model, revenue } of effects) {
          const own = calls.filter((each) => each.model === model);
          expect(isBetween(sumOver(own, before), revenue.before)).toBe(true);
          expect(isBetween(sumOver(own, after), revenue.after)).toBe(true);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('is exact for whole nano-yuan prices without tiers or customer prices', () => {
    const before = [{ id: 1, type: 'token-billing' as const, models, input: 0.018, output: 0.072 }];
    const after = [
      {
        ...before[0],
        id: 1,
        type: 'token-billing' as const,
        models,
        input: 0.001,
        cached_input: 0,
        output: 0.5,
      },
    ];
    fc.assert(
      fc.property(fc.array(call), (all) => {
        const calls = withoutExpired(all).map((each) => Object.assign({}, each, { factor: undefined }));
        const { revenue } = run(calls, { before, after }).total;
        const due = sumOver(calls, after);
        expect(revenue.after).toEqual({ low: due, high: due });
      }),
    );
  });
});
