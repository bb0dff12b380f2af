/**
 * View: what a week or a month brought: spend, margin, failures, slow channels, accounts near empty, open marks. Reads
 * the sums of `daily`, balances, and the rows of the configuration; never the ledger.
 */
import { type DailyFigures, firstContentBuckets, noFigures, addFigures } from '../billing/daily-figures.ts';
import { largestFirst, type NanoYuan, formatYuan } from '../billing/amount.ts';
import { findingsIn, type Finding } from './config/row-changes.ts';
import { rowsIn, spendingPace } from './ledger/ledger.ts';
import type { OperatorPorts, DayRange, ServedDay } from './operator-ports.ts';
import { usageFailure } from './plan.ts';
import { utcDay, isoTime } from '../wire/iso-time.ts';

// Reads the buckets of the time to first content: within which time a share of the calls began to answer.

/** The last one has none: `Infinity`. */
const boundsMs = firstContentBuckets.map((name) => {
  const bound = Number(name.split('_').at(-1));
  return Number.isNaN(bound) ? Infinity : bound;
});

/**
 * The bound of the bucket in which the share is reached. Undefined: no call had content.
 * @param share such as 0.95
 */
function contentWithin({ counts }: DailyFigures, share: number): number | undefined {
  const values = firstContentBuckets.map((name) => counts[name] ?? 0);
  const wanted = share * values.reduce((sum, value) => sum + value, 0);
  if (wanted === 0) return undefined;
  let seen = 0;
  return boundsMs[values.findIndex((value) => (seen += value) >= wanted)];
}

/** For plots: the bucket without an upper bound is shown as twice the bound before it. */
export function firstContentWithin(figures: DailyFigures, share: number): number | undefined {
  const bound = contentWithin(figures, share);
  return bound === Infinity ? 2 * (boundsMs.at(-2) ?? 0) : bound;
}

export interface ReportedChannel extends ServedGroup {
  /** Bounds of the time to first content, in milliseconds. Undefined: no call had content. */
  medianMs: number | undefined;
  slowMs: number | undefined;
}

export interface ReportView {
  stack: string;
  madeMs: number;
  period: ReportPeriod;
  whole: DailyFigures;
  /** Of the days before. */
  before: DailyFigures;
  /** All days of the period, by date, those without calls too. */
  days: ServedGroup[];
  /** The most charged first. */
  models: ServedGroup[];
  /** The slowest first. */
  channels: ReportedChannel[];
  nearEmpty: NearEmptyAccount[];
  marks: Finding[];
  /** What could not be read, and is missing in the figures. */
  problems: string[];
}

type ReportPorts = Pick<OperatorPorts, 'clock' | 'config' | 'ledger' | 'target'>;

export async function viewReport(ports: ReportPorts, asked: AskedPeriod): Promise<ReportView> {
  const { clock, ledger, target } = ports;
  const madeMs = clock.now();
  const period = reportPeriod(madeMs, asked);
  const [served, before, nearEmpty, marks] = await Promise.all([
    rowsIn(ledger.served(period)),
    rowsIn(ledger.served(period.before)),
    accountsNearEmpty(ports),
    openMarks(ports),
  ]);
  const byDay = new Map(groupServed(served.rows, ({ day }) => day).map((each) => [each.name, each]));
  return {
    stack: target.stack,
    madeMs,
    period,
    whole: sumOf(served.rows),
    before: sumOf(before.rows),
    days: period.days.map((day) => byDay.get(day) ?? { name: day, figures: noFigures }),
    models: groupServed(served.rows, ({ model }) => model).toSorted(
      (a, b) =>
        largestFirst(a.figures.amounts.charged ?? 0n, b.figures.amounts.charged ?? 0n) ||
        (b.figures.counts.calls ?? 0) - (a.figures.counts.calls ?? 0),
    ),
    channels: groupServed(served.rows, ({ channel }) => channel)
      .map(withTimes)
      .toSorted((a, b) => (b.slowMs ?? 0) - (a.slowMs ?? 0) || a.name.localeCompare(b.name)),
    nearEmpty: nearEmpty.accounts,
    marks,
    problems: [...served.problems, ...before.problems, ...nearEmpty.problems],
  };
}

