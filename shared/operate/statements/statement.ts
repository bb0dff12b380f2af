/**
 * View: an account's month, from what it began with to what it ended with, by day and model. Everything is added up twice: by
 * months against the account's item, which has the money itself, and by days against the month. Reads sums, never calls.
 */
import type { NanoYuan } from '../../billing/amount.ts';
import { addFigures, noFigures, type DailyFigures } from '../../billing/daily/daily-figures.ts';
import { accountId, grantsModel } from '../../billing/daily/daily-keys.ts';
import type { DailySum } from '../../billing/daily/daily-sums.ts';
import type { WrittenGrant } from '../../billing/grant.ts';
import { rowsIn } from '../ledger/sum-rows.ts';
import { Failure, usageFailure } from '../operator-failure.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { readMonths } from './month-sums.ts';
import { mismatches } from './mismatches.ts';
import { utcMonth } from '../../wire/iso-time.ts';

export interface StatementDay {
  /** `2026-10-07`, in UTC. */
  day: string;
  model: string;
  figures: DailyFigures;
}

export interface Statement {
  account: string;
  /** `2026-10`, in UTC. */
  month: string;
  opening: NanoYuan;
  granted: NanoYuan;
  charged: NanoYuan;
  /** Opening + granted - charged. */
  closing: NanoYuan;
  /** Applied in the month, by time. */
  grants: WrittenGrant[];
  /** Sorted by day, then model. */
  days: StatementDay[];
  /** The sum of the days. */
  sum: DailyFigures;
  /** The month is not over. */
  isRunning: boolean;
  /** What does not add up; empty: everything does. */
  problems: string[];
}

export interface StatementWanted {
  account: string;
  month: string;
  /** Sums follow calls within seconds: for so long they are read again until they agree. */
  waitMs: number;
}

const pauseMs = 1000;

export async function viewStatement(ports: OperatorPorts, wanted: StatementWanted): Promise<Statement> {
  const { clock } = ports;
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(wanted.month))
    throw usageFailure(`--month ${wanted.month}: wanted a month such as 2026-10`);
  if (wanted.month > utcMonth(clock.now())) throw usageFailure(`--month ${wanted.month}: it has not begun`);
  const untilMs = clock.now() + wanted.waitMs;
  for (;;) {
    const statement = await read(ports, wanted);
    if (statement.problems.length === 0 || clock.now() + pauseMs > untilMs) return statement;
    await clock.sleep(pauseMs);
  }
}

async function read(ports: OperatorPorts, { account, month }: StatementWanted): Promise<Statement> {
  const { clock, ledger } = ports;
  const [quota, months, days, pages] = await Promise.all([
    ledger.quota(account),
    readMonths(ports, account),
    rowsIn(ledger.daily(accountId(account), { from: `${month}-01`, to: `${month}-31` })),
    Array.fromAsync(ledger.grants(account)),
  ]);
  if (!quota) throw usageFailure(`account ${account} has neither a grant nor a call`);
  if ('problem' in quota) throw new Failure(quota.problem);
  const opening = months.rows
    .filter((each) => each.month < month)
    .reduce((sum, { figures }) => sum + netOf(figures), 0n);
  const sum = days.rows.reduce((all, { figures }) => addFigures(all, figures), noFigures);
  const [granted, charged] = [sum.amounts.granted ?? 0n, sum.amounts.charged ?? 0n];
  const grants = pages.flat().filter(({ applied }) => applied?.startsWith(month) ?? false);
  const isRunning = month === utcMonth(clock.now());
  return {
    account,
    month,
    opening,
    granted,
    charged,
    closing: opening + granted - charged,
    grants: grants.toSorted((a, b) => ((a.applied ?? '') < (b.applied ?? '') ? -1 : 1)),
    days: days.rows.map(dayOfSum).filter(({ model }) => model !== grantsModel),
    sum,
    isRunning,
    problems: [
      ...months.problems,
      ...days.problems,
      ...mismatches({ item: quota.row, months: months.rows, month, isOver: !isRunning, sum, grants }),
    ],
  };
}

/** What figures add to the balance. */
const netOf = ({ amounts }: DailyFigures): NanoYuan => (amounts.granted ?? 0n) - (amounts.charged ?? 0n);

/** `day#2026-10-07#gpt-4o` */
const dayOfSum = ({ key: { period }, figures }: DailySum): StatementDay => ({
  day: period.slice(4, 14),
  model: period.slice(15),
  figures,
});
