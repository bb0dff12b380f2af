import type { NanoYuan } from '../amount.ts';
import { latePrefix, type CloseRow, type GrantLedgerRow, type LedgerRow } from '../ledger-row.ts';
import { firstContentBucket, firstContentBuckets } from './first-content.ts';

/**
 * What of the calls and tokens no price was applied to: of calls on a plan, of official mode, and of calls that were
 * released or expired. The rest comes to `charged`, by the prices.
 */
const unpaidNames = [
  'unpaid_calls',
  'unpaid_prompt_tokens',
  'unpaid_completion_tokens',
  'unpaid_cached_tokens',
  'unpaid_cache_write_tokens',
  'unpaid_cache_write_1h_tokens',
] as const;

/** Named as in the table `daily`. */
export const countNames = [
  'calls',
  'failures',
  'estimated',
  'flagged',
  'plan_calls',
  'official_calls',
  'bought_calls',
  'prompt_tokens',
  'completion_tokens',
  'cached_tokens',
  'cache_write_tokens',
  'cache_write_1h_tokens',
  'grants',
  ...firstContentBuckets,
  ...unpaidNames,
] as const;

/** `bought_charged`: the charges of the calls whose cost is known, so that a margin compares like with like. */
export const amountNames = ['charged', 'official_cost', 'bought', 'bought_charged', 'granted'] as const;

/** What some ledger rows add up to. An absent figure is 0. */
export interface DailyFigures {
  counts: Partial<Record<(typeof countNames)[number], number>>;
  amounts: Partial<Record<(typeof amountNames)[number], NanoYuan>>;
}

export const noFigures: DailyFigures = { counts: {}, amounts: {} };

export const figuresOf = (row: LedgerRow): DailyFigures =>
  row.kind === 'grant' ? grantFigures(row) : callFigures(row);

const grantFigures = ({ amount }: GrantLedgerRow): DailyFigures => ({
  counts: { grants: 1 },
  amounts: { granted: amount },
});

/** A late settle is no call of its own: the expiry before it was counted. */
function callFigures(row: CloseRow): DailyFigures {
  const one = row.id.startsWith(latePrefix) ? 0 : 1;
  const known = row.bought !== undefined;
  const tokens = {
    prompt_tokens: row.prompt_tokens ?? 0,
    completion_tokens: row.completion_tokens ?? 0,
    cached_tokens: row.cached_tokens ?? 0,
    cache_write_tokens: row.cache_write_tokens ?? 0,
    cache_write_1h_tokens: row.cache_write_1h_tokens ?? 0,
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
      ...tokens,
    },
    amounts: {
      charged: row.charge,
      official_cost: row.cost ?? 0n,
      bought: row.bought ?? 0n,
      bought_charged: known ? row.charge : 0n,
    },
  };
  if (row.first_content_ms !== undefined) figures.counts[firstContentBucket(row.first_content_ms)] = 1;
  if (isUnpaid(row)) {
    figures.counts.unpaid_calls = one;
    figures.counts.unpaid_prompt_tokens = tokens.prompt_tokens;
    figures.counts.unpaid_completion_tokens = tokens.completion_tokens;
    figures.counts.unpaid_cached_tokens = tokens.cached_tokens;
    figures.counts.unpaid_cache_write_tokens = tokens.cache_write_tokens;
    figures.counts.unpaid_cache_write_1h_tokens = tokens.cache_write_1h_tokens;
  }
  return figures;
}

const isUnpaid = ({ kind, plan_slot, official }: CloseRow): boolean =>
  kind !== 'settled' || plan_slot !== undefined || official === true;

const isFailure = ({ kind, end }: CloseRow): boolean => kind !== 'settled' || end === 'failed';

/** @param figures without any that are 0, as `addFigures` returns them */
export const isNothing = ({ counts, amounts }: DailyFigures): boolean =>
  Object.keys(counts).length + Object.keys(amounts).length === 0;

export function addFigures(a: DailyFigures, b: DailyFigures): DailyFigures {
  const sum: DailyFigures = { counts: { ...a.counts }, amounts: { ...a.amounts } };
  for (const name of countNames) {
    const count = (a.counts[name] ?? 0) + (b.counts[name] ?? 0);
    if (count !== 0) sum.counts[name] = count;
    else delete sum.counts[name];
  }
  for (const name of amountNames) {
    const amount = (a.amounts[name] ?? 0n) + (b.amounts[name] ?? 0n);
    if (amount !== 0n) sum.amounts[name] = amount;
    else delete sum.amounts[name];
  }
  return sum;
}
