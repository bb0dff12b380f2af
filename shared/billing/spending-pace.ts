/**
 * Estimates how long a balance lasts. The customer's page, the operators' lists, `report` and `what-if` all use it: when each had a
 * rule, they showed 30, 837, 836 and 210 days for one customer.
 */
import { dayMs, utcMonth } from '../wire/iso-time.ts';
import type { NanoYuan } from './money.ts';
import type { DailyFigures, DailySum } from './daily-figures.ts';
import type { WholeAccount } from './shards.ts';

/** The balance paid this amount in so many days, at least one. */
export interface SpendingPace {
  paid: NanoYuan;
  days: number;
  /** True if it covers at least a full day of use. A shorter time would reflect the hour rather than the customer. */
  isSteady: boolean;
}

type Account = Pick<WholeAccount, 'available' | 'spent' | 'metered'>;

const firstWeekMs = 7 * dayMs;

const parseMonthStart = (month: string): number => Date.parse(`${month}-01T00:00:00Z`);

/** The pace is taken from this UTC month, and in its first week from the one before, too. */
export function listPaceMonths(nowMs: number): string[] {
  const month = utcMonth(nowMs);
  const startMs = parseMonthStart(month);
  return nowMs - startMs < firstWeekMs ? [month, utcMonth(startMs - dayMs)] : [month];
}

export const computePaid = ({ amounts: { charged = 0n, metered = 0n } }: DailyFigures): NanoYuan =>
  charged - metered;

/**
 * Counts the days from the account's first call, if it began in these months. Sums lag behind the account by seconds, so an account
 * counts as new if these months have 99 % of all that it ever paid.
 * @param months the account's sums of `listPaceMonths`
 */
export function computeSpendingPace(
  { spent, metered = 0n }: Account,
  months: readonly Omit<DailySum, 'key'>[],
  nowMs: number,
): SpendingPace {
  const paid = months.reduce((sum, { figures }) => sum + computePaid(figures), 0n);
  const windowMs = Math.min(...listPaceMonths(nowMs).map(parseMonthStart));
  const firstDays = months.flatMap(({ firstDay }) => firstDay ?? []).toSorted();
  const isNew = (spent - metered) * 99n <= paid * 100n;
  const fromMs = isNew && firstDays[0] !== undefined ? Date.parse(firstDays[0]) : windowMs;
  const days = (nowMs - fromMs) / dayMs;
  // Only the day of the first call is known.
  return { paid, days: Math.max(1, days), isSteady: days >= 2 };
}

/** Returns 0 for an empty balance, and undefined for one that doesn't fall. */
export const estimateDaysLeft = (
  { available }: Account,
  { paid, days }: Pick<SpendingPace, 'paid' | 'days'>,
): number | undefined => (paid > 0n ? Math.max(0, (Number(available) / Number(paid)) * days) : undefined);
