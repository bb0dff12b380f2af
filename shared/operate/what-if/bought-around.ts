/** What calls cost the operator by the rows of channels before and after an edit, when only their sums are known. Pure. */
import { divideHalfUp } from '../../billing/amount.ts';
import type { DailyFigures } from '../../billing/daily/daily-figures.ts';
import { servedKey, servedOf } from '../../billing/daily/sum-keys.ts';
import { tiersOf, toPico } from '../../billing/price.ts';
import { buyingPriceOf, type BuyingPrice } from '../../billing/price-rule.ts';
import type { ChannelRow } from '../../config/rows/channel-row.ts';
import { upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';
import { exactly, nothing, oneOf, type Bounds } from './bounds.ts';
import { sumBounds } from './charge-bounds.ts';
import { allUsage } from './paid-usage.ts';

type Channels = readonly ChannelRow[];

export interface BoughtAround {
  before: Bounds;
  /** Calls whose channel is gone are taken by any other one that serves the model. */
  after: Bounds;
  /** Calls whose cost no row says after the edit. */
  unknownCalls: number;
}

export interface ServedBy {
  model: string;
  /** Undefined: no channel was tried. */
  channel: string | undefined;
  figures: DailyFigures;
}

export function boughtAround(
  { model, channel, figures }: ServedBy,
  { before, after }: { before: Channels; after: Channels },
): BoughtAround {
  const actual = exactly(figures.amounts.bought ?? 0n);
  const calls = figures.counts.calls ?? 0;
  const unsaid = calls - (figures.counts.bought_calls ?? 0);
  if (channel === undefined) return { before: actual, after: actual, unknownCalls: 0 };
  // An item has the first characters of a long id.
  const is = ({ id }: ChannelRow): boolean => servedOf(servedKey('', model, id)).channel === channel;
  const stays = serving(after, model).find(is);
  const old = before.find(is);
  // What was off or gone before is not this edit's doing.
  const isGone = !stays && !serving(before, model).some(is);
  if (isGone || (stays && old && isSameCost(costOf(old, model), costOf(stays, model))))
    return { before: actual, after: actual, unknownCalls: unsaid };
  const takers = stays ? [stays] : serving(after, model);
  const costs = takers.flatMap((taker) => costOf(taker, model) ?? []);
  if (costs.length === 0)
    return { before: actual, after: nothing, unknownCalls: takers.length > 0 ? calls : 0 };
  return {
    before: actual,
    after: oneOf(costs.map((cost) => costBounds(cost, figures))),
    unknownCalls: costs.length < takers.length ? calls : 0,
  };
}

const serving = (channels: Channels, model: string): ChannelRow[] =>
  channels.filter(({ models }) => models.includes(model));

const costOf = (channel: ChannelRow, model: string): BuyingPrice | undefined =>
  buyingPriceOf(channel.cost, upstreamModel(channel, model));

const isSameCost = (a: BuyingPrice | undefined, b: BuyingPrice | undefined): boolean =>
  canonicalJson(a ?? null) === canonicalJson(b ?? null);

/** Each call is rounded once. */
function costBounds(
  { input = 0, output = 0, per_call = 0, rate = 1, ...price }: BuyingPrice,
  figures: DailyFigures,
): Bounds {
  const usage = allUsage(figures);
  const sums = sumBounds(tiersOf({ ...price, input, output }), usage);
  const perCalls = BigInt(usage.calls) * toPico(per_call) * 1_000n;
  const inYuan = (sum: bigint): bigint => divideHalfUp(sum * toPico(rate), 1_000_000n * toPico(1));
  const rounding = BigInt(Math.ceil(usage.calls / 2));
  const low = inYuan(sums.low) - rounding;
  return { low: low > 0n ? low : 0n, high: inYuan(sums.high + perCalls) + rounding };
}
