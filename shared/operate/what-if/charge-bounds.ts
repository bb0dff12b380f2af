/**
 * What calls can have cost at a price, when only their sums are known: the least and the most. Of prices without tiers that
 * is one sum, to the rounding of each call. Pure.
 */
import { productsOf, type Price, type Tier, type Tiers, type TokenKind } from '../../billing/price.ts';
import { exactly, nothing, type Bounds } from './bounds.ts';
import type { Usage } from './paid-usage.ts';

const thousandthsOfNano = 1_000_000n;

/** @param paidCalls how many of the calls a price per call was charged for. Undefined: some of them. */
export function chargeBounds(price: Price, usage: Usage, paidCalls?: bigint): Bounds {
  if (price.type === 'non-billing') return nothing;
  if (price.type === 'token-billing') return tokenBounds(price.tiers, usage);
  const perCall = (price.perCall + 500n) / 1_000n;
  // Whoever leaves before the first content pays nothing, and no sum says how many did.
  return paidCalls === undefined
    ? { low: 0n, high: perCall * BigInt(usage.calls) }
    : exactly(perCall * paidCalls);
}

/** Rounded for each call, half up. */
export function tokenBounds(tiers: Tiers, usage: Usage): Bounds {
  const { low, high, isWhole } = sumBounds(tiers, usage);
  if (isWhole) return { low: low / thousandthsOfNano, high: high / thousandthsOfNano };
  const rounding = (BigInt(usage.calls) * thousandthsOfNano) / 2n;
  const least = low - rounding;
  return {
    low: least <= 0n ? 0n : (least + thousandthsOfNano - 1n) / thousandthsOfNano,
    high: (high + rounding) / thousandthsOfNano,
  };
}

/** In thousandths of a pico-yuan. `isWhole`: each token costs whole nano-yuan, so no call is rounded. */
export function sumBounds(tiers: Tiers, usage: Usage): { low: bigint; high: bigint; isWhole: boolean } {
  const reachable = reachableTiers(tiers, usage);
  const sums = { low: 0n, high: 0n, isWhole: true };
  for (const kind of kindsUsed(usage)) {
    const products = reachable.map((tier) => productOf(tier, kind, usage));
    sums.low += products.reduce((a, b) => (b < a ? b : a));
    sums.high += products.reduce((a, b) => (b > a ? b : a));
    sums.isWhole &&= reachable.every(({ rates }) => rates[kind] % thousandthsOfNano === 0n);
  }
  return sums;
}

/** The tiers that one of so many calls can have come to: the input of one call decides, and only its sum is known. */
export function reachableTiers(tiers: Tiers, { calls, tokens }: Usage): [Tier, ...Tier[]] {
  const [first, ...higher] = tiers;
  const reached = higher.filter(({ above }) => tokens.prompt_tokens > above);
  const last = reached.at(-1);
  return calls === 1 && last ? [last] : [first, ...reached];
}

/** The kinds of tokens of which there are any. */
export const kindsUsed = ({ tokens }: Usage): TokenKind[] =>
  productsOf(noTier, tokens).flatMap(([kind, count]) => (count > 0 ? [kind] : []));

const zero = { input: 0n, output: 0n, cachedInput: 0n, cacheWrite: 0n, cacheWrite1h: 0n };
const noTier: Tier = { above: 0, rates: zero };

const productOf = (tier: Tier, kind: TokenKind, { tokens }: Usage): bigint =>
  productsOf(tier, tokens)
    .filter(([name]) => name === kind)
    .reduce((sum, [, count, rate]) => sum + BigInt(count) * rate, 0n);
