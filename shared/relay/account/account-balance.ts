/** The answer of GET /v1/account: an account as its customer sees it. */
import { parseYuan, yuanNumber } from '../../billing/amount.ts';
import { budgetPeriod } from '../../billing/budget-period.ts';
import type { WrittenRates, WrittenTier } from '../../billing/price.ts';
import { priceChanges, type PriceChange } from '../../billing/price-changes.ts';
import { accountPlan, planEndedAt } from '../../billing/plans/account-plan.ts';
import { emptyQuota, reservedOf, type QuotaItem } from '../../billing/quota-item.ts';
import { accountErrors } from './account-errors.ts';
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import { shownNotices } from '../../config/settings/shown-notices.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { offeredModels } from '../catalog/model-list.ts';
import type {
  AccountBody,
  AccountBudget,
  AccountDays,
  AccountKey,
  AccountPriceChange,
  AccountPriceTier,
} from '../../wire/public/account.ts';
import type { HourOfRefusals } from '../ports/stores/refusal-counts.ts';

export interface AccountFacts {
  /** Undefined: the account has no valid row and therefore no plan. */
  account: AccountRow | undefined;
  quota: QuotaItem | undefined;
  key: KeyRow;
  snapshot: Pick<Snapshot, 'plans' | 'settings' | 'charges' | 'models'>;
  refusals: readonly HourOfRefusals[];
  days: AccountDays | undefined;
  nowMs: number;
}

export function accountBody(facts: AccountFacts): AccountBody {
  const { account, quota, key, snapshot, nowMs } = facts;
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
    plan_ended_at: snapshot.settings.subscriptionEnabled ? planEndedAt(account?.plan, nowMs) : null,
    key: accountKey(key, budget(key, snapshot.settings.timeZone, nowMs)),
    notices: shownNotices(snapshot.settings, nowMs),
    price_changes: announced(snapshot, nowMs),
    errors: accountErrors(facts.refusals),
    days: facts.days ?? null,
  };
}

/** Field by field: rows hold what is not public. */
const announced = (snapshot: AccountFacts['snapshot'], nowMs: number): AccountPriceChange[] =>
  priceChanges(snapshot.charges, offeredModels(snapshot, nowMs), nowMs).map(accountPriceChange);

const accountPriceChange = ({ fromMs, rule, models }: PriceChange): AccountPriceChange => ({
  from: seconds(fromMs),
  models,
  type: rule.type,
  ...ratesOf(rule),
  tiers: (rule.tiers ?? []).map(accountTier),
});

const accountTier = (tier: WrittenTier): AccountPriceTier => ({ above: tier.above, ...ratesOf(tier) });

const ratesOf = ({ input, output, cached_input, cache_write, cache_write_1h }: WrittenRates) => ({
  input,
  output,
  cached_input: cached_input ?? null,
  cache_write: cache_write ?? null,
  cache_write_1h: cache_write_1h ?? null,
});

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
