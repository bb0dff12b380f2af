/** View: the newest ledger rows. */
import { type LedgerRow, ledgerTimeMs, latePrefix, type CloseRow } from '../../billing/ledger-row.ts';
import type { OperatorPorts, Reading, AccountMonth } from '../operator-ports.ts';
import { usageFailure, Failure } from '../plan.ts';
import { formatYuan, type NanoYuan } from '../../billing/amount.ts';
import { isoTime, utcDay, utcMonth } from '../../wire/iso-time.ts';
import { compareCodeUnits } from '../../wire/json.ts';

export interface LedgerList {
  /** Newest first. */
  rows: LedgerRow[];
  /** Number of matching rows, including those beyond the limit. */
  count: number;
  /** One sentence for each row that is left out because it cannot be read. */
  problems: string[];
}

/** @param onProgress called with the number of further rows that were read */
export async function listLedger(
  ports: OperatorPorts,
  { limit, ...filter }: LedgerFilter & { limit: number },
  onProgress: (count: number) => void,
): Promise<LedgerList> {
  let rows: LedgerRow[] = [];
  let count = 0;
  const problems: string[] = [];
  for await (const page of selectRows(ports, filter, onProgress)) {
    count += page.rows.length;
    rows = [...rows, ...page.rows].toSorted((a, b) => ledgerTimeMs(b) - ledgerTimeMs(a)).slice(0, limit);
    problems.push(...page.problems);
  }
  return { rows, count, problems };
}

// Reads the ledger rows that match a filter, page by page.

export interface LedgerFilter {
  account?: string | undefined;
  /** Start of the call in epoch milliseconds, inclusive. */
  fromMs?: number | undefined;
  /** Epoch milliseconds, exclusive. */
  toMs?: number | undefined;
  model?: string | undefined;
}

export interface LedgerPage {
  rows: LedgerRow[];
  /** One sentence for each row that is left out because it cannot be read. */
  problems: string[];
}

/** @param onProgress called with the number of further rows that were read */
export async function* selectRows(
  { ledger }: OperatorPorts,
  { account, fromMs, toMs, model }: LedgerFilter,
  onProgress: (count: number) => void,
): AsyncGenerator<LedgerPage> {
  if (fromMs !== undefined && toMs !== undefined && fromMs >= toMs)
    throw usageFailure('--from must be before --to, which is not included');
  for await (const page of ledger.ledger({ account, fromMs, toMs })) {
    const { rows, problems } = readingsOf(page);
    onProgress(page.length);
    yield {
      rows: model === undefined ? rows : rows.filter((row) => row.kind !== 'grant' && row.model === model),
      problems,
    };
  }
}

const readingsOf = (readings: Reading<LedgerRow>[]): LedgerPage => ({
  rows: readings.flatMap((reading) => ('row' in reading ? [reading.row] : [])),
  problems: readings.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])),
});

// Converts a ledger row for programs: attributes named as in the table (but `at` is `booked`), exact decimal
// amounts.

type Cell = string | number | boolean;

export function ledgerJson(row: LedgerRow): Record<string, Cell> {
  const { at, ...rest } = row;
  const cells = { began: isoTime(ledgerTimeMs(row)), booked: at, ...rest };
  return Object.fromEntries(
    Object.entries(cells).flatMap(([name, value]: [string, Cell | bigint | undefined]) =>
      value === undefined ? [] : [[name, typeof value === 'bigint' ? formatYuan(value) : value]],
    ),
  );
}

// View: exact sums of ledger rows by account, model and day.

export type Grouping = 'account' | 'model' | 'day';
export const groupings: readonly Grouping[] = ['account', 'model', 'day'];

export interface LedgerSum {
  calls: number;
  promptTokens: number;
  completionTokens: number;
  charged: NanoYuan;
  /** What official calls would have cost. */
  official: NanoYuan;
  granted: NanoYuan;
  cachedTokens: number;
  cacheWriteTokens: number;
  cacheWrite1hTokens: number;
  /** What calls cost the operator, over how many calls that is known, and what these were charged. */
  bought: NanoYuan;
  boughtCalls: number;
  boughtCharged: NanoYuan;
}

export interface LedgerTotals {
  by: Grouping[];
  /** Sorted by `groups`, whose elements are in the order of `by`. */
  totals: { groups: string[]; sum: LedgerSum }[];
  all: LedgerSum;
  /** One sentence for each row that is left out because it cannot be read. */
  problems: string[];
}

const groupOf: Record<Grouping, (row: LedgerRow) => string> = {
  account: (row) => row.account,
  model: (row) => (row.kind === 'grant' ? '(grants)' : row.model),
  /** The UTC day on which the call began. */
  day: (row) => utcDay(ledgerTimeMs(row)),
};

