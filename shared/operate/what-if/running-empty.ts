/** View: which accounts run empty sooner after an edit. Looks at those that spend most, and says at how many. */
import { largestFirst, type NanoYuan } from '../../billing/amount.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import type { DayRange } from '../sum-reader.ts';
import { spendingOf, type Spending } from './account-spending.ts';
import { middleOf } from './bounds.ts';
import type { ModelEffect } from './edit-effects.ts';
import { utcDay } from '../../wire/iso-time.ts';

/** Each is one request; balances are one for 100. */
const accountsMax = 40;
const atOnce = 8;
const dayMs = 24 * 60 * 60 * 1000;
/** Longer than that is no matter of this edit. */
const daysLeftMax = 365;

export interface SoonerEmpty {
  account: string;
  available: NanoYuan;
  /** Undefined: it does not run empty within a year. */
  daysBefore: number | undefined;
  daysAfter: number;
}

export interface RunningEmpty {
  /** Those that spent most in the months of these days. */
  looked: number;
  /** All with a call or a grant in these months. */
  accounts: number;
  /** Those that run empty first come first. */
  sooner: SoonerEmpty[];
  /** Items that cannot be read. */
  problems: string[];
}

type Ports = Pick<OperatorPorts, 'ledger'>;

/** @param models whose revenue the edit changes; the calls of an account are taken to be like those of all */
export async function runningEmpty(
  { ledger }: Ports,
  { days, dayCount, models }: { days: DayRange; dayCount: number; models: readonly ModelEffect[] },
): Promise<RunningEmpty> {
  const problems: string[] = [];
  const spent = new Map<string, NanoYuan>();
  const rose = new Map(
    models
      .filter(({ revenue }) => middleOf(revenue.after) > middleOf(revenue.before))
      .map((each) => [each.model, each]),
  );
  if (rose.size === 0) return { looked: 0, accounts: 0, sooner: [], problems };
  // At the beginning of a month the days are of two.
  for (const month of new Set([days.from.slice(0, 7), days.to.slice(0, 7)]))
    for await (const page of ledger.monthAccounts(month))
      for (const each of page)
        if ('row' in each) {
          const { account, figures } = each.row;
          spent.set(account, (spent.get(account) ?? 0n) + (figures.amounts.charged ?? 0n));
        } else problems.push(`${each.key}: ${each.problem}`);
  const most = [...spent].toSorted(([, a], [, b]) => largestFirst(a, b)).slice(0, accountsMax);
  const balances = new Map<string, NanoYuan>();
  for (const each of await ledger.quotas(most.map(([account]) => account)))
    if ('row' in each) balances.set(each.row.account, each.row.available);
    else problems.push(`${each.key}: ${each.problem}`);
  const sooner: SoonerEmpty[] = [];
  const found = [...balances];
  for (let at = 0; at < found.length; at += atOnce)
    sooner.push(
      ...(
        await Promise.all(
          found.slice(at, at + atOnce).map(async ([account, available]) => {
            const spending = await spendingOf(ledger, { account, days, rose });
            return soonerOf({ account, available }, spending, dayCount);
          }),
        )
      ).flat(),
    );
  return {
    looked: balances.size,
    accounts: spent.size,
    sooner: sooner.toSorted((a, b) => a.daysAfter - b.daysAfter),
    problems,
  };
}

function soonerOf(
  { account, available }: { account: string; available: NanoYuan },
  { before, after }: Spending,
  dayCount: number,
): SoonerEmpty[] {
  if (after <= before || available <= 0n) return [];
  const daysAfter = daysLeft(available, after, dayCount);
  if (daysAfter > daysLeftMax) return [];
  const daysBefore = before > 0n ? daysLeft(available, before, dayCount) : Infinity;
  return [{ account, available, daysAfter, daysBefore: daysBefore > daysLeftMax ? undefined : daysBefore }];
}

/** In tenths. */
const daysLeft = (available: NanoYuan, spent: NanoYuan, dayCount: number): number =>
  Number((available * BigInt(dayCount) * 10n) / spent) / 10;

export const daysBack = (nowMs: number, count: number): DayRange => ({
  from: utcDay(nowMs - (count - 1) * dayMs),
  to: utcDay(nowMs),
});
