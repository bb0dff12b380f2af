/**
 * GET /v1/account/statement?month=2026-10: an account's month from its opening to its closing balance, for every usable key.
 * Reads sums, never calls: one item a month, and the days of the month. Must never be lenient: a statement goes into books.
 */
import { computeBalance, sumFigures, type DailySum } from '../../billing/daily-figures.ts';
import { grantsModel, listMonthsUntil, modelOf, parseMonthKey } from '../../billing/daily-keys.ts';
import { findLedgerTimeMs } from '../../billing/ledger-row.ts';
import { convertToYuanNumber } from '../../billing/money.ts';
import { createQuotaItem } from '../../billing/quota-item.ts';
import type { Settings } from '../../config/settings.ts';
import { requestTimeMs } from '../../wire/ids.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { utcMonth } from '../../wire/iso-time.ts';
import type { AccountStatement } from '../../wire/public-api.ts';
import type { AccountReader } from '../ports/money-stores.ts';
import { describeDay, sumsMax } from './account-usage.ts';

interface StatementAsked {
  account: string;
  query: URLSearchParams;
  seller: Settings['seller'];
  nowMs: number;
}

/** Throws an InvalidRequest for a month that is none, or has not begun. */
export async function answerStatement(
  reader: Pick<AccountReader, 'quota' | 'months' | 'days' | 'grants'>,
  { account, query, seller, nowMs }: StatementAsked,
): Promise<Omit<AccountStatement, 'prices'>> {
  const month = readMonth(query, nowMs);
  const [quota, months, days, grants] = await Promise.all([
    reader.quota(account),
    reader.months(account, listMonthsUntil(nowMs)),
    // No month has so many days.
    reader.days(account, month, sumsMax + 1, `${month}-32`),
    reader.grants(account),
  ]);
  const item = quota ?? createQuotaItem(account);
  const before = balanceOf(months.filter(({ key }) => parseMonthKey(key).month < month));
  const own = balanceOf(
    months.filter(({ key }) => parseMonthKey(key).month === month),
    before.closing,
  );
  const all = balanceOf(months);
  const isOver = month < utcMonth(nowMs);
  const listed = grants.filter(({ at }) => at.startsWith(month));
  const isCut = days.length > sumsMax;
  const addsUp =
    all.granted === item.granted &&
    all.charged === item.spent &&
    all.metered === (item.metered ?? 0n) &&
    listed.reduce((sum, { amount }) => sum + amount, 0n) === own.granted &&
    (isCut || balanceOf(days).charged === own.charged);
  // An id without a time may be of any time.
  const runs = [...(quota?.open.keys() ?? [])].some((id) => utcMonth(requestTimeMs(id) ?? 0) <= month);
  return {
    object: 'account.statement',
    currency: 'CNY',
    account,
    month,
    seller: seller ?? null,
    opening: convertToYuanNumber(own.opening),
    granted: convertToYuanNumber(own.granted),
    charged: convertToYuanNumber(own.charged),
    metered: convertToYuanNumber(own.metered),
    closing: convertToYuanNumber(own.closing),
    final: isOver && !runs && addsUp,
    grants: listed
      .toSorted((a, b) => findLedgerTimeMs(a) - findLedgerTimeMs(b))
      .map(({ id, at, amount, reason }) => ({
        id,
        created: Math.floor(Date.parse(at) / 1000),
        amount: convertToYuanNumber(amount),
        reason,
      })),
    models: isCut ? null : modelsOf(days),
  };
}

function readMonth(query: URLSearchParams, nowMs: number): string {
  const month = query.get('month') ?? '';
  if (/^\d{4}-(0[1-9]|1[0-2])$/.test(month) && month <= utcMonth(nowMs)) return month;
  throw new InvalidRequest(
    'invalid_value',
    'month',
    "Invalid value for 'month': expected a UTC month that has started, such as 2026-10.",
  );
}

const balanceOf = (sums: readonly DailySum[], opening = 0n) =>
  computeBalance(opening, sumFigures(sums.map(({ figures }) => figures)));

/** The largest charge first. */
const modelsOf = (days: readonly DailySum[]): AccountStatement['models'] =>
  [...Map.groupBy(days, modelOf)]
    .filter(([model]) => model !== grantsModel)
    .map(([, sums]) => {
      const figures = sumFigures(sums.map((sum) => sum.figures));
      const { day: _, ...used } = describeDay({ key: sums[0]!.key, figures });
      return used;
    })
    .toSorted((a, b) => b.charge - a.charge);
