/**
 * Warnings about prices. A price per million tokens that was typed as one per 1,000 is a thousand times too high: the channel's cost
 * shows it, or else the model's names. Small models have been sold for up to 0.02 yuan per 1,000 tokens of input, others for up to
 * 0.11, a few for 1.1; in any currency, prices per million start at 0.05. And an edit may change a price by much.
 */
import {
  findBuyingPrice,
  applyServiceTier,
  findFactor,
  factorOne,
  priceKinds,
  type BuyingPrice,
  type WrittenRates,
  findPrice,
  findRule,
  startMsOf,
  priceDecimals,
  formatRatePerMillion,
  findTier,
  type PicoYuan,
  type Price,
} from '../billing/price.ts';
import { formatDecimal } from '../billing/money.ts';
import { upstreamModelOf } from '../upstreams/called-channel.ts';
import type { ChannelRow } from './rows/channel-row.ts';
import type { ChargeRow } from './rows/charge-row.ts';
import { canonicalJson, listTexts } from '../wire/json.ts';
import { isoTime } from '../wire/iso-time.ts';
import { keyAttributes, joinNames } from './rows/read-table.ts';
import { attributeOf } from './rows/read-row.ts';

interface Limits {
  input: number;
  output: number;
}

/** Prices in yuan per 1,000 tokens that get a warning. Each leaves room for a markup on the dearest of its kind. */
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

/** Long contexts may cost twice as much. */
const tierFactor = 2;
/** A price of 100 times the cost is a mistake: a price per million entered as one per thousand is 1,000 times too high. */
const costFactor = 100;
/** The dearest service tier of November 2026 costs six times the standard price. */
const usualFactor = 10;

export const findChargeWarnings = (charge: ChargeRow, channels: readonly ChannelRow[]): string[] =>
  charge.type === 'token-billing'
    ? findWarnings(
        charge,
        charge.models.map((model) => findKnown(model, channels)),
      )
    : [];

export const findCostWarnings = ({ cost = {} }: Pick<ChannelRow, 'cost'>): string[] =>
  Object.entries(cost).flatMap(([model, entry]) =>
    findWarnings(entry, [{ model, limits: findLimits([model]), cost: false }], `cost.${model}.`),
  );

type Prices = Pick<BuyingPrice, keyof WrittenRates | 'tiers' | 'service_tiers' | 'windows' | 'rate'> & {
  currency?: string | undefined;
};

function findWarnings(prices: Prices, candidates: readonly Known[], prefix = ''): string[] {
  const { currency = 'yuan', rate = 1, service_tiers = {} } = prices;
  const ofTiers = Object.entries(service_tiers).flatMap(([name, factor]) => {
    const means = `${factor} is a factor, so these calls cost ${factor} times the standard price`;
    return factor > usualFactor ? [`${prefix}service_tiers.${name}: ${means}`] : [];
  });
  const ofPrices = listPrices(prices).flatMap(({ attribute, kind, price, factor }) => {
    const found = candidates.find(({ limits }) => price * rate >= limits[kind] * factor);
    if (!found) return [];
    const { model, limits } = found;
    const isSmall = !found.cost && limits.input < usual.input;
    const over = found.cost ? `exceeds ${costFactor} times the cost of ${model} and ` : '';
    const here = Number((price / 1000).toPrecision(12));
    return [
      `${prefix}${attribute}: ${price} ${currency} per 1,000 tokens ${over}looks like a price per million tokens${isSmall ? ` for ${model}` : ''}; in that case write ${here}`,
    ];
  });
  return [...ofPrices, ...ofTiers];
}

interface Known {
  model: string;
  limits: Limits;
  /** The limits come from a channel's cost. */
  cost: boolean;
}

function findKnown(model: string, channels: readonly ChannelRow[]): Known {
  const serving = channels.filter(({ models }) => models.includes(model));
  const costs = serving.flatMap(({ cost, ...channel }) => {
    const { input, output, rate = 1 } = findBuyingPrice(cost, upstreamModelOf(channel, model)) ?? {};
    return input && output ? [{ input: input * rate, output: output * rate }] : [];
  });
  if (costs.length > 0) {
    const most = (kind: keyof Limits): number => Math.max(...costs.map((cost) => cost[kind])) * costFactor;
    return { model, limits: { input: most('input'), output: most('output') }, cost: true };
  }
  const names = [model, ...serving.map((channel) => upstreamModelOf(channel, model))];
  return { model, limits: findLimits(names), cost: false };
}

const findLimits = (names: string[]): Limits =>
  kinds.find((kind) => names.some((name) => kind.names.test(name))) ?? usual;

interface NamedPrice {
  attribute: string;
  kind: keyof Limits;
  price: number;
  factor: number;
}

const listPrices = ({ tiers = [], windows = [], ...prices }: Prices): NamedPrice[] => [
  ...listRates(prices, '', 1),
  ...windows.flatMap((hours, at) => listRates(hours, `windows[${at}].`, 1)),
  ...tiers.flatMap((tier, at) => listRates(tier, `tiers[${at}].`, tierFactor)),
];

const listRates = (prices: Partial<WrittenRates>, prefix: string, factor: number): NamedPrice[] =>
  priceKinds.flatMap(([name]) => {
    const price = prices[name];
    const kind = name === 'output' ? 'output' : 'input';
    return price === undefined ? [] : [{ attribute: prefix + name, kind, price, factor }];
  });

// A rule gets a warning when it changes the price of a model by much, makes it free, or begins in the past, compared with the newest
// published version. Later compiles find nothing changed, so they keep the warning of the row until a day after the price begins.