/** @param onProgress called with the number of further rows that were read */
export async function totalLedger(
  ports: OperatorPorts,
  { by, ...filter }: LedgerFilter & { by: Grouping[] },
  onProgress: (count: number) => void,
): Promise<LedgerTotals> {
  const sums = new Map<string, LedgerSum>();
  const problems: string[] = [];
  for await (const page of selectRows(ports, filter, onProgress)) {
    problems.push(...page.problems);
    for (const row of page.rows) {
      const key = by.map((grouping) => groupOf[grouping](row)).join(separator);
      sums.set(key, addSums(sums.get(key) ?? nothing, sumOf(row)));
    }
  }
  const totals = [...sums]
    .toSorted(([a], [b]) => compareCodeUnits(a, b))
    .map(([key, sum]) => ({ groups: key.split(separator), sum }));
  return { by, totals, all: [...sums.values()].reduce(addSums, nothing), problems };
}

const separator = '\u0000';

const nothing: LedgerSum = {
  calls: 0,
  promptTokens: 0,
  completionTokens: 0,
  charged: 0n,
  official: 0n,
  granted: 0n,
  cachedTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  bought: 0n,
  boughtCalls: 0,
  boughtCharged: 0n,
};

const sumOf = (row: LedgerRow): LedgerSum =>
  row.kind === 'grant'
    ? { ...nothing, granted: row.amount }
    : {
        calls: 1,
        promptTokens: row.prompt_tokens ?? 0,
        completionTokens: row.completion_tokens ?? 0,
        charged: row.charge,
        official: row.cost ?? 0n,
        granted: 0n,
        cachedTokens: row.cached_tokens ?? 0,
        cacheWriteTokens: row.cache_write_tokens ?? 0,
        cacheWrite1hTokens: row.cache_write_1h_tokens ?? 0,
        bought: row.bought ?? 0n,
        boughtCalls: row.bought === undefined ? 0 : 1,
        boughtCharged: row.bought === undefined ? 0n : row.charge,
      };

const addSums = (a: LedgerSum, b: LedgerSum): LedgerSum => ({
  calls: a.calls + b.calls,
  promptTokens: a.promptTokens + b.promptTokens,
  completionTokens: a.completionTokens + b.completionTokens,
  charged: a.charged + b.charged,
  official: a.official + b.official,
  granted: a.granted + b.granted,
  cachedTokens: a.cachedTokens + b.cachedTokens,
  cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
  cacheWrite1hTokens: a.cacheWrite1hTokens + b.cacheWrite1hTokens,
  bought: a.bought + b.bought,
  boughtCalls: a.boughtCalls + b.boughtCalls,
  boughtCharged: a.boughtCharged + b.boughtCharged,
});

// Takes the readable rows of pages, and a sentence for each of the others.

export interface ReadRows<Row> {
  rows: Row[];
  problems: string[];
}

export async function rowsIn<Row>(pages: AsyncIterable<Reading<Row>[]>): Promise<ReadRows<Row>> {
  const readings = (await Array.fromAsync(pages)).flat();
  return {
    rows: readings.flatMap((each) => ('row' in each ? [each.row] : [])),
    problems: readings.flatMap((each) => ('problem' in each ? [`${each.key}: ${each.problem}`] : [])),
  };
}

// View: what each account spent, and in how many days: this month, and in its first week the month before too. Reads sums.

export interface SpendingPace {
  /** Accounts that were charged something. */
  charged: Map<string, NanoYuan>;
  /** For so long: at least one, since the first hours say little. */
  days: number;
  /** Accounts that had a call or a grant in the running month. */
  running: AccountMonth[];
  problems: string[];
}

const dayMs = 86_400_000;
const ownPaceDays = 7;

export async function spendingPace({
  clock,
  ledger,
}: Pick<OperatorPorts, 'clock' | 'ledger'>): Promise<SpendingPace> {
  const nowMs = clock.now();
  const startMs = startOf(nowMs);
  const isEarly = nowMs - startMs < ownPaceDays * dayMs;
  const fromMs = isEarly ? startOf(startMs - dayMs) : startMs;
  const months = isEarly ? [nowMs, fromMs] : [nowMs];
  const read = await Promise.all(months.map(async (ms) => rowsIn(ledger.monthAccounts(utcMonth(ms)))));
  const charged = new Map<string, NanoYuan>();
  for (const { account, figures } of read.flatMap(({ rows }) => rows)) {
    const sum = (charged.get(account) ?? 0n) + (figures.amounts.charged ?? 0n);
    if (sum > 0n) charged.set(account, sum);
  }
  return {
    charged,
    days: Math.max(1, (nowMs - fromMs) / dayMs),
    running: read[0]?.rows ?? [],
    problems: read.flatMap(({ problems }) => problems),
  };
}

const startOf = (ms: number): number => Date.parse(`${utcMonth(ms)}-01T00:00:00Z`);

// View: what a call was charged after its reservation expired. The difference has a ledger row of its own, so who says what
// a call cost, or returns it, must read both.

/** Undefined: the row of the call has all that it was charged. One more read, of expired calls alone. */
export async function lateCharge(
  { ledger }: Pick<OperatorPorts, 'ledger'>,
  { kind, id }: LedgerRow,
): Promise<CloseRow | undefined> {
  if (kind !== 'expired') return undefined;
  const reading = await ledger.request(latePrefix + id);
  if (!reading) return undefined;
  if ('problem' in reading)
    throw new Failure(`the row of its late charge cannot be read: ${reading.problem}`);
  return reading.row.kind === 'grant' ? undefined : reading.row;
}
