/** Finds the prices of one customer: from the account's row, then from its price group, else the price of everybody. */
import {
  buildPrice,
  findPrice,
  findRule,
  type CustomerPrice,
  type Price,
  type PriceTerms,
} from '../billing/price.ts';
import { matchesAny } from '../upstreams/channel-type.ts';
import type { Settings } from './settings.ts';
import type { Snapshot } from './snapshot.ts';

/** `source`: where an operator changes these terms. */
type CustomerTerms = PriceTerms & { source: string };

type Groups = Pick<Settings, 'priceGroups'>;

/** The fields of an account's row that change its prices. */
export interface PricedCustomer {
  prices?: readonly CustomerPrice[] | undefined;
  price_group?: string | undefined;
}

export const findPriceGroup = ({ priceGroups = {} }: Groups, name = ''): CustomerPrice[] | undefined =>
  Object.hasOwn(priceGroups, name) ? priceGroups[name] : undefined;

/** Lists the first entry that matches the model. Empty if the customer pays the price of everybody. */
export function listCustomerTerms(
  settings: Groups,
  customer: PricedCustomer | undefined,
  model: string,
): CustomerTerms[] {
  const { prices = [], price_group: group } = customer ?? {};
  const entries = [...prices, ...(findPriceGroup(settings, group) ?? [])];
  const found = entries.find(({ models }) => models.some((pattern) => matchesAny(pattern, [model])));
  if (!found) return [];
  return [{ ...found, source: prices.includes(found) ? 'customer' : `price group ${group}` }];
}

export const findCallerPrice = (
  { charges, settings }: Pick<Snapshot, 'charges' | 'settings'>,
  customer: PricedCustomer | undefined,
  model: string,
  nowMs: number,
): Price => findPrice(charges, model, nowMs, listCustomerTerms(settings, customer, model));

/** Lists the prices of a model at all hours. Reads no clock, because creating one for each of many models takes long. */
export function listCallerPrices(
  { charges, settings }: Pick<Snapshot, 'charges' | 'settings'>,
  customer: PricedCustomer | undefined,
  model: string,
  nowMs: number,
): Price[] {
  const rule = findRule(charges, model, nowMs);
  const terms = listCustomerTerms(settings, customer, model);
  return [undefined, ...(rule?.windows ?? [])].map((open) => buildPrice(rule, terms, open));
}
