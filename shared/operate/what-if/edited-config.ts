/** What models callers are offered by a configuration, and at what price. Pure. */
import { pricedModels, priceOf } from '../../billing/price-rule.ts';
import { needsPrice, type Snapshot } from '../../config/snapshot.ts';
import { isFree } from './changed-price.ts';

export type EditedConfig = Pick<Snapshot, 'channels' | 'charges' | 'models' | 'settings' | 'unreadPrices'>;

export const unpricedOf = ({ models, charges }: EditedConfig, atMs: number): string[] => {
  const priced = pricedModels(charges, atMs);
  return models.filter((model) => !priced.has(model));
};

export const isOffered = (config: EditedConfig, model: string, atMs: number): boolean =>
  config.models.includes(model) &&
  (!needsPrice(config, model) || pricedModels(config.charges, atMs).has(model));

/** Refused ones cost nothing either, but are not free. */
export const isFreeIn = (config: EditedConfig, model: string, atMs: number): boolean =>
  isOffered(config, model, atMs) && isFree(priceOf(config.charges, model, atMs));
