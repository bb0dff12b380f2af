import type { QuotaItem } from '../../shared/billing/quota-item.ts';

/** The sums over all parts of an account, computed independently of the product. */
export interface Sums {
  available: bigint;
  open: bigint;
  spent: bigint;
  granted: bigint;
  metered: bigint;
  moved: bigint;
  settled: number;
  plan: Map<string, number>;
}

const openOf = ({ open }: QuotaItem): bigint => {
  let sum = 0n;
  for (const { amount, metered } of open.values()) if (!metered) sum += amount;
  return sum;
};

/** The deviation of a part from its invariant. */
export const totalOf = (item: QuotaItem): bigint =>
  item.available + openOf(item) + item.spent - item.granted - item.moved - (item.metered ?? 0n);

export function sumsOf(parts: readonly QuotaItem[]): Sums {
  const sums: Sums = {
    available: 0n,
    open: 0n,
    spent: 0n,
    granted: 0n,
    metered: 0n,
    moved: 0n,
    settled: 0,
    plan: new Map(),
  };
  for (const item of parts) {
    for (const name of ['available', 'spent', 'granted', 'moved'] as const) sums[name] += item[name];
    sums.metered += item.metered ?? 0n;
    sums.open += openOf(item);
    sums.settled += item.settled;
    for (const [slot, calls] of item.plan) sums.plan.set(slot, (sums.plan.get(slot) ?? 0) + calls);
  }
  return sums;
}
