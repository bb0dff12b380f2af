/** Warns if a rule, customer or price group sells tokens for less than a channel costs. */
import {
  convertToPico,
  factorDecimals,
  buildBuyingPrice,
  findBuyingPrice,
  findFactor,
  priceDecimals,
  priceKinds,
  findRule,
  type BuyingPrice,
  type Price,
  type PriceWindow,
} from '../billing/price.ts';
import { formatDecimal } from '../billing/money.ts';
import { upstreamModelOf } from '../upstreams/called-channel.ts';
import { matchesAny } from '../upstreams/channel-type.ts';
import { findOpenWindow, listChanges } from '../billing/schedule.ts';
import { isoTime } from '../wire/iso-time.ts';
import {
  findCallerPrice,
  findPriceGroup,
  matchesModel,
  listCustomerTerms,
  listScheduledEntries,
  type ScheduledEntry,
  type PricedCustomer,
} from './customer-prices.ts';
import { AccountRow } from './rows/account-row.ts';
import type { ChannelRow } from './rows/channel-row.ts';
import { readRow } from './rows/read-row.ts';
import { joinNames } from './rows/read-table.ts';
import type { Snapshot } from './snapshot.ts';

type Config = Pick<Snapshot, 'channels' | 'charges' | 'settings' | 'models'>;

interface Sales {
  /** The attribute to edit. The warning begins with it. */
  attribute: string;
  models: readonly string[];
  /** Returns undefined if another row sets the price at that time, because that row gets the warning. */
  priceOf: (model: string, atMs: number) => Price | undefined;
  windowsOf: (model: string) => readonly PriceWindow[];
  /** Lists when the price changes for other reasons. */
  datesOf?: (model: string) => readonly number[];
  /** Returns everything that the price depends on. Models with equal terms and costs are checked once. */
  termsOf?: (model: string) => unknown;
  channels: readonly ChannelRow[];
  nowMs: number;
}

/** Reports the largest loss of each kind of tokens at any moment of a week, from now on and from each announced change on. */
export function findLossWarnings({ attribute, models, ...sales }: Sales): string[] {
  const costs = new Map(models.map((model) => [model, findCosts(model, sales.channels)]));
  // A week with windows takes 20 ms.
  const known = new Map<string, string>();
  const losses = Map.groupBy(models, (model) => {
    const key = JSON.stringify([sales.termsOf?.(model), costs.get(model)]);
    const loss = known.get(key) ?? describeLoss(model, costs.get(model) ?? [], sales) ?? '';
    known.set(key, loss);
    return loss;
  });
  losses.delete('');
  return [...losses].map(([loss, names]) => `${attribute}: ${joinNames(names)} ${loss}`);
}

interface ChannelCost {
  id: string;
  cost: BuyingPrice;
}

const findCosts = (model: string, channels: readonly ChannelRow[]): ChannelCost[] =>
  channels.flatMap((channel) => {
    const cost = channel.models.includes(model)
      ? findBuyingPrice(channel.cost, upstreamModelOf(channel, model))
      : undefined;
    return cost ? [{ id: channel.id, cost }] : [];
  });

/** The most times to check. Later changes are checked in time, because rows are compiled every 5 minutes. */
const datesMax = 5;

/** Warns about the prices in an account's row or a price group. */
export function findCustomerWarnings(
  attribute: string,
  customer: PricedCustomer,
  config: Config,
  nowMs: number,
): string[] {
  const { price_group: group } = customer;
  const isUnknown = group !== undefined && findPriceGroup(config.settings, group) === undefined;
  const { charges, channels, settings } = config;
  const ahead = new Map(
    config.models.map((model) => [model, listScheduledEntries(settings, customer, model, nowMs)]),
  );
  const isOwn = (model: string): boolean => ahead.get(model)?.some(({ entry }) => entry) === true;
  return [
    ...(isUnknown ? [`price_group: the setting price_groups has no ${group}, so it changes no price`] : []),
    ...findUnknownModels(attribute, customer, config, nowMs),
    ...findIneffectiveEntries(attribute, customer, ahead, nowMs),
    ...findLossWarnings({
      attribute,
      models: config.models.filter(isOwn),
      priceOf: (model, atMs) =>
        listCustomerTerms(settings, customer, model, atMs).length > 0
          ? findCallerPrice(config, customer, model, atMs)
          : undefined,
      windowsOf: (model) => findRule(charges, model, nowMs)?.windows ?? [],
      datesOf: (model) => (ahead.get(model) ?? []).slice(0, datesMax).map(({ fromMs }) => fromMs),
      termsOf: (model) => [charges.filter((rule) => rule.models.includes(model)), ahead.get(model)],
      channels,
      nowMs,
    }),
  ];
}

