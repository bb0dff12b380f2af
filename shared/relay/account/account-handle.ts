/**
 * GET /v1/account, /v1/account/usage, /v1/account/statement and /api/oauth/usage, for every usable key, also while the relay is closed.
 * Every key of an account can read the whole account. Responses must never be cached.
 */
import { eitherHeader } from '../../endpoints/endpoint.ts';
import { renderBudgetUse } from '../../endpoints/messages/budget.ts';
import type { AdmittedKey } from '../call/access.ts';
import { admitKey, readKey } from '../call/call-refusals.ts';
import { type Handle, type RelayRequest, isAccountRoute, matchRoute } from '../http/http.ts';
import { createLoggedHandle } from '../http/logged-handle.ts';
import { refuseRoute } from '../http/refuse-route.ts';
import { respondJson } from '../http/refusal.ts';
import type { AccountReader, RefusalCounts, HourOfRefusals } from '../ports/money-stores.ts';
import { describeBudget, findKeyBudget, findTagBudget } from '../money/call-costs.ts';
import type { Budget } from '../money/open-reservation.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { KeyCounters } from '../ports/runtime-stores.ts';
import { refusalAgeMsMax } from '../ports/config-store.ts';
import { answerStatement } from './account-statement.ts';
import { listAccountPrices } from './account-prices.ts';
import { listDays, readDays, listUsage } from './account-usage.ts';
import { convertToYuanNumber } from '../../billing/money.ts';
import type { DailySum } from '../../billing/daily-figures.ts';
import { estimateDaysLeft, listPaceMonths, computeSpendingPace } from '../../billing/spending-pace.ts';
import { describePlan, findPlanEnd } from '../../billing/reservation.ts';
import { createQuotaItem, sumReserved, type QuotaItem } from '../../billing/quota-item.ts';
import { readAlertBelow } from '../../config/rows/alerted-account.ts';
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import { listCurrentNotices } from '../../config/settings.ts';
import { utcHour, utcMonth } from '../../wire/iso-time.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import { listOfferedModels } from '../catalog/catalog-lists.ts';
import type {
  AccountBody,
  AccountBudget,
  AccountDays,
  AccountKey,
  AccountTagBudget,
  AccountErrors,
} from '../../wire/public-api.ts';

/** How far back errors are shown. */
const errorsMs = 24 * 60 * 60_000;

interface AccountPorts extends Pick<ChatPorts, 'config' | 'keys' | 'clock' | 'log'> {
  accounts: AccountReader;
  refusals: Pick<RefusalCounts, 'since'>;
  budgets: Pick<KeyCounters, 'use'>;
}

export const createAccountHandle = (ports: AccountPorts): Handle =>
  createLoggedHandle(ports, { endpoint: 'account' }, async (request, found) => {
    const endpoint = accountRoute(request);
    found({ endpoint });
    const form = endpoint === 'oauth_usage' ? { keyHeader: eitherHeader } : {};
    const lookup = await ports.keys.find(readKey(request.headers, form));
    const admitted = admitKey(lookup, ports.clock.now());
    const { hint, account } = admitted.row;
    found({ endpoint, key_hint: hint, account });
    return respondJson(request.id, await bodies[endpoint](ports, admitted, request.query));
  });

function accountRoute(request: RelayRequest): keyof typeof bodies {
  const route = matchRoute(request);
  if (isAccountRoute(route)) return route;
  throw refuseRoute(request);
}

const bodies = {
  account: balance,
  usage: ({ accounts }: AccountPorts, { row }: AdmittedKey, query: URLSearchParams) =>
    listUsage(accounts, row.account, query),
  async statement(
    { accounts, config, clock }: AccountPorts,
    { row, account }: AdmittedKey,
    query: URLSearchParams,
  ) {
    const snapshot = await config.current();
    const nowMs = clock.now();
    const models = listOfferedModels(snapshot, nowMs);
    const { prices } = listAccountPrices({ snapshot, account, models, nowMs });
    const { seller } = snapshot.settings;
    const statement = await answerStatement(accounts, { account: row.account, query, seller, nowMs });
    // A statement of a month that is over must not change.
    return { ...statement, prices: statement.month === utcMonth(nowMs) ? prices : null };
  },
  async oauth_usage({ budgets, config, clock }: AccountPorts, { row }: AdmittedKey) {
    const budget = findKeyBudget(row, (await config.current()).settings.timeZone, clock.now());
    return renderBudgetUse(budget && describeBudget(budget, (await budgets.use(budget.counter)).used));
  },
};

