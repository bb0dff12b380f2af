import { mapInputParts, partCounts } from '../wire/chat-response.ts';
import { utcDay } from '../wire/iso-time.ts';
import type { NanoYuan } from './price.ts';
import {
  latePrefix,
  findLedgerTimeMs,
  type CloseRow,
  type GrantLedgerRow,
  type LedgerRow,
} from './ledger-row.ts';
import {
  type DailyKey,
  isMonthKey,
  servedId,
  listDailyKeys,
  formatMinutePeriod,
  formatMinutesId,
  removeBucket,
} from './daily-keys.ts';

/** The buckets of the time to first content: each counts the calls up to its bound and above the one before. */
const boundsMs = [250, 500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000] as const;

type FirstContentBucket = `first_content_${(typeof boundsMs)[number] | 'more'}`;

export const firstContentBuckets: readonly FirstContentBucket[] = [
  ...boundsMs.map((bound): FirstContentBucket => `first_content_${bound}`),
  'first_content_more',
];

export const findFirstContentBucket = (milliseconds: number): FirstContentBucket =>
  `first_content_${boundsMs.find((bound) => milliseconds <= bound) ?? 'more'}`;

/**
 * What of the calls and tokens no price was applied to: of calls on a plan, of official mode, and of calls that were
 * released or expired. The rest comes to `charged`, by the prices.
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
  ...firstContentBuckets,
  ...unpaidNames.map((name): `unpaid_${typeof name}` => `unpaid_${name}`),
] as const;

/**
 * `bought_charged`: what was charged for the calls and the searches whose cost is known, so that a margin compares like with like.
 * `metered`, `searched`: what of `charged` no balance paid, and what was charged for searches.
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
  row.kind === 'grant' ? grantFigures(row) : callFigures(row);

const grantFigures = ({ amount }: GrantLedgerRow): DailyFigures => ({
  counts: { grants: 1 },
  amounts: { granted: amount },
});

/** A late settle is no call of its own: the expiry before it was counted. */
function callFigures(row: CloseRow): DailyFigures {
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
      failures: isFailure(row) ? one : 0,
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
  if (row.first_content_ms !== undefined) figures.counts[findFirstContentBucket(row.first_content_ms)] = 1;
  if (isUnpaid(row))
    for (const name of unpaidNames) figures.counts[`unpaid_${name}`] = { calls: one, ...tokens }[name];
  return figures;
}

const isUnpaid = ({ kind, plan_slot, official }: CloseRow): boolean =>
  kind !== 'settled' || plan_slot !== undefined || official === true;

const isFailure = ({ kind, end }: CloseRow): boolean => kind !== 'settled' || end === 'failed';

/** @param figures without any that are 0, as `addFigures` returns them */
export const isEmpty = ({ counts, amounts }: DailyFigures): boolean =>
  Object.keys(counts).length + Object.keys(amounts).length === 0;

export const addFigures = (a: DailyFigures, b: DailyFigures): DailyFigures => sumOf([a, b]);

/** What an account has after such figures, in nano-yuan. Metered calls are charged, and no balance pays for them. */
export function computeBalance(opening: NanoYuan, { amounts }: DailyFigures) {
  const { granted = 0n, charged = 0n, metered = 0n } = amounts;
  return { opening, granted, charged, metered, closing: opening + granted - charged + metered };
}
export const subtractFigures = (a: DailyFigures, b: DailyFigures): DailyFigures => sumOf([a, negative(b)]);

/** Without figures that are 0. A batch adds thousands, so each is looked at once. */
function sumOf(all: readonly DailyFigures[]): DailyFigures {
  const counts: Record<string, number> = {};
  const amounts: Record<string, NanoYuan> = {};
  for (const figures of all) {
    for (const [name, count] of Object.entries(figures.counts)) counts[name] = (counts[name] ?? 0) + count;
    for (const [name, amount] of Object.entries(figures.amounts))
      amounts[name] = (amounts[name] ?? 0n) + amount;
  }
  return {
    counts: Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== 0)),
    amounts: Object.fromEntries(Object.entries(amounts).filter(([, amount]) => amount !== 0n)),
  };
}

const negative = ({ counts, amounts }: DailyFigures): DailyFigures => ({
  counts: Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, -count])),
  amounts: Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, -amount])),
});

const volume = ['calls', 'failures', 'prompt_tokens', 'completion_tokens'];
/** A page lists the items of 5,000 accounts at once, so they are small. */
const ofMonth = new Set([...volume, 'plan_calls', 'grants', 'charged', 'metered', 'granted']);
const ofMinute = new Set([
  ...volume,
  ...firstContentBuckets,
  'charged',
  'bought',
  'bought_charged',
  'search_bought',
]);

