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

const listEntries = (
  settings: Groups,
  { prices = [], price_group: group }: PricedCustomer = {},
): readonly CustomerPrice[] => [...prices, ...(findPriceGroup(settings, group) ?? [])];

const isInForce = ({ from = -Infinity, until = Infinity }: CustomerPrice, atMs: number): boolean =>
  from <= atMs && atMs < until;

export const matchesModel = ({ models }: CustomerPrice, model: string): boolean =>
  models.some((pattern) => matchesAny(pattern, [model]));

/**
 * Lists the first entry that matches the model and is in force when the call is accepted. Empty if the customer pays the price of
 * everybody.
 */
export function listCustomerTerms(
  settings: Groups,
  customer: PricedCustomer | undefined,
  model: string,
  atMs: number,
): CustomerTerms[] {
  const entries = listEntries(settings, customer);
  const found = entries.find((entry) => isInForce(entry, atMs) && matchesModel(entry, model));
  if (!found) return [];
  const source = customer?.prices?.includes(found) ? 'customer' : `price group ${customer?.price_group}`;
  return [{ ...found, source }];
}

/** `entry` applies to the model from `fromMs` on, until the next one does. Undefined: the price of everybody. */
export interface ScheduledEntry {
  fromMs: number;
  entry: CustomerPrice | undefined;
}

/** Lists the entry that applies to the model now, then those that replace it at announced times. */
export function listScheduledEntries(
  settings: Groups,
  customer: PricedCustomer | undefined,
  model: string,
  nowMs: number,
): [ScheduledEntry, ...ScheduledEntry[]] {
  const named = listEntries(settings, customer).filter((entry) => matchesModel(entry, model));
  const findAt = (fromMs: number): ScheduledEntry => ({
    fromMs,
    entry: named.find((each) => isInForce(each, fromMs)),
  });
  const dates = named.flatMap(({ from = nowMs, until = nowMs }) => [from, until]);
  const ahead = [findAt(nowMs)] as [ScheduledEntry, ...ScheduledEntry[]];
  for (const date of [...new Set(dates)].filter((each) => each > nowMs).toSorted((a, b) => a - b)) {
    const next = findAt(date);
    if (next.entry !== ahead.at(-1)?.entry) ahead.push(next);
  }
  return ahead;
}

export const findCallerPrice = (
  { charges, settings }: Pick<Snapshot, 'charges' | 'settings'>,
  customer: PricedCustomer | undefined,
  model: string,
  nowMs: number,
): Price => findPrice(charges, model, nowMs, listCustomerTerms(settings, customer, model, nowMs));

/** Lists the prices of a model at all hours. Reads no clock, because creating one for each of many models takes long. */
export function listCallerPrices(
  { charges, settings }: Pick<Snapshot, 'charges' | 'settings'>,
  customer: PricedCustomer | undefined,
  model: string,
  nowMs: number,
): Price[] {
  const rule = findRule(charges, model, nowMs);
  const terms = listCustomerTerms(settings, customer, model, nowMs);
  return [undefined, ...(rule?.windows ?? [])].map((open) => buildPrice(rule, terms, open));
}
