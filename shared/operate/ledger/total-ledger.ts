/** View: exact sums of ledger rows by account, model and day. */
import type { NanoYuan } from '../../billing/amount.ts';
import { type LedgerRow, ledgerTimeMs } from '../../billing/ledger-row.ts';
import { compareCodeUnits } from '../../wire/canonical-json.ts';
import type { OperatorPorts } from '../operator-ports.ts';
import { selectRows, type LedgerFilter } from './select-rows.ts';
import { utcDay } from '../../wire/iso-time.ts';

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
