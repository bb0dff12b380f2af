/** Says what of a statement does not add up, and what to do. Must never be lenient: a statement is sent to customers. */
import { formatYuan, parseYuan, type NanoYuan } from '../../billing/amount.ts';
import type { DailyFigures } from '../../billing/daily/daily-figures.ts';
import type { WrittenGrant } from '../../billing/grant.ts';
import type { WholeAccount } from '../../billing/parts/whole.ts';
import { requestTimeMs } from '../../wire/request-id.ts';
import type { AccountMonth } from '../sum-reader.ts';
import { utcMonth } from '../../wire/iso-time.ts';

type Pair = [what: string, found: NanoYuan, other: string, wanted: NanoYuan];

export interface Compared {
  item: WholeAccount;
  months: readonly AccountMonth[];
  month: string;
  isOver: boolean;
  /** Of the days of the month. */
  sum: DailyFigures;
  /** Applied in the month. */
  grants: readonly WrittenGrant[];
}

export function mismatches({ item, months, month, isOver, sum, grants }: Compared): string[] {
  const inMonths = (name: 'granted' | 'charged', all = months): NanoYuan =>
    all.reduce((total, { figures }) => total + (figures.amounts[name] ?? 0n), 0n);
  const own = months.filter((each) => each.month === month);
  const listed = grants.reduce((total, { amount }) => total + (parseYuan(amount) ?? 0n), 0n);
  const inDays = (name: 'granted' | 'charged'): NanoYuan => sum.amounts[name] ?? 0n;
  const pairs: Pair[] = [
    ['granted, all months', inMonths('granted'), 'the account', item.granted],
    ['charged, all months', inMonths('charged'), 'the account', item.spent],
    [`granted in ${month}, by day`, inDays('granted'), 'the month', inMonths('granted', own)],
    [`charged in ${month}, by day`, inDays('charged'), 'the month', inMonths('charged', own)],
    [`grants applied in ${month}`, listed, 'the sum of their days', inDays('granted')],
  ];
  return [...pairsThatDiffer(pairs), ...(isOver ? stillRunning(item, month) : [])];
}

/** The charge of a call counts in the month in which it began, so a month with open calls is not over. */
function stillRunning({ open }: WholeAccount, month: string): string[] {
  const count = [...open.keys()].filter((id) => monthOf(id) <= month).length;
  return count === 0
    ? []
    : [`calls that began in ${month} still run: ${count}; repeat it when they have ended`];
}

/** Of an id without a time, it may be any. */
function monthOf(id: string): string {
  const ms = requestTimeMs(id);
  return ms === undefined ? '' : utcMonth(ms);
}

const pairsThatDiffer = (pairs: readonly Pair[]): string[] =>
  pairs
    .filter(([, found, , wanted]) => found !== wanted)
    .map(
      ([what, found, other, wanted]) =>
        `${what}: ${formatYuan(found)} yuan, but ${other} has ${formatYuan(wanted)}`,
    );
