/**
 * The figures that the table `daily` keeps of calls and grants: what each ledger row adds to them, and their sums. Written with
 * the row in one transaction by the function `ledger`.
 */
import { mapInputParts, partCounts } from '../wire/chat-response.ts';
import { utcDay } from '../wire/iso-time.ts';
import type { NanoYuan } from './money.ts';
import {
  findLedgerTimeMs,
  latePrefix,
  listBudgetCounters,
  type CloseRow,
  type LedgerRow,
} from './ledger-row.ts';
import {
  type DailyKey,
  isMonthKey,
  servedId,
  listDailyKeys,
  formatMinutePeriod,
  formatMinutesId,
  isHealthKey,
  listAttemptKeys,
  removeBucket,
} from './daily-keys.ts';
import { failureCauses, findCause, readAttempts, type CallAttempt, type FailureCause } from './attempts.ts';
import { findBin, timeBins } from './time-sketch.ts';

/**
 * Counts of attempts, by channel. An attempt is timed if it streamed its answer to the end: `timed_tokens` divided by `timed_ms` is its
 * speed.
 */
export const attemptNames = [
  'attempts',
  'failed_attempts',
  ...failureCauses.map((cause): `failed_${FailureCause}` => `failed_${cause}`),
  'timed_ms',
  'timed_tokens',
] as const;

/** An hour has slots of ten minutes, so that a change shows before the hour is over. */
export const slotMinutes = 10;
const slots = [0, 1, 2, 3, 4, 5] as const;
type SlotName = `s${number}_${'answered' | 'failed' | 'log'}`;
/** `log`: hundredths of the natural logarithms of the times to first content. */
export const slotNames = slots.flatMap((slot): SlotName[] => [
  `s${slot}_answered`,
  `s${slot}_failed`,
  `s${slot}_log`,
]);

/**
 * Counts that are kept once more for calls to which no price was applied: on a plan, in official mode, released or expired.
 * The prices of the other calls and tokens add up to `charged`.
 */
const unpaidNames = ['calls', 'prompt_tokens', 'completion_tokens', ...partCounts] as const;

export const countNames = [
  'calls',
  'failures',
  'estimated',
  'flagged',
  'plan_calls',
  'official_calls',
  'bought_calls',
  'searches',
  'prompt_tokens',
  'completion_tokens',
  ...partCounts,
  'grants',
  ...unpaidNames.map((name): `unpaid_${typeof name}` => `unpaid_${name}`),
  ...attemptNames,
  ...timeBins,
  ...slotNames,
] as const;

/**
 * `metered` and `searched` are contained in `charged`. `bought_charged` is the charge of calls and searches whose cost is known, so
 * that a margin compares like with like.
 */
export const amountNames = [
  'charged',
  'metered',
  'official_cost',
  'bought',
  'bought_charged',
  'granted',
  'searched',
  'search_bought',
] as const;

type CountName = (typeof countNames)[number];
type AmountName = (typeof amountNames)[number];

export interface DailyFigures {
  counts: Partial<Record<CountName, number>>;
  amounts: Partial<Record<AmountName, NanoYuan>>;
}

export const noFigures: DailyFigures = { counts: {}, amounts: {} };

export const countRow = (row: LedgerRow): DailyFigures =>
  row.kind === 'grant' ? { counts: { grants: 1 }, amounts: { granted: row.amount } } : countCall(row);

/** A late settle does not count as a call, because the expiry before it did. */
function countCall(row: CloseRow): DailyFigures {
  const one = row.id.startsWith(latePrefix) ? 0 : 1;
  const known = row.bought !== undefined;
  const { search_price: search, search_bought: searchBought } = row;
  const searched = row.official ? 0n : (search ?? 0n);
  const tokens = {
    prompt_tokens: row.prompt_tokens ?? 0,
    completion_tokens: row.completion_tokens ?? 0,
    ...mapInputParts('count', ({ count }) => row[count] ?? 0),
  };
  const figures: DailyFigures = {
    counts: {
      calls: one,
      failures: row.kind !== 'settled' || row.end === 'failed' ? one : 0,
      estimated: row.estimated ? 1 : 0,
      flagged: row.flag === undefined ? 0 : 1,
      plan_calls: row.plan_slot === undefined ? 0 : one,
      official_calls: row.official ? one : 0,
      bought_calls: known ? 1 : 0,
      // A late row below zero takes back what the expiry charged.
      searches: search === undefined ? 0 : search < 0n ? -1 : 1,
      ...tokens,
    },
    amounts: {
      charged: row.charge,
      metered: row.metered ? row.charge : 0n,
      official_cost: row.cost ?? 0n,
      bought: row.bought ?? 0n,
      bought_charged: (known ? row.charge - searched : 0n) + (searchBought === undefined ? 0n : searched),
      searched,
      search_bought: searchBought ?? 0n,
    },
  };
  if (row.kind !== 'settled' || row.plan_slot !== undefined || row.official)
    for (const name of unpaidNames) figures.counts[`unpaid_${name}`] = { calls: one, ...tokens }[name];
  return figures;
}

