/** Warnings about prices by tokens that are below what a channel costs, of rules, customers and groups. */
import {
  convertToPico,
  factorDecimals,
  findBuyingPrice,
  findFactor,
  formatDecimal,
  priceDecimals,
  priceKinds,
  type Price,
} from '../billing/price.ts';
import { upstreamModelOf } from '../upstreams/called-channel.ts';
import { findCallerPrice, findPriceGroup, type PricedCustomer } from './customer-prices.ts';
import { AccountRow } from './rows/account-row.ts';
import type { ChannelRow } from './rows/channel-row.ts';
import { readRow } from './rows/read-row.ts';
import { joinNames } from './rows/read-table.ts';
import type { Snapshot } from './snapshot.ts';

type Config = Pick<Snapshot, 'channels' | 'charges' | 'settings' | 'models'>;

/** @param attribute what an operator would edit */
export function findLossWarnings(
  attribute: string,
  models: readonly string[],
  priceOf: (model: string) => Price,
  channels: readonly ChannelRow[],
): string[] {
  const losses = Map.groupBy(models, (model) => describeLoss(model, priceOf(model), channels) ?? '');
  losses.delete('');
  return [...losses].map(([loss, names]) => `${attribute}: ${joinNames(names)} ${loss}`);
}

/** Warnings of the prices that a group or an account's row sets. */
export function findCustomerWarnings(
  attribute: string,
  customer: PricedCustomer,
  config: Config,
  nowMs: number,
): string[] {
  const { price_group: group } = customer;
  const isUnknown = group !== undefined && findPriceGroup(config.settings, group) === undefined;
  const priceOf = (model: string): Price => findCallerPrice(config, customer, model, nowMs);
  const isOwn = (model: string): boolean =>
    formatOwn(priceOf(model)) !== formatOwn(findCallerPrice(config, undefined, model, nowMs));
  return [
    ...(isUnknown ? [`price_group: the setting price_groups has no ${group}, so it changes no price`] : []),
    ...findLossWarnings(attribute, config.models.filter(isOwn), priceOf, config.channels),
  ];
}

export function findAccountWarnings(raw: unknown, config: Config & Pick<Snapshot, 'publishedAt'>): string[] {
  const reading = readRow(AccountRow, raw);
  return 'row' in reading
    ? findCustomerWarnings('prices', reading.row, config, config.publishedAt * 1000)
    : [];
}

const formatOwn = (price: Price): string =>
  JSON.stringify(price, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

/** Both sides are in units of 10^-30 yuan per 1,000 tokens. */
const decimals = priceDecimals + factorDecimals;

/** The largest loss of a million tokens, of the standard tier and without long inputs. Only prices that the cost names are compared. */
function describeLoss(model: string, price: Price, channels: readonly ChannelRow[]): string | undefined {
  if (price.type !== 'token-billing') return undefined;
  const [{ rates }] = price.tiers;
  const losses = channels
    .filter(({ models }) => models.includes(model))
    .flatMap((channel) => {
      const cost = findBuyingPrice(channel.cost, upstreamModelOf(channel, model)) ?? {};
      return priceKinds.flatMap(([name, kind]) => {
        const bought =
          convertToPico(cost[name] ?? 0) *
          convertToPico(cost.rate ?? 1) *
          10n ** BigInt(decimals - 2 * priceDecimals);
        const sold = rates[kind] * findFactor(price);
        return bought > sold ? [{ channel: channel.id, name, sold, bought, loss: bought - sold }] : [];
      });
    })
    .toSorted((a, b) => (a.loss < b.loss ? 1 : -1));
  const [worst] = losses;
  if (!worst) return undefined;
  const [sold, bought, loss] = [worst.sold, worst.bought, worst.loss].map(formatPerMillion);
  return `sold below cost: ¥${sold} per million ${worst.name} tokens, channel ${worst.channel} costs ¥${bought}, a loss of ¥${loss}`;
}

const formatPerMillion = (amount: bigint): string => formatDecimal(amount * 1_000n, decimals);
