import type { NanoYuan } from '../amount.ts';

/**
 * How a grant is shared out over the parts of an account that have so much available, so that no part can spend what
 * another one owes: a negative one from each in proportion to what it has, a positive one to the debts of parts first,
 * the rest evenly. The shares add up to the grant.
 */
export function grantShares(amount: NanoYuan, available: readonly NanoYuan[]): NanoYuan[] {
  if (amount < 0n) return inProportion(amount, available.map(positive));
  const debts = available.map((part) => positive(-part));
  const owed = sumOf(debts);
  if (amount <= owed) return inProportion(amount, debts);
  const rest = inProportion(
    amount - owed,
    available.map(() => 1n),
  );
  return debts.map((debt, part) => debt + (rest[part] ?? 0n));
}

function inProportion(amount: NanoYuan, weights: readonly bigint[]): NanoYuan[] {
  const sum = sumOf(weights);
  const shares = weights.map((weight) => (sum > 0n ? (amount * weight) / sum : 0n));
  const rest = amount - sumOf(shares);
  return shares.map((share, part) => (part === 0 ? share + rest : share));
}

const positive = (value: bigint): bigint => (value > 0n ? value : 0n);
const sumOf = (values: readonly bigint[]): bigint => values.reduce((sum, value) => sum + value, 0n);