function isKept(key: DailyKey, name: string): boolean {
  if (isMonthKey(key)) return ofMonth.has(name);
  if (key.period.startsWith('minute#')) return ofMinute.has(name);
  return removeBucket(key).id === servedId || !name.startsWith('unpaid_');
}

/** Those of the figures that an item with this key has. */
export function selectFigures(key: DailyKey, { counts, amounts }: DailyFigures): DailyFigures {
  const kept = <Figures extends object>(figures: Figures) =>
    Object.fromEntries(Object.entries(figures).filter(([name]) => isKept(key, name))) as Figures;
  return { counts: kept(counts), amounts: kept(amounts) };
}

/** `firstDay`: of an account's month, the UTC day of its first call in it. Sums from before 0.1.0 lack it. */
export interface DailySum {
  key: DailyKey;
  figures: DailyFigures;
  firstDay?: string | undefined;
}

/** @param bucket of the sums of all accounts */
export const sumDaily = (rows: readonly LedgerRow[], bucket = 0): DailySum[] =>
  sumsBy(rows, (row) => listDailyKeys(row, bucket));

/** What rows add to the items that `keysOf` names. Items to which they add nothing are left out. */
function sumsBy<Row extends LedgerRow>(rows: readonly Row[], keysOf: (row: Row) => DailyKey[]): DailySum[] {
  const added = new Map<string, { key: DailyKey; all: DailyFigures[]; days: string[] }>();
  for (const row of rows) {
    const own = countRow(row);
    for (const key of keysOf(row)) {
      const name = formatDailyKey(key);
      const sum = added.get(name) ?? { key, all: [], days: [] };
      added.set(name, sum);
      sum.all.push(own);
      if (isMonthKey(key) && row.kind !== 'grant') sum.days.push(utcDay(findLedgerTimeMs(row)));
    }
  }
  const sums = [...added.values()].map(({ key, all, days }): DailySum => {
    const figures = selectFigures(key, sumOf(all));
    const [firstDay] = days.toSorted();
    return firstDay === undefined ? { key, figures } : { key, figures, firstDay };
  });
  return sums.filter(({ figures }) => !isEmpty(figures));
}

/**
 * Rows in groups that fit, with the items that count them, into transactions of so many writes. Rows that are counted in the
 * same items come together: fewer writes, and fewer transactions that name an item which others name at the same time.
 */
export function groupIntoTransactions<Row extends LedgerRow>(
  rows: readonly Row[],
  writesMax: number,
): Row[][] {
  const groups: Row[][] = [];
  let group: Row[] = [];
  let keys = new Set<string>();
  for (const row of sideBySide(rows)) {
    const own = [...listDailyKeys(row).map(formatDailyKey), ...budgetOf(row)];
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

/** Accounts with several rows one after the other, then the rows of all others by model and channel. */
function sideBySide<Row extends LedgerRow>(rows: readonly Row[]): Row[] {
  const byAccount = [...Map.groupBy(rows, ({ account }) => account).values()];
  const alone = byAccount.filter(({ length }) => length === 1).flat();
  const sum = (row: Row): string =>
    row.kind === 'grant' ? '' : `${row.model}\u0000${row.channel}\u0000${row.upstream_model}`;
  const several = byAccount.filter(({ length }) => length > 1).toSorted((a, b) => b.length - a.length);
  return [...several, ...Map.groupBy(alone, sum).values()].flat();
}

const budgetOf = (row: LedgerRow): string[] =>
  row.kind === 'grant' || row.budget === undefined ? [] : [`${row.key} ${row.budget}`];

export const formatDailyKey = ({ id, period }: DailyKey): string => `${id}\u0000${period}`;

/** Rows of one batch closed within seconds; only after an outage they are of many minutes. */
const minutesMax = 10;

/**
 * What rows add to the items of minutes, the newest first. By the time of the close, so that a batch is of few
 * minutes, and a failure is seen when it happened.
 */
export const sumMinutes = (rows: readonly CloseRow[]): DailySum[] =>
  sumsBy(rows, minuteKeys)
    .toSorted((a, b) => (a.key.period < b.key.period ? 1 : -1))
    .slice(0, minutesMax);

const minuteKeys = ({ kind, at }: CloseRow): DailyKey[] =>
  kind === 'cancelled' ? [] : [{ id: formatMinutesId(at.slice(0, 10)), period: formatMinutePeriod(at) }];