const withTimes = ({ name, figures }: ServedGroup): ReportedChannel => ({
  name,
  figures,
  medianMs: contentWithin(figures, 0.5),
  slowMs: contentWithin(figures, 0.95),
});

async function openMarks(ports: Pick<ReportPorts, 'clock' | 'config' | 'target'>): Promise<Finding[]> {
  const newest = await ports.config.newest();
  const [rows, earlier] = await Promise.all([
    ports.config.tables(),
    newest === undefined ? undefined : ports.config.rows(newest),
  ]);
  return findingsIn(rows, ports, { earlier });
}

// The days that a report is about, and the days before with which it compares. All in UTC.

interface ReportPeriod extends DayRange {
  /** `November 2026`, `16 to 22 November 2026`. */
  title: string;
  /** Each day of it, in order. */
  days: string[];
  /** How many of them have come: all, unless it is running. */
  come: number;
  /** As many days from the start of the week or month before, so that a running one is not compared with a whole one. */
  before: DayRange;
  /** Its last day is not over. */
  isRunning: boolean;
}

interface AskedPeriod {
  /** `2026-11` */
  month?: string | undefined;
  /** A day of the week: `2026-11-18`. Weeks begin on Monday. */
  week?: string | undefined;
}

const dayMs = 86_400_000;
const startOf = (day: string): number => Date.parse(`${day}T00:00:00Z`);
const daysLater = (day: string, days: number): string => utcDay(startOf(day) + days * dayMs);

/** Without a month or a week: the seven days that end today. */
export function reportPeriod(nowMs: number, { month, week }: AskedPeriod): ReportPeriod {
  if (month !== undefined && week !== undefined) throw usageFailure('give --month or --week, not both');
  const today = utcDay(nowMs);
  if (month !== undefined) return monthPeriod(month, today);
  const from = week === undefined ? daysLater(today, -6) : mondayOf(week);
  const to = daysLater(from, 6);
  return periodOf({ from, to, before: { from: daysLater(from, -7), to: daysLater(from, -1) } }, today);
}

function monthPeriod(month: string, today: string): ReportPeriod {
  const from = `${month}-01`;
  if (!/^\d{4}-\d{2}$/.test(month) || !isDay(from))
    throw usageFailure('--month wants a month, such as 2026-11');
  const last = (first: string): string => utcDay(startOf(`${daysLater(first, 31).slice(0, 7)}-01`) - dayMs);
  const lastBefore = daysLater(from, -1);
  const before = { from: `${lastBefore.slice(0, 7)}-01`, to: lastBefore };
  const title = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric', timeZone: 'UTC' });
  return { ...periodOf({ from, to: last(from), before }, today), title: title.format(startOf(from)) };
}

function mondayOf(day: string): string {
  if (!isDay(day)) throw usageFailure('--week wants a day of the week, such as 2026-11-18');
  const weekday = (new Date(startOf(day)).getUTCDay() + 6) % 7;
  return daysLater(day, -weekday);
}

const isDay = (text: string): boolean =>
  /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(startOf(text)) && utcDay(startOf(text)) === text;

const earlier = (a: string, b: string): string => (a < b ? a : b);

function periodOf(range: DayRange & { before: DayRange }, today: string): ReportPeriod {
  const { from, to } = range;
  if (from > today) throw usageFailure(`${from} has not come yet`);
  const count = Math.round((startOf(to) - startOf(from)) / dayMs) + 1;
  const days = Array.from({ length: count }, (_, index) => daysLater(from, index));
  const words = new Intl.DateTimeFormat('en-GB', {
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    timeZone: 'UTC',
  });
  const come = days.filter((day) => day <= today).length;
  const { before } = range;
  const lastBefore = to < today ? before.to : earlier(before.to, daysLater(before.from, come - 1));
  return {
    from,
    to,
    come,
    before: { from: before.from, to: lastBefore },
    title: words.formatRange(startOf(from), startOf(to)),
    days,
    isRunning: to >= today,
  };
}

// Adds up what was served, by whatever names a group.

export interface ServedGroup {
  name: string;
  figures: DailyFigures;
}

