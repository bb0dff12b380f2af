/** The answer of GET /v1/account: an account as its customer sees it. */
import { parseYuan, yuanNumber } from '../../billing/amount.ts';
import { budgetPeriod } from '../../billing/budget-period.ts';
import { accountPlan } from '../../billing/plans/account-plan.ts';
import { emptyQuota, reservedOf, type QuotaItem } from '../../billing/quota-item.ts';
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { AccountBody, AccountBudget, AccountKey } from '../../wire/public/account.ts';

export interface AccountFacts {
  /** Undefined: the account has no valid row and therefore no plan. */
  account: AccountRow | undefined;
  quota: QuotaItem | undefined;
  key: KeyRow;
  snapshot: Pick<Snapshot, 'plans' | 'settings'>;
  nowMs: number;
}

export function accountBody({ account, quota, key, snapshot, nowMs }: AccountFacts): AccountBody {
  const item = quota ?? emptyQuota(key.account);
  return {
    object: 'account',
    currency: 'CNY',
    available: yuanNumber(item.available),
    reserved: yuanNumber(reservedOf(item)),
    spent: yuanNumber(item.spent),
    granted: yuanNumber(item.granted),
    plan: snapshot.settings.subscriptionEnabled
      ? accountPlan({ held: account?.plan, counts: item.plan, plans: snapshot.plans, nowMs })
      : null,
    key: accountKey(key, budget(key, snapshot.settings.timeZone, nowMs)),
  };
}

const accountKey = (key: KeyRow, ofKey: AccountBudget | null): AccountKey => ({
  hint: key.hint,
  models: key.models ?? null,
  expires_at: key.expires_at === undefined ? null : seconds(key.expires_at),
  limits: { max_concurrency: key.max_concurrency ?? null, rpm: key.rpm ?? null, budget: ofKey },
});

function budget({ budget: row }: KeyRow, timeZone = 'UTC', nowMs: number): AccountBudget | null {
  if (!row) return null;
  const { resetsAtMs } = budgetPeriod(row.period, timeZone, nowMs);
  return {
    amount: yuanNumber(parseYuan(row.amount) ?? 0n),
    period: row.period,
    resets_at: seconds(resetsAtMs),
  };
}

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);
