/** Recomputes the sums of an account's months from its days, which a transaction writes together. Reads nothing itself. */
import { addFigures, noFigures, type DailyFigures } from '../daily/daily-figures.ts';
import { dayOf } from '../daily/daily-keys.ts';
import type { DailySum } from '../daily/daily-sums.ts';
import { figuresIn } from '../daily/kept-figures.ts';
import { monthKey } from '../daily/sum-keys.ts';
import { missingOf, type DailyDifference } from './daily-audit.ts';

/** Figures by month: `2026-11`. */
export type Months = ReadonlyMap<string, DailyFigures>;

/** What the items of an account's days come to. */
export function monthsOf(account: string, days: readonly DailySum[]): Months {
  const months = new Map<string, DailyFigures>();
  for (const { key, figures } of days) {
    const month = dayOf(key)?.slice(0, 7);
    if (month === undefined) continue;
    const own = figuresIn(monthKey(month, account), figures);
    months.set(month, addFigures(months.get(month) ?? noFigures, own));
  }
  return months;
}

/** The months whose items are not what their days come to. */
export const monthDifferences = (account: string, wanted: Months, found: Months): DailyDifference[] =>
  [...new Set([...wanted.keys(), ...found.keys()])].flatMap((month) => {
    const is = found.get(month) ?? noFigures;
    const missing = missingOf(is, wanted.get(month) ?? noFigures);
    return missing ? [{ key: monthKey(month, account), found: is, missing }] : [];
  });