async function balance(
  ports: AccountPorts,
  { row: key, account }: AdmittedKey,
  query: URLSearchParams,
): Promise<object> {
  const nowMs = ports.clock.now();
  const asked = readDays(query);
  const [quota, snapshot, months, refusals, days, budgets] = await Promise.all([
    ports.accounts.quota(key.account),
    ports.config.notOlderThan(refusalAgeMsMax),
    ports.accounts.months(key.account, listPaceMonths(nowMs)),
    ports.refusals.since(key.account, utcHour(nowMs - errorsMs)),
    asked === undefined ? undefined : listDays(ports.accounts, { account: key.account, days: asked, nowMs }),
    listBudgets(ports, account, nowMs),
  ]);
  const facts = { account, quota, key, snapshot, months, refusals, days, budgets };
  return accountBody({ ...facts, nowMs: ports.clock.now() });
}

/** The use of `*` is not known: each name has an amount of its own. */
const listBudgets = (
  ports: AccountPorts,
  row: AccountRow | undefined,
  nowMs: number,
): Promise<AccountTagBudget[]> =>
  Promise.all(
    (row?.budgets ?? []).map(async (written) => {
      const { timeZone } = (await ports.config.current()).settings;
      const { by, name } = written;
      const budget = findTagBudget(row?.account ?? '', written, timeZone, nowMs);
      const use = name === '*' ? undefined : await ports.budgets.use(budget.counter);
      const used = use ? convertToYuanNumber(use.used) : null;
      return Object.assign(describeAmount(budget), { by, name, used });
    }),
  );

interface AccountFacts {
  /** An account without a valid row has no plan. */
  account: AccountRow | undefined;
  quota: QuotaItem | undefined;
  key: KeyRow;
  snapshot: Pick<Snapshot, 'plans' | 'settings' | 'charges' | 'models'>;
  months: readonly DailySum[];
  refusals: readonly HourOfRefusals[];
  days: AccountDays | undefined;
  budgets: AccountTagBudget[];
  nowMs: number;
}

export function accountBody(facts: AccountFacts): AccountBody {
  const { account, quota, key, snapshot, nowMs } = facts;
  const item = quota ?? createQuotaItem(key.account);
  const alert = readAlertBelow(account);
  const priced = { snapshot, account, models: listOfferedModels(snapshot, nowMs), nowMs };
  const isMetered = account?.metered || item.metered !== undefined;
  const pace = computeSpendingPace(item, facts.months, nowMs);
  const left = isMetered || !pace.isSteady ? undefined : estimateDaysLeft(item, pace);
  return {
    object: 'account',
    account: key.account,
    currency: 'CNY',
    available: convertToYuanNumber(item.available),
    reserved: convertToYuanNumber(sumReserved(item)),
    spent: convertToYuanNumber(item.spent),
    granted: convertToYuanNumber(item.granted),
    days_left: left === undefined ? null : Math.round(left * 10) / 10,
    alert_below: alert === undefined ? null : convertToYuanNumber(alert),
    search_price: snapshot.settings.search?.price ?? null,
    ...(isMetered && { metered: convertToYuanNumber(item.metered ?? 0n) }),
    plan: snapshot.settings.subscriptionEnabled
      ? describePlan({ subscription: account?.plan, counts: item.plan, plans: snapshot.plans, nowMs })
      : null,
    plan_ended_at: snapshot.settings.subscriptionEnabled ? findPlanEnd(account?.plan, nowMs) : null,
    key: accountKey(key, findKeyBudget(key, snapshot.settings.timeZone, nowMs)),
    notices: listCurrentNotices(snapshot.settings, nowMs),
    ...listAccountPrices(priced),
    budgets: facts.budgets,
    errors: accountErrors(facts.refusals),
    days: facts.days ?? null,
  };
}

const accountKey = (key: KeyRow, budget: Budget | undefined): AccountKey => ({
  hint: key.hint,
  models: key.models ?? null,
  manage: key.manage ?? false,
  expires_at: key.expires_at === undefined ? null : seconds(key.expires_at),
  limits: {
    max_concurrency: key.max_concurrency ?? null,
    rpm: key.rpm ?? null,
    budget: budget ? describeAmount(budget) : null,
  },
});

const describeAmount = ({ most, period, resetsAtMs }: Budget): AccountBudget => ({
  amount: convertToYuanNumber(most),
  period,
  resets_at: seconds(resetsAtMs),
});

const seconds = (milliseconds: number): number => Math.floor(milliseconds / 1000);

/** Newest hour first. */
const accountErrors = (hours: readonly HourOfRefusals[]): AccountErrors[] =>
  hours.toReversed().flatMap(({ hour, counts }) =>
    Object.entries(counts)
      .toSorted(([a, first], [b, second]) => second - first || (a < b ? -1 : 1))
      .map(([code, count]) => ({ hour: Date.parse(`${hour}:00:00Z`) / 1000, code, count })),
  );