/** Shorter times are those of answers that arrive whole, so they tell no speed. */
const timedMsMin = 100;

/** Counts an attempt for its channel's sums. The tokens of a call are those of its last attempt. */
function countAttempt(row: CloseRow, attempt: CallAttempt, all: readonly CallAttempt[]): DailyFigures {
  const { contentMs, endMs } = attempt;
  const cause = findCause(attempt, all);
  const slot = Math.floor(Number(row.at.slice(14, 16)) / slotMinutes);
  const counts: DailyFigures['counts'] = { attempts: 1 };
  if (cause) Object.assign(counts, { failed_attempts: 1, [`failed_${cause}`]: 1, [`s${slot}_failed`]: 1 });
  if (contentMs === undefined) return { counts, amounts: {} };
  const log = Math.round(100 * Math.log(Math.max(1, contentMs)));
  Object.assign(counts, { [findBin(contentMs)]: 1, [`s${slot}_answered`]: 1, [`s${slot}_log`]: log });
  const timedMs = attempt === all.at(-1) && !cause && endMs !== undefined ? endMs - contentMs : 0;
  if (timedMs >= timedMsMin)
    Object.assign(counts, { timed_ms: timedMs, timed_tokens: row.completion_tokens ?? 0 });
  return { counts, amounts: {} };
}

/** `addFigures` removes figures that are 0. */
export const isEmpty = ({ counts, amounts }: DailyFigures): boolean =>
  Object.keys(counts).length + Object.keys(amounts).length === 0;

export const addFigures = (a: DailyFigures, b: DailyFigures): DailyFigures => sumFigures([a, b]);

/** Metered calls are charged, but no balance pays for them. */
export function computeBalance(opening: NanoYuan, { amounts }: DailyFigures) {
  const { granted = 0n, charged = 0n, metered = 0n } = amounts;
  return { opening, granted, charged, metered, closing: opening + granted - charged + metered };
}
export const subtractFigures = (a: DailyFigures, b: DailyFigures): DailyFigures => sumFigures([a, negate(b)]);

/** Removes figures that are 0. A batch adds thousands, and an overview sums 15,000, so it looks at each once. */
export function sumFigures(all: readonly DailyFigures[]): DailyFigures {
  const counts: Record<string, number> = {};
  const amounts: Record<string, NanoYuan> = {};
  for (const figures of all) {
    // Most figures of a row are 0. `Object.entries` would take twice as long.
    for (const name of Object.keys(figures.counts) as CountName[])
      if (figures.counts[name]) counts[name] = (counts[name] ?? 0) + figures.counts[name];
    for (const name of Object.keys(figures.amounts) as AmountName[])
      if (figures.amounts[name]) amounts[name] = (amounts[name] ?? 0n) + figures.amounts[name];
  }
  return {
    counts: Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
    amounts: Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount !== 0n)),
  };
}

const negate = ({ counts, amounts }: DailyFigures): DailyFigures => ({
  counts: Object.fromEntries(Object.entries(counts).map(([name, count = 0]) => [name, -count])),
  amounts: Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, -amount])),
});

const volume = ['calls', 'failures', 'prompt_tokens', 'completion_tokens'];
/** Items of months are small, because a page lists those of 5,000 accounts at once. */
const money = ['charged', 'bought', 'bought_charged', 'search_bought', 'bought_calls'];
const monthFigures = new Set([...volume, ...money, 'plan_calls', 'grants', 'metered', 'granted']);
const minuteFigures = new Set<string>([...volume, ...timeBins, ...money]);
const healthFigures = new Set<string>([...minuteFigures, ...attemptNames, ...slotNames]);
const servedFigures = new Set<string>([...attemptNames, ...timeBins]);
const hourFigures = new Set<string>(slotNames);

export const isAudited = (name: string): boolean => !servedFigures.has(name) && !hourFigures.has(name);

function findFilter(key: DailyKey): (name: string) => boolean {
  if (isMonthKey(key)) return (name) => monthFigures.has(name);
  if (key.period.startsWith('minute#')) return (name) => minuteFigures.has(name);
  if (isHealthKey(key)) return (name) => healthFigures.has(name);
  if (removeBucket(key).id === servedId) return (name) => !hourFigures.has(name);
  return (name) => isAudited(name) && !name.startsWith('unpaid_');
}

export function selectFigures(key: DailyKey, { counts, amounts }: DailyFigures): DailyFigures {
  const isKept = findFilter(key);
  const select = <Figures extends object>(figures: Figures) =>
    Object.fromEntries(Object.entries(figures).filter(([name]) => isKept(name))) as Figures;
  return { counts: select(counts), amounts: select(amounts) };
}

/** `firstDay` is the UTC day of the first call in an account's month. Sums from before 0.1.0 lack it. */
export interface DailySum {
  key: DailyKey;
  figures: DailyFigures;
  firstDay?: string | undefined;
}

/** @param bucket of the sums of all accounts */
export const sumDaily = (rows: readonly LedgerRow[], bucket = 0): DailySum[] =>
  sumByKey(rows, (row) => listCounts(row, bucket));

