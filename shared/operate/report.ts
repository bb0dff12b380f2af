/**
 * View: a week or a month: spend, margin, failures, slow channels, low balances, credits, open marks. Reads the sums of `daily`, balances,
 * grants, and the rows of the configuration; never the ledger. Days are in UTC.
 */
import { noFigures, type DailyFigures } from '../billing/daily-figures.ts';
import { parseYuan } from '../billing/money.ts';
import { estimateDaysLeft, computeSpendingPace } from '../billing/spending-pace.ts';
import { utcDay, dayMs } from '../wire/iso-time.ts';
import { summarizeAttempts } from './channels/channel-health.ts';
import { findProblemsInTables, readServedRows, type Finding } from './config/row-changes.ts';
import {
  readPaceMonths,
  compareCharges,
  readingsOf,
  readAllRows,
  sumBy,
  sumOfFigures,
  type Summed,
} from './ledger/ledger.ts';
import type { DayRange, OperatorPorts } from './operator-ports.ts';
import { usageFailure } from './plan.ts';

/** `perDay` of accounts is their average spending; `daysLeft` 0 means empty. */
export type ReportView = Awaited<ReturnType<typeof viewReport>>;

export async function viewReport(ports: OperatorPorts, asked: AskedPeriod) {
  const { clock, ledger, target } = ports;
  const madeMs = clock.now();
  const period = reportPeriod(madeMs, asked);
  const [served, before, nearEmpty, marks, credits] = await Promise.all([
    readAllRows(ledger.served(period)),
    readAllRows(ledger.served(period.before)),
    accountsNearEmpty(ports),
    openMarks(ports),
    sumCredits(ports, period),
  ]);
  const byDay = new Map(sumBy(served.rows, ({ day }) => day).map((each) => [each.name, each]));
  return {
    stack: target.stack,
    madeMs,
    period,
    whole: sumOfFigures(served.rows),
    before: sumOfFigures(before.rows),
    days: period.days.map((day) => byDay.get(day) ?? { name: day, figures: noFigures }),
    models: sumBy(served.rows, ({ model }) => model).toSorted(
      (a, b) => compareCharges(a, b) || callsOf(b) - callsOf(a),
    ),
    channels: sumBy(served.rows, ({ channel }) => channel)
      .map((each) => Object.assign({}, each, { health: summarizeAttempts(each.figures) }))
      .toSorted((a, b) => (b.health.p95Ms ?? 0) - (a.health.p95Ms ?? 0) || a.name.localeCompare(b.name)),
    nearEmpty: nearEmpty.accounts,
    credits,
    marks,
    problems: [...served.problems, ...before.problems, ...nearEmpty.problems],
  };
}

/** Kinds of credits, recognized by the ids that the relay gives to grants. */
const creditKinds = { bonus: /-bonus$/, code: /^code-/, payment: /^(pi|re|dp|du)_/, other: /^/ } as const;

async function sumCredits({ ledger }: OperatorPorts, { from, to }: DayRange) {
  const pages = await Array.fromAsync(ledger.grants());
  const applied = pages
    .flat()
    .filter(({ applied: at = '' }) => at.slice(0, 10) >= from && at.slice(0, 10) <= to);
  const kinds = Map.groupBy(
    applied,
    ({ grantId }) => Object.entries(creditKinds).find(([, form]) => form.test(grantId))?.[0] ?? 'other',
  );
  return [...kinds].map(([kind, grants]) => ({
    kind,
    grants: grants.length,
    amount: grants.reduce((sum, { amount }) => sum + (parseYuan(amount) ?? 0n), 0n),
  }));
}

const callsOf = ({ figures }: Summed): number => figures.counts.calls ?? 0;

async function openMarks(ports: OperatorPorts): Promise<Finding[]> {
  const [rows, earlier] = await Promise.all([ports.config.tables(), readServedRows(ports)]);
  return findProblemsInTables(rows, ports, { earlier });
}

const nearDays = 7;