/** Warns about names that are typing mistakes, or models that come later. */
function findUnknownModels(
  attribute: string,
  { prices = [] }: PricedCustomer,
  { charges, channels, models }: Config,
  nowMs: number,
): string[] {
  if (prices.length === 0) return [];
  const known = [...models, ...[...charges, ...channels].flatMap((row) => row.models)];
  return prices.flatMap((entry, at) => {
    // The models of a former price may be gone.
    if (entry.until !== undefined && entry.until <= nowMs) return [];
    const unknown = entry.models.filter((pattern) => !matchesAny(pattern, known));
    return unknown.length > 0
      ? [`${attribute}[${at}].models: no rule or channel has ${joinNames(unknown)}`]
      : [];
  });
}

/** Warns about entries that never apply: they have ended, or an earlier entry applies to the same models, such as the one to replace. */
const findIneffectiveEntries = (
  attribute: string,
  { prices = [] }: PricedCustomer,
  ahead: ReadonlyMap<string, readonly ScheduledEntry[]>,
  nowMs: number,
): string[] => {
  const used = new Set([...ahead.values()].flat().map(({ entry }) => entry));
  return prices.flatMap((entry, at) => {
    if (used.has(entry) || ![...ahead.keys()].some((model) => matchesModel(entry, model))) return [];
    const hasEnded = entry.until !== undefined && entry.until <= nowMs;
    return [
      `${attribute}[${at}]: has no effect, because ${hasEnded ? 'it has ended' : 'an earlier entry applies to its models'}`,
    ];
  });
};

export function findAccountWarnings(raw: unknown, config: Config & Pick<Snapshot, 'publishedAt'>): string[] {
  const reading = readRow(AccountRow, raw);
  return 'row' in reading
    ? findCustomerWarnings('prices', reading.row, config, config.publishedAt * 1000)
    : [];
}

/** Both sides are in units of 10^-30 yuan per 1,000 tokens. */
const decimals = priceDecimals + factorDecimals;

/** Compares only prices that the channel's cost names, in the standard service tier and for short inputs. */
function describeLoss(
  model: string,
  costs: readonly ChannelCost[],
  { priceOf, windowsOf, datesOf, nowMs }: Omit<Sales, 'attribute' | 'models'>,
): string | undefined {
  if (costs.length === 0) return undefined;
  const schedules = [windowsOf(model), ...costs.map(({ cost }) => cost.windows ?? [])];
  const dates = datesOf?.(model) ?? [nowMs];
  const losses = dates
    .flatMap((date) => listChanges(schedules, date))
    .flatMap((atMs) => {
      const price = priceOf(model, atMs);
      return costs.flatMap((each) => compareRates(price, each, atMs));
    })
    .toSorted((a, b) => (a.loss < b.loss ? 1 : -1));
  const [first, ...others] = [...Map.groupBy(losses, ({ name }) => name).values()].flatMap(([worst]) => {
    if (!worst) return [];
    const [sold, bought, loss] = [worst.sold, worst.bought, worst.loss].map(formatPerMillion);
    const sinceMs = dates.findLast((date) => date <= worst.atMs) ?? nowMs;
    const since = sinceMs > nowMs ? ` from ${isoTime(sinceMs)}` : '';
    const when = since + (worst.window === undefined ? '' : ` in the window ${worst.window}`);
    const text = `¥${sold} per million ${worst.name} tokens, channel ${worst.channel} costs ¥${bought}, a loss of ¥${loss}`;
    return { when, text };
  });
  if (!first) return undefined;
  const more = others.map(({ when, text }) => `, and${when === first.when ? '' : when} ${text}`);
  return `sold below cost${first.when}: ${first.text}${more.join('')}`;
}

function compareRates(price: Price | undefined, { id, cost }: ChannelCost, atMs: number) {
  if (price?.type !== 'token-billing') return [];
  const [{ rates }] = price.tiers;
  const open = findOpenWindow(cost.windows, atMs);
  const buying = buildBuyingPrice(cost, open);
  const yuan = convertToPico(buying.rate ?? 1);
  return priceKinds.flatMap(([name, kind]) => {
    const rate = buying[name];
    // Most kinds have no cost, and converting their zeros took most of the time.
    if (rate === undefined) return [];
    const pico = convertToPico(rate) * yuan;
    const bought = (pico * buying.factor) / 10n ** BigInt(2 * priceDecimals + factorDecimals - decimals);
    const sold = rates[kind] * findFactor(price);
    return bought > sold
      ? [{ channel: id, name, sold, bought, loss: bought - sold, window: open?.name ?? price.window, atMs }]
      : [];
  });
}

const formatPerMillion = (amount: bigint): string => formatDecimal(amount * 1_000n, decimals);
