/** What a share of the calls earned: those whose cost is known, charges against what they cost. */
import type { NanoYuan } from '../../billing/amount.ts';
import type { DailyFigures } from '../../billing/daily/daily-figures.ts';

export interface Margin {
  /** Undefined: the cost of no call is known. */
  earned: NanoYuan | undefined;
  bought: NanoYuan;
  /** Of all calls that were counted. */
  knownCalls: number;
}

export function marginOf({ counts, amounts }: DailyFigures): Margin {
  const knownCalls = counts.bought_calls ?? 0;
  const bought = amounts.bought ?? 0n;
  const earned = knownCalls === 0 ? undefined : (amounts.bought_charged ?? 0n) - bought;
  return { earned, bought, knownCalls };
}