const shownMs = 24 * 60 * 60 * 1000;
/** An edit may be published minutes later. */
const lateMs = 10 * 60 * 1000;

interface ChargesAround {
  charges: readonly ChargeRow[];
  /** The version before, sorted by id. */
  before: readonly ChargeRow[];
  /** The rows of the table, with their warnings. */
  raw: readonly unknown[];
  nowMs: number;
}

export function findPriceJumps({ charges, before, raw, nowMs }: ChargesAround): Map<number, string[]> {
  const old = new Map(before.map((rule) => [rule.id, canonicalJson(rule)]));
  const marks = new Map(
    raw.map((row) => [attributeOf(row, keyAttributes.charges), attributeOf(row, '_warning')]),
  );
  return new Map(
    charges.map((rule) => [
      rule.id,
      old.get(rule.id) === canonicalJson(rule)
        ? keepRecent(marks.get(rule.id), nowMs)
        : findJumps(rule, { charges, before, nowMs }),
    ]),
  );
}

const form = /^(?:models|from): at (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) /;

const keepRecent = (mark: unknown, nowMs: number): string[] =>
  typeof mark === 'string'
    ? mark.split('; ').filter((each) => nowMs < Date.parse(form.exec(each)?.[1] ?? '') + shownMs)
    : [];

function findJumps(rule: ChargeRow, { charges, before, nowMs }: Omit<ChargesAround, 'raw'>): string[] {
  const atMs = Math.max(nowMs, startMsOf(rule));
  const models = [...new Set(rule.models)].filter(
    (model) => findRule(charges, model, atMs) === rule && findRule(before, model, atMs) !== undefined,
  );
  const late = isLate(rule, before, nowMs) && models.length > 0;
  const jumps = Map.groupBy(models, (model) =>
    describeJump(findPrice(before, model, atMs), findPrice(charges, model, atMs)),
  );
  jumps.delete('');
  return listTexts(
    late &&
      `from: at ${isoTime(nowMs)} this time (${isoTime(startMsOf(rule))}) was already past, so the price took effect at once`,
    ...[...jumps].map(
      ([jump, names]) => `models: at ${isoTime(atMs)} the price of ${joinNames(names)} ${jump}`,
    ),
  );
}

/** The operator typed a time for a new price that was over at its publication. */
const isLate = ({ id, from }: ChargeRow, before: readonly ChargeRow[], nowMs: number): boolean =>
  from !== undefined && from < nowMs - lateMs && before.find((rule) => rule.id === id)?.from !== from;

const jumpPercent = 30;

interface NamedRate {
  name: string;
  old: bigint;
  next: bigint;
}

/** Returns an empty text if the price does not jump. */
function describeJump(before: Price, after: Price): string {
  const wasFree = pairRates(before, before).every(({ old }) => old === 0n);
  const isFree = pairRates(after, after).every(({ old }) => old === 0n);
  if (isFree) return wasFree ? '' : 'drops to zero: calls are free';
  if (wasFree) return 'is new: calls were free before';
  if (before.type !== after.type) return `changes from ${before.type} to ${after.type}`;
  const [worst] = pairRates(before, after)
    .filter(({ old, next }) => isJump(old, next))
    .toSorted((a, b) => percentOf(b) - percentOf(a));
  if (!worst) return '';
  const { name, old, next } = worst;
  const verb = next > old ? 'rises' : 'falls';
  const size = old === 0n ? `${verb} from nothing` : `${verb} by ${percentOf(worst)} %`;
  return `${size}: ${name} ${formatChange(before, old, next)}`;
}

const isJump = (old: bigint, next: bigint): boolean =>
  computeSize(next - old) * 100n > old * BigInt(jumpPercent);

const computeSize = (value: bigint): bigint => (value < 0n ? -value : value);

const percentOf = ({ old, next }: NamedRate): number =>
  old === 0n ? Infinity : Number((computeSize(next - old) * 100n) / old);

/** People see prices of tokens per million. */
const formatChange = ({ type }: Price, old: PicoYuan, next: PicoYuan): string =>
  type === 'times-billing'
    ? `${formatDecimal(old, priceDecimals)} to ${formatDecimal(next, priceDecimals)} yuan`
    : `${formatRatePerMillion(old)} to ${formatRatePerMillion(next)} yuan per million tokens`;

function pairRates(before: Price, after: Price): NamedRate[] {
  if (before.type === 'times-billing' && after.type === 'times-billing')
    return [
      {
        name: 'a call',
        old: (before.perCall * findFactor(before)) / factorOne,
        next: (after.perCall * findFactor(after)) / factorOne,
      },
    ];
  if (before.type !== 'token-billing' || after.type !== 'token-billing') return [];
  const lengths = [...before.tiers, ...after.tiers].map(({ above }) => above);
  // A service tier without a price before served no calls.
  const { factors = {} } = before;
  const kept = Object.keys(after.factors ?? {}).filter((tier) => Object.hasOwn(factors, tier));
  return [undefined, ...kept].flatMap((tier) =>
    [...new Set(lengths)].flatMap((above) => {
      const old = findTier(before.tiers, above + 1).rates;
      const next = findTier(after.tiers, above + 1).rates;
      return priceKinds.map(([name, kind]) => ({
        name: `${name}${above > 0 ? ` above ${above}` : ''}${tier ? ` in ${tier}` : ''}`,
        old: (old[kind] * findFactor(applyServiceTier(before, tier))) / factorOne,
        next: (next[kind] * findFactor(applyServiceTier(after, tier))) / factorOne,
      }));
    }),
  );
}