const sumOf = (served: readonly ServedDay[]): DailyFigures =>
  served.reduce((sum, { figures }) => addFigures(sum, figures), noFigures);

/** A group without a name is left out. */
const groupServed = (
  served: readonly ServedDay[],
  nameOf: (each: ServedDay) => string | undefined,
): ServedGroup[] =>
  [...Map.groupBy(served, nameOf)].flatMap(([name, each]) =>
    name === undefined ? [] : [{ name, figures: sumOf(each) }],
  );

// What a share of the calls earned: those whose cost is known, charges against what they cost.

interface Margin {
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

// View: accounts whose balance does not last long at the pace of the last weeks. Reads sums and balances.

export interface NearEmptyAccount {
  account: string;
  available: NanoYuan;
  /** What was spent a day, on average. */
  perDay: NanoYuan;
  /** 0: it is empty. */
  daysLeft: number;
}

interface NearEmptyAccounts {
  /** The emptiest first. */
  accounts: NearEmptyAccount[];
  problems: string[];
}

const nearDays = 7;

/** Accounts that are charged nothing, such as those of a plan alone, do not run empty. */
async function accountsNearEmpty(ports: Pick<OperatorPorts, 'clock' | 'ledger'>): Promise<NearEmptyAccounts> {
  const { charged, days: exactly, problems: unread } = await spendingPace(ports);
  const days = Math.ceil(exactly);
  const balances = await ports.ledger.quotas([...charged.keys()]);
  const problems = balances.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : []));
  const accounts = balances.flatMap((each): NearEmptyAccount[] => {
    if (!('row' in each)) return [];
    const { account, available } = each.row;
    const perDay = (charged.get(account) ?? 0n) / BigInt(days);
    const daysLeft = available <= 0n ? 0 : perDay === 0n ? Infinity : Number(available) / Number(perDay);
    return daysLeft < nearDays ? [{ account, available, perDay, daysLeft }] : [];
  });
  accounts.sort((a, b) => a.daysLeft - b.daysLeft || a.account.localeCompare(b.account));
  return { accounts, problems: [...unread, ...problems] };
}

// A report as JSON: amounts are decimal texts of yuan, exact.

export function reportJson(view: ReportView): object {
  const { stack, madeMs, period, whole, before, days, models, channels, nearEmpty, marks, problems } = view;
  return {
    stack,
    made: isoTime(madeMs),
    from: period.from,
    to: period.to,
    is_running: period.isRunning,
    whole: figuresJson(whole),
    before: { ...period.before, ...figuresJson(before) },
    days: days.map(({ name, figures }) => Object.assign({ day: name }, figuresJson(figures))),
    models: models.map(({ name, figures }) => Object.assign({ model: name }, figuresJson(figures))),
    channels: channels.map(({ name, figures, medianMs, slowMs }) =>
      Object.assign({ channel: name }, figuresJson(figures), {
        first_content_p50_ms: finite(medianMs),
        first_content_p95_ms: finite(slowMs),
      }),
    ),
    near_empty: nearEmpty.map(({ account, available, perDay, daysLeft }) => ({
      account,
      available: formatYuan(available),
      per_day: formatYuan(perDay),
      days_left: Math.round(daysLeft * 10) / 10,
    })),
    marks,
    problems,
  };
}

function figuresJson(figures: DailyFigures): object {
  const { counts, amounts } = figures;
  const { earned, bought, knownCalls } = marginOf(figures);
  return {
    calls: counts.calls ?? 0,
    failures: counts.failures ?? 0,
    plan_calls: counts.plan_calls ?? 0,
    official_calls: counts.official_calls ?? 0,
    prompt_tokens: counts.prompt_tokens ?? 0,
    completion_tokens: counts.completion_tokens ?? 0,
    charged: formatYuan(amounts.charged ?? 0n),
    bought: formatYuan(bought),
    bought_calls: knownCalls,
    margin: earned === undefined ? null : formatYuan(earned),
  };
}

/** The last bucket has no bound: `more`. */
const finite = (bound: number | undefined): number | string | null =>
  bound === Infinity ? 'more' : (bound ?? null);