/** Accounts whose balance does not last at the pace of the last weeks. An account that only a plan pays for never runs empty. */
async function accountsNearEmpty(ports: OperatorPorts) {
  const { byAccount, paid, problems } = await readPaceMonths(ports);
  const spending = [...paid].flatMap(([account, sum]) => (sum > 0n ? [account] : []));
  const balances = readingsOf(await ports.ledger.quotas(spending));
  const accounts = balances.rows.flatMap((item) => {
    const { account, available } = item;
    const pace = computeSpendingPace(item, byAccount.get(account) ?? [], ports.clock.now());
    const lasts = estimateDaysLeft(item, pace) ?? Infinity;
    const perDay = (pace.paid * million) / BigInt(Math.round(pace.days * Number(million)));
    return lasts < nearDays ? [{ account, available, perDay, daysLeft: lasts }] : [];
  });
  accounts.sort((a, b) => a.daysLeft - b.daysLeft || a.account.localeCompare(b.account));
  return { accounts, problems: [...problems, ...balances.problems] };
}

/** Parts of a day, so that an amount a day is divided in whole numbers. */
const million = 1_000_000n;

/** Margin of calls and searches with a known cost. `bought` includes searches. */
export function marginOf({ counts, amounts }: DailyFigures) {
  const knownCalls = counts.bought_calls ?? 0;
  const { bought_charged: sold = 0n, search_bought: searches = 0n } = amounts;
  const bought = (amounts.bought ?? 0n) + searches;
  const earned = knownCalls === 0 && bought === 0n && sold === 0n ? undefined : sold - bought;
  return { earned, bought, knownCalls };
}

export interface AskedPeriod {
  day?: string | undefined;
  month?: string | undefined;
  /** A day of the week: `2026-11-18`. Weeks begin on Monday. */
  week?: string | undefined;
}

const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);
const addDays = (day: string, days: number): string => utcDay(startOf(day) + days * dayMs);
const isDay = (text: string): boolean =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(startOf(text)) && utcDay(startOf(text)) === text;
const createDateFormat = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-GB', { ...options, month: 'long', year: 'numeric', timeZone: 'UTC' });

/** Default: the seven days that end today. */
export function reportPeriod(nowMs: number, { day, month, week }: AskedPeriod) {
  if (month !== undefined && week !== undefined) throw usageFailure('use either --month or --week');
  const today = utcDay(nowMs);
  if (month !== undefined) return parseMonth(month, today);
  for (const [option, given] of Object.entries({ day, week }))
    if (given !== undefined && !isDay(given)) throw usageFailure(`--${option}: use a day such as 2026-11-18`);
  const dayBefore = addDays(day ?? today, -1);
  if (day !== undefined) return periodOf({ from: day, to: day }, { from: dayBefore, to: dayBefore }, today);
  const weekday = week === undefined ? 6 : (new Date(startOf(week)).getUTCDay() + 6) % 7;
  const from = addDays(week ?? today, -weekday);
  const before = { from: addDays(from, -7), to: addDays(from, -1) };
  return periodOf({ from, to: addDays(from, 6) }, before, today);
}

function parseMonth(month: string, today: string) {
  const from = `${month}-01`;
  if (!/^\d{4}-\d{2}$/.test(month) || !isDay(from))
    throw usageFailure('--month: use a month such as 2026-11');
  const to = addDays(`${addDays(from, 31).slice(0, 7)}-01`, -1);
  const lastBefore = addDays(from, -1);
  const before = { from: `${lastBefore.slice(0, 7)}-01`, to: lastBefore };
  return { ...periodOf({ from, to }, before, today), title: createDateFormat({}).format(startOf(from)) };
}

/**
 * `come`: how many of the days have come: all, unless it is running. `before`: as many days from the start of the week or month
 * before, so that a running one is not compared with a whole one.
 */
function periodOf({ from, to }: DayRange, before: DayRange, today: string) {
  if (from > today) throw usageFailure(`${from} is in the future`);
  const count = Math.round((startOf(to) - startOf(from)) / dayMs) + 1;
  const days = Array.from({ length: count }, (_, index) => addDays(from, index));
  const come = days.filter((day) => day <= today).length;
  const asLong = addDays(before.from, come - 1);
  return {
    from,
    to,
    come,
    before: { from: before.from, to: to < today || before.to < asLong ? before.to : asLong },
    title: createDateFormat({ day: 'numeric' }).formatRange(startOf(from), startOf(to)),
    days,
    isRunning: to >= today,
  };
}
