/** What a customer pays where it is not the price of everybody: by the account's row, then by the price group that the row names. */
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

/** `source`: what an operator would edit. */
type CustomerTerms = PriceTerms & { source: string };

type Groups = Pick<Settings, 'priceGroups'>;

/** As an account's row has it. */
export interface PricedCustomer {
  prices?: readonly CustomerPrice[] | undefined;
  price_group?: string | undefined;
}

export const findPriceGroup = ({ priceGroups = {} }: Groups, name = ''): CustomerPrice[] | undefined =>
  Object.hasOwn(priceGroups, name) ? priceGroups[name] : undefined;

/** The first entry that names the model, as a list; empty: the customer pays what everybody pays. */
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

/** The price of a model at any hour: without a clock, which takes long to create where many models are looked at. */
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
