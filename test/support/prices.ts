import { mapInputParts } from '../../shared/wire/chat-response.ts';
import type { Price, Rates, Tiers } from '../../shared/billing/price.ts';

/** Rates without a cache price, so the cache costs as much as input. In pico-yuan per 1,000 tokens. */
export const plainRates = (input: bigint, output: bigint): Rates => ({
  input,
  output,
  ...mapInputParts('name', () => input),
});

export const tokenPriceOf = (input: bigint, output: bigint, rule = 1): Extract<Price, { tiers: Tiers }> => ({
  type: 'token-billing',
  rule,
  tiers: [{ above: 0, rates: plainRates(input, output) }],
});
