/** What an account used by day and model: read from the sums of its days, newest first, and never from its ledger. */
import { yuanNumber } from '../../billing/amount.ts';
import { grantsModel } from '../../billing/daily/daily-keys.ts';
import type { DailySum } from '../../billing/daily/daily-sums.ts';
import type { AccountDay, AccountDays } from '../../wire/public/account.ts';
import type { AccountReader } from '../ports/stores/account-reader.ts';
import { countParameter } from './count-parameter.ts';

const daysMax = 31;
/** Some 350 bytes each, so that one answer costs at most 45 read units, and has at most 200 KB. */
const sumsMax = 1_000;
const dayMs = 24 * 60 * 60 * 1000;

/** How many days are asked for; undefined: none. Throws an InvalidRequest. */
export const readDays = (query: URLSearchParams): number | undefined =>
  countParameter(query, 'days', daysMax);

/** @param days counted back from today, by UTC */
export async function accountDays(
  reader: Pick<AccountReader, 'days'>,
  { account, days, nowMs }: { account: string; days: number; nowMs: number },
): Promise<AccountDays> {
  const wanted = new Date(nowMs - (days - 1) * dayMs).toISOString().slice(0, 10);
  const sums = await reader.days(account, wanted, sumsMax);
  const last = sums.at(-1);
  // Where there are more than were read, the oldest day that was read may lack some.
  const cut = sums.length === sumsMax && last ? startOf(last) : undefined;
  return {
    from: cut === undefined ? secondsOf(wanted) : cut + dayMs / 1000,
    data: sums.filter((sum) => modelOf(sum) !== grantsModel && startOf(sum) !== cut).map(accountDay),
  };
}

const secondsOf = (day: string): number => Date.parse(day) / 1000;
const startOf = ({ key }: DailySum): number => secondsOf(key.period.split('#')[1] ?? '');
/** Names of models have no `#`. */
const modelOf = ({ key }: DailySum): string => key.period.split('#')[2] ?? '';

/** Field by field: sums hold what the operator pays. */
export function accountDay(sum: DailySum): AccountDay {
  const { counts, amounts } = sum.figures;
  return {
    day: startOf(sum),
    model: modelOf(sum),
    calls: counts.calls ?? 0,
    prompt_tokens: counts.prompt_tokens ?? 0,
    completion_tokens: counts.completion_tokens ?? 0,
    cached_tokens: counts.cached_tokens ?? 0,
    charge: yuanNumber(amounts.charged ?? 0n),
  };
}
