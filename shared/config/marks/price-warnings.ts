/**
 * Prices that look like prices per million tokens, typed where prices per 1,000 belong: they are a thousand times too
 * high. Where a channel says what it pays, that decides. Else the model's names do: small models have been sold for up
 * to 0.02 yuan per 1,000 tokens of input, others for up to 0.11, a few for 1.1, in any currency's list the digits of
 * the price per million start at 0.05.
 */
import { buyingPriceOf } from '../../billing/price-rule.ts';
import { upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import type { ChannelRow } from '../rows/channel-row.ts';
import type { ChargeRow } from '../rows/charge-row.ts';

interface Limits {
  input: number;
  output: number;
}

/** From these yuan per 1,000 tokens on a price is doubted. Each leaves room for a markup on the dearest of its kind. */
const usual: Limits = { input: 0.2, output: 1 };
const kinds: readonly (Limits & { names: RegExp })[] = [
  {
    names: /(^|[^a-z])(mini|nano|micro|tiny|small|flash|lite|haiku|instant)([^a-z]|$)/i,
    input: 0.05,
    output: 0.15,
  },
  {
    names: /opus|ultra|deep-research|(^|[^a-z])o\d+-pro|gpt-[5-9][\d.]*-pro|gpt-4(\.5|-32k|-\d{4}|$)/i,
    input: 2,
    output: 8,
  },
];

/** A price of a long context may be twice the one below it. */
const tierFactor = 2;
/** Nobody sells at a hundred times what it costs; a price per million is a thousand times as high. */
const costFactor = 100;

type Prices = Pick<ChargeRow, 'cached_input' | 'cache_write' | 'cache_write_1h' | 'tiers'> & {
  input?: number | undefined;
  output?: number | undefined;
};
type RatePrices = Omit<Prices, 'tiers'>;

/** Of one billing rule. `channels`: those that are on. */
export function chargeDoubts(charge: ChargeRow, channels: readonly ChannelRow[]): string[] {
  if (charge.type !== 'token-billing') return [];
  const known = charge.models.map((model) => knownOf(model, channels));
  return pricesOf(charge).flatMap(({ attribute, kind, price, factor }) => {
    const found = known.find(({ limits }) => price >= limits[kind] * factor);
    if (!found) return [];
    const why = found.cost
      ? `is over ${costFactor} times the cost of ${found.model} and looks like a price per million tokens`
      : doubtOf(found.model, found.limits);
    return [`${attribute}: ${price} yuan per 1,000 tokens ${why}; that would be ${thousandth(price)} here`];
  });
}

/** Of what a channel says that it pays. */
export function costDoubts({ cost = {} }: Pick<ChannelRow, 'cost'>): string[] {
  return Object.entries(cost).flatMap(([model, entry]) => {
    const { currency = 'yuan', rate = 1 } = entry;
    const limits = limitsOf([model]);
    return pricesOf(entry)
      .filter(({ kind, price, factor }) => price * rate >= limits[kind] * factor)
      .map(
        ({ attribute, price }) =>
          `cost.${model}.${attribute}: ${price} ${currency} per 1,000 tokens ${doubtOf(model, limits)}; that would be ${thousandth(price)} here`,
      );
  });
}

const thousandth = (price: number): number => Number((price / 1000).toPrecision(12));

const doubtOf = (model: string, limits: Limits): string =>
  `looks like a price per million tokens${limits.input < usual.input ? ` for ${model}` : ''}`;

interface Known {
  model: string;
  limits: Limits;
  /** The limits follow from what a channel pays. */
  cost: boolean;
}

/** The highest limits that channels which serve the model give. */
function knownOf(model: string, channels: readonly ChannelRow[]): Known {
  const serving = channels.filter(({ models }) => models.includes(model));
  const costs = serving.flatMap(({ cost, ...channel }) => {
    const { input, output, rate = 1 } = buyingPriceOf(cost, upstreamModel(channel, model)) ?? {};
    return input && output ? [{ input: input * rate, output: output * rate }] : [];
  });
  if (costs.length > 0) {
    const most = (kind: keyof Limits): number => Math.max(...costs.map((cost) => cost[kind])) * costFactor;
    return { model, limits: { input: most('input'), output: most('output') }, cost: true };
  }
  const names = [model, ...serving.map((channel) => upstreamModel(channel, model))];
  return { model, limits: limitsOf(names), cost: false };
}

const limitsOf = (names: string[]): Limits =>
  kinds.find((kind) => names.some((name) => kind.names.test(name))) ?? usual;

interface DoubtedPrice {
  attribute: string;
  kind: keyof Limits;
  price: number;
  factor: number;
}

const pricesOf = ({ tiers = [], ...prices }: Prices): DoubtedPrice[] => [
  ...ratesOf(prices, '', 1),
  ...tiers.flatMap((tier, at) => ratesOf(tier, `tiers[${at}].`, tierFactor)),
];

function ratesOf(
  { input, output, cached_input, cache_write, cache_write_1h }: RatePrices,
  prefix: string,
  factor: number,
): DoubtedPrice[] {
  return Object.entries({ input, output, cached_input, cache_write, cache_write_1h }).flatMap(
    ([name, price]) => {
      const kind = name === 'output' ? 'output' : 'input';
      return price === undefined ? [] : [{ attribute: prefix + name, kind, price, factor }];
    },
  );
}
