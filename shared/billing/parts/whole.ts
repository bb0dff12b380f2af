import { emptyQuota, imbalance, type QuotaItem, type RateCount } from '../quota-item.ts';

/** All parts of an account, from part 0 on. */
export type AccountParts = readonly [QuotaItem, ...QuotaItem[]];

export interface WholeAccount extends QuotaItem {
  /** What was added up. Absent: the account has one part. */
  each?: AccountParts | undefined;
}

/** The account as if it had one part: every amount and count is the sum over its parts. */
export function wholeOf(parts: AccountParts): WholeAccount {
  const [first] = parts;
  if (parts.length === 1) return { ...first, parts: 1 };
  const whole: WholeAccount = { ...emptyQuota(first.account), last: first.last, each: parts };
  for (const item of parts) {
    for (const name of ['available', 'spent', 'granted', 'moved'] as const) whole[name] += item[name];
    whole.settled += item.settled;
    for (const [id, entry] of item.open) whole.open.set(id, entry);
    for (const [key, ids] of item.places)
      whole.places.set(key, new Set([...(whole.places.get(key) ?? []), ...ids]));
    for (const name of ['plan', 'busy'] as const)
      for (const [key, count] of item[name]) whole[name].set(key, (whole[name].get(key) ?? 0) + count);
    for (const [key, rate] of item.rate) whole.rate.set(key, sumOf(whole.rate.get(key), rate));
  }
  return whole;
}

/** Counts of one minute add up; of an earlier minute nothing counts any more. */
function sumOf(before: RateCount | undefined, rate: RateCount): RateCount {
  if (!before || before.minute < rate.minute) return rate;
  if (before.minute > rate.minute) return before;
  const { minute, count, tokens = 0 } = before;
  return { minute, count: count + rate.count, tokens: tokens + (rate.tokens ?? 0) };
}

/** The parts that do not balance, and what the moves between parts do not add up to. */
export function imbalances(parts: AccountParts): { part: number; difference: bigint }[] {
  return parts.flatMap((item) => {
    const difference = imbalance(item);
    return difference === undefined ? [] : [{ part: item.part, difference }];
  });
}
