/** View: what an edit of prices or channels would have made of the calls of some days, by public model. Pure. */
import type { NanoYuan } from '../../billing/amount.ts';
import { priceOf } from '../../billing/price-rule.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import type { ServedDay } from '../sum-reader.ts';
import { boughtAround } from './bought-around.ts';
import { isSameAs, minus, nothing, plus, type Bounds } from './bounds.ts';
import { isSamePrice, revenueAround } from './changed-price.ts';
import { isFreeIn, isOffered, unpricedOf, type EditedConfig } from './edited-config.ts';

export interface Edit {
  before: EditedConfig;
  after: EditedConfig;
  served: readonly ServedDay[];
  /** Whether the price of before was that of all these days. */
  isKnown: (model: string) => boolean;
  /** The prices of then are compared. */
  atMs: number;
}

export interface ModelEffect {
  model: string;
  calls: number;
  /** What was charged on these days. */
  charged: NanoYuan;
  revenue: { before: Bounds; after: Bounds };
  bought: { before: Bounds; after: Bounds };
  margin: { before: Bounds; after: Bounds };
  /** Calls whose cost no row says: the margin is without it. */
  unknownCostCalls: number;
  isPriceChanged: boolean;
  /** Nobody serves it any more, so there are no such calls. */
  isLost: boolean;
}

export interface EditEffects {
  /** Those that were called, sorted by name. */
  models: ModelEffect[];
  total: Pick<ModelEffect, 'calls' | 'charged' | 'revenue' | 'bought' | 'margin' | 'unknownCostCalls'>;
  /** Models that lose their last channel. */
  lost: string[];
  /** Models that cost something before and nothing after. */
  free: string[];
  /** Models that are served and that no rule prices after the edit, and were not so before. */
  unpriced: string[];
}

export function editEffects(edit: Edit): EditEffects {
  const { before, after, served, atMs } = edit;
  const days = Map.groupBy(served, ({ model }) => model);
  const models = [...days]
    .map(([model, items]) => modelEffect(edit, model, items))
    .toSorted((a, b) => compareCodeUnits(a.model, b.model));
  const lost = before.models.filter((model) => !after.models.includes(model));
  const unpriced = unpricedOf(after, atMs).filter((model) => !unpricedOf(before, atMs).includes(model));
  const wasFree = (model: string): boolean => !before.models.includes(model) || isFreeIn(before, model, atMs);
  const free = after.models.filter((model) => isFreeIn(after, model, atMs) && !wasFree(model));
  return { models, total: totalOf(models), lost, free, unpriced };
}

function modelEffect({ before, after, isKnown, atMs }: Edit, model: string, items: ServedDay[]): ModelEffect {
  const prices = {
    before: priceOf(before.charges, model, atMs),
    after: priceOf(after.charges, model, atMs),
    isKnown: isKnown(model),
  };
  const isLost = !after.models.includes(model) && before.models.includes(model);
  const isRefused = isLost || (!isOffered(after, model, atMs) && isOffered(before, model, atMs));
  const sums = { revenue: noChange, bought: noChange };
  let calls = 0;
  let charged = 0n;
  let unknownCostCalls = 0;
  for (const { channel, figures } of items) {
    const revenue = revenueAround(prices, figures);
    const { unknownCalls, ...bought } = boughtAround(
      { model, channel, figures },
      { before: before.channels, after: after.channels },
    );
    sums.revenue = added(sums.revenue, isRefused ? { ...revenue, after: nothing } : revenue);
    sums.bought = added(sums.bought, isRefused ? { ...bought, after: nothing } : bought);
    calls += figures.counts.calls ?? 0;
    charged += figures.amounts.charged ?? 0n;
    unknownCostCalls += isRefused ? 0 : unknownCalls;
  }
  const isPriceChanged = !isSamePrice(prices.before, prices.after);
  return { model, calls, charged, ...sums, margin: marginOf(sums), unknownCostCalls, isPriceChanged, isLost };
}

interface Around {
  before: Bounds;
  after: Bounds;
}
const noChange: Around = { before: nothing, after: nothing };

const added = (a: Around, b: Around): Around => ({
  before: plus(a.before, b.before),
  after: plus(a.after, b.after),
});

const marginOf = ({ revenue, bought }: { revenue: Around; bought: Around }): Around => ({
  before: minus(revenue.before, bought.before),
  after: minus(revenue.after, bought.after),
});

function totalOf(models: readonly ModelEffect[]): EditEffects['total'] {
  const total = { calls: 0, charged: 0n, revenue: noChange, bought: noChange, unknownCostCalls: 0 };
  for (const { calls, charged, revenue, bought, unknownCostCalls } of models) {
    total.calls += calls;
    total.charged += charged;
    total.revenue = added(total.revenue, revenue);
    total.bought = added(total.bought, bought);
    total.unknownCostCalls += unknownCostCalls;
  }
  return { ...total, margin: marginOf(total) };
}

/** Whether the edit does anything to the calls of a model. */
export const hasEffect = ({ revenue, bought, isLost, isPriceChanged }: ModelEffect): boolean =>
  isLost ||
  isPriceChanged ||
  !isSameAs(revenue.before, revenue.after) ||
  !isSameAs(bought.before, bought.after);
