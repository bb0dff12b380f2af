/**
 * How long a balance lasts. The customer's page, the operators' lists, `report` and `what-if` all ask here: four rules of their own
 * once gave 30, 837, 836 and 210 days for one customer.
 */
import { dayMs, utcMonth } from '../wire/iso-time.ts';
import type { NanoYuan } from './price.ts';
import type { DailyFigures } from './daily-figures.ts';
import type { WholeAccount } from './shards.ts';

/** The sum of an account's month. `firstDay`: the UTC day of its first call in that month, where the sum has it. */
interface MonthSum {
  figures: DailyFigures;
  firstDay?: string | undefined;
}

/** An amount that the balance paid, and in how many days (at least one). */
export interface SpendingPace {
  paid: NanoYuan;
  days: number;
}

type Account = Pick<WholeAccount, 'available' | 'spent' | 'metered'>;

const firstWeekMs = 7 * dayMs;

const startOf = (month: string): number => Date.parse(`${month}-01T00:00:00Z`);

/** The months that the pace is taken from, in UTC: this one, and in its first week the one before too. */
export function listPaceMonths(nowMs: number): string[] {
  const month = utcMonth(nowMs);
  const startMs = startOf(month);
  return nowMs - startMs < firstWeekMs ? [month, utcMonth(startMs - dayMs)] : [month];
}

/** The part of the charges that a balance paid. Metered calls are charged, but no balance pays them. */
export const computePaid = ({ amounts: { charged = 0n, metered = 0n } }: DailyFigures): NanoYuan =>
  charged - metered;

/**
 * The pace of an account whose first call fell into these months is counted from that day on: whoever began today is judged by
 * today. Sums lag behind the account by seconds, so an account is new if 99 % of all it ever paid was paid in these months.
 * @param months sums of the account, of `listPaceMonths`
 */
export function computeSpendingPace(
  { spent, metered = 0n }: Account,
  months: readonly MonthSum[],
  nowMs: number,
): SpendingPace {
  const paid = months.reduce((sum, { figures }) => sum + computePaid(figures), 0n);
  const windowMs = Math.min(...listPaceMonths(nowMs).map(startOf));
  const firstDays = months.flatMap(({ firstDay }) => firstDay ?? []).toSorted();
  const isNew = (spent - metered) * 99n <= paid * 100n;
  const fromMs = isNew && firstDays[0] !== undefined ? Date.parse(firstDays[0]) : windowMs;
  return { paid, days: Math.max(1, (nowMs - fromMs) / dayMs) };
}

/** How many days the balance lasts at a pace. 0: it is empty; undefined: it doesn't fall. */
export const estimateDaysLeft = ({ available }: Account, { paid, days }: SpendingPace): number | undefined =>
  paid > 0n ? Math.max(0, (Number(available) / Number(paid)) * days) : undefined;