/** Lists the items that count a row, with what it adds. A call that failed over counts for each channel that it tried. */
function listCounts(row: LedgerRow, bucket = 0): Counted[] {
  const rowFigures = countRow(row);
  const counted = listDailyKeys(row, bucket).map((key): Counted => [key, rowFigures]);
  if (row.kind === 'grant') return counted;
  const attempts = readAttempts(row);
  for (const attempt of attempts) {
    const figures = countAttempt(row, attempt, attempts);
    const keys = listAttemptKeys(row, attempt, bucket);
    counted.push(...keys.map((key): Counted => [key, figures]));
    if (attempt === attempts.at(-1)) counted.push([keys[1], rowFigures]);
  }
  return counted;
}

/** Sums the attempts of calls without a reservation, which have no ledger row. */
export const sumFreeAttempts = (rows: readonly CloseRow[]): DailySum[] =>
  sumByKey(rows, (row) =>
    listCounts(row).flatMap(([key, figures]): Counted[] => {
      const isOfAttempts = isHealthKey(key) || (key.id === servedId && figures.counts.attempts !== undefined);
      return isOfAttempts ? [[key, figures]] : [];
    }),
  );

type Counted = [key: DailyKey, figures: DailyFigures];

/** Sums what rows add to each item. Leaves out items to which they add nothing. */
function sumByKey<Row extends LedgerRow>(rows: readonly Row[], listOf: (row: Row) => Counted[]): DailySum[] {
  const added = new Map<string, { key: DailyKey; all: DailyFigures[]; days: string[] }>();
  for (const row of rows) {
    for (const [key, figures] of listOf(row)) {
      const name = formatDailyKey(key);
      const sum = added.get(name) ?? { key, all: [], days: [] };
      added.set(name, sum);
      sum.all.push(figures);
      if (isMonthKey(key) && row.kind !== 'grant') sum.days.push(utcDay(findLedgerTimeMs(row)));
    }
  }
  const sums = [...added.values()].map(({ key, all, days }): DailySum => {
    const figures = selectFigures(key, sumFigures(all));
    const [firstDay] = days.toSorted();
    return firstDay === undefined ? { key, figures } : { key, figures, firstDay };
  });
  return sums.filter(({ figures }) => !isEmpty(figures));
}

/**
 * Groups rows so that each group fits, with the items that count it, into a transaction of `writesMax` writes. Rows that share
 * items come together: that saves writes, and conflicts between transactions that write one item at the same time.
 */
export function groupIntoTransactions<Row extends LedgerRow>(
  rows: readonly Row[],
  writesMax: number,
): Row[][] {
  const groups: Row[][] = [];
  let group: Row[] = [];
  let keys = new Set<string>();
  for (const row of sortByAccountAndModel(rows)) {
    const own = [...listCounts(row).map(([key]) => formatDailyKey(key)), ...budgetOf(row)];
    const more = own.filter((key) => !keys.has(key));
    if (group.length + 1 + keys.size + more.length > writesMax && group.length > 0) {
      groups.push(group);
      group = [];
      keys = new Set();
    }
    group.push(row);
    for (const key of own) keys.add(key);
  }
  return group.length > 0 ? [...groups, group] : groups;
}

/** Accounts with several rows come first, then the rows of all others by model and channel. */
function sortByAccountAndModel<Row extends LedgerRow>(rows: readonly Row[]): Row[] {
  const byAccount = [...Map.groupBy(rows, ({ account }) => account).values()];
  const alone = byAccount.filter(({ length }) => length === 1).flat();
  const sum = (row: Row): string =>
    row.kind === 'grant' ? '' : `${row.model}\u0000${row.channel}\u0000${row.upstream_model}`;
  const several = byAccount.filter(({ length }) => length > 1).toSorted((a, b) => b.length - a.length);
  return [...several, ...Map.groupBy(alone, sum).values()].flat();
}

const budgetOf = (row: LedgerRow): string[] =>
  row.kind === 'grant' ? [] : listBudgetCounters(row).map(({ key, period }) => `${key} ${period}`);

export const formatDailyKey = ({ id, period }: DailyKey): string => `${id}\u0000${period}`;

/** The rows of a batch closed within seconds of each other, except after an outage. */
const minutesMax = 10;

/**
 * Sums rows by the minute in which they closed, the newest first: so a batch touches few items, and a failure shows when it
 * happened.
 */
export const sumMinutes = (rows: readonly CloseRow[]): DailySum[] =>
  sumByKey(rows, listMinuteCounts)
    .toSorted((a, b) => (a.key.period < b.key.period ? 1 : -1))
    .slice(0, minutesMax);

function listMinuteCounts(row: CloseRow): Counted[] {
  if (row.kind === 'cancelled') return [];
  const key = { id: formatMinutesId(row.at.slice(0, 10)), period: formatMinutePeriod(row.at) };
  const attempts = readAttempts(row);
  return [countRow(row), ...attempts.map((one) => countAttempt(row, one, attempts))].map((each) => [
    key,
    each,
  ]);
}
