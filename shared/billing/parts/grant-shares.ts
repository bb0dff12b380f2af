import type { NanoYuan } from '../amount.ts';

/**
 * How a grant is shared out over the parts of an account that have so much available: a positive one evenly, a
 * negative one from each in proportion to what it has, so that no part can spend what another one owes. The shares
 * add up to the grant.
 */
export function grantShares(amount: NanoYuan, available: readonly NanoYuan[]): NanoYuan[] {
  const weights = amount < 0n ? available.map((part) => (part > 0n ? part : 0n)) : available.map(() => 1n);
  const sum = weights.reduce((all, weight) => all + weight, 0n);
  const shares = weights.map((weight) => (sum > 0n ? (amount * weight) / sum : 0n));
  const rest = amount - shares.reduce((all, share) => all + share, 0n);
  return shares.map((share, part) => (part === 0 ? share + rest : share));
}
