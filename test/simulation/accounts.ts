import { AccountRow } from '../../shared/config/rows/account-row.ts';
import { ChannelRow } from '../../shared/config/rows/channel-row.ts';
import { ChargeRow } from '../../shared/config/rows/charge-row.ts';
import { KeyRow } from '../../shared/config/rows/key-row.ts';
import { PlanRow } from '../../shared/config/rows/plan-row.ts';
import { createEmptySnapshot, type Snapshot } from '../../shared/config/snapshot.ts';
import { defaultSettings } from '../../shared/config/settings.ts';
import { customerPrices } from '../../shared/config/rows/price-terms.ts';
import type { ChargeText, CustomerPriceText } from '../oracle/price-list.ts';
import type { BudgetText, Named } from '../oracle/budgets.ts';
import type { SeededRandom } from './seeded-random.ts';

/** The months of plans and the days of budgets turn some minutes after the world began. */
export const startMs = Date.UTC(2026, 10, 20, 23, 54);

/** The dialects of the upstreams that serve the models. */
export const dialects = {
  'by-token': 'chat',
  'by-cache': 'messages',
  'by-tier': 'responses',
  'by-call': 'chat',
  free: 'chat',
} as const;
export type Model = keyof typeof dialects;
export const models: readonly [Model, ...Model[]] = ['by-token', 'by-cache', 'by-tier', 'by-call', 'free'];

const channel = ChannelRow.parse({
  id: 'main',
  endpoint: 'https://upstream.test/v1',
  models: [...models],
  dialect: dialects,
  state: true,
});
export const channels: [ChannelRow] = [channel];

/** Above the 1,024 tokens below which no limit is lowered. */
const usual = { default_output_tokens: 2_500 };

/** Yuan per web search. */
export const searchPrice = 0.013_000_007;

/** Rules as an operator writes them; the product and the oracle read them separately. */
export const priceList: readonly (ChargeText & Record<string, unknown>)[] = [
  {
    id: 1,
    type: 'token-billing',
    models: ['by-token'],
    input: 0.1,
    output: 0.2,
    service_tiers: { flex: 0.5, priority: 2 },
    ...usual,
  },
  {
    id: 2,
    type: 'times-billing',
    models: ['by-call'],
    output: 0.05,
    windows: [{ name: 'night', from: '23:56', to: '00:01', zone: 'UTC', factor: 1.500_001 }],
  },
  {
    id: 3,
    type: 'token-billing',
    models: ['by-cache'],
    input: 0.060000301,
    output: 0.2400007,
    cached_input: 0.006000003,
    cache_write: 0.075,
    cache_write_1h: 0.12,
    service_tiers: { fast: 5.999_999 },
    max_output_tokens: 3_000,
    ...usual,
  },
  {
    id: 4,
    type: 'token-billing',
    models: ['by-tier'],
    input: 0.05,
    output: 0.15,
    cached_input: 0.005,
    tiers: [{ above: 150, input: 0.1, output: 0.3, cached_input: 0.01 }],
    service_tiers: { flex: 0.333_333, batch: 0.5 },
    // Saturday begins in Shanghai at 16:00 UTC.
    windows: [
      { name: 'early', days: ['sat'], from: '07:55', to: '07:58', zone: 'Asia/Shanghai', factor: 2 },
      {
        name: 'late',
        days: ['fri', 'sat'],
        from: '07:59',
        to: '08:03',
        zone: 'Asia/Shanghai',
        input: 0.07,
        output: 0.2,
        service_tiers: { priority: 1.25 },
      },
    ],
    ...usual,
  },
  // A new price, starting in the middle of the world.
  {
    id: 5,
    from: new Date(startMs + 240_000).toISOString(),
    type: 'token-billing',
    models: ['by-token'],
    input: 0.15,
    output: 0.125,
    service_tiers: { fast: 1.5 },
    ...usual,
  },
];

/** Prices of customers as rows have them: of some accounts, and of the group of others. */
const ownPrices: CustomerPriceText[] = [
  { models: ['by-c*'], factor: 0.833_333 },
  { models: ['by-token'], input: 0.07, output: 0.19, service_tiers: { flex: 0.7 } },
];
const groupPrices: CustomerPriceText[] = [
  // Prices that apply for one minute, in the middle of the world.
  {
    models: ['by-*'],
    factor: 1.5,
    from: new Date(startMs + 180_000).toISOString(),
    until: new Date(startMs + 240_000).toISOString(),
  },
  { models: ['*'], factor: 1.250_001 },
];

/** Every third account has the first prices, every third the second. */
export const pricesOf = (account: string): readonly CustomerPriceText[] =>
  [[], ownPrices, groupPrices][Number(account.slice(-1)) % 3] ?? [];

/** Budgets by tag as rows have them, for every second account. */
const budgetTexts: BudgetText[] = [
  { by: 'tag:team', name: 'search', amount: 0.9, period: 'day' },
  { by: 'tag:team', amount: '0.400000001', period: 'day' },
  { by: 'end_user', name: '', amount: 2, period: 'month' },
  { by: 'tag:team', name: 'ads', amount: 1.5, period: 'month' },
];
export const budgetsOf = (account: string): readonly BudgetText[] =>
  Number(account.slice(-1)) % 2 === 0 ? budgetTexts : [];

/** The end users and tags of calls. */
export const callers: readonly [Named, ...Named[]] = [
  { endUser: 'a user', tags: { team: 'search', env: 'prod' } },
  { tags: { team: 'ads' } },
  { endUser: 'a user', tags: { env: 'prod' } },
  {},
];

/** The service tiers that clients request and upstreams report. */
export const tierNames: readonly [string, ...string[]] = [
  'flex',
  'priority',
  'fast',
  'batch',
  'ultrafast',
  'default',
  'auto',
];

/** The alias of all alias calls, whatever its models; plans may name it. */
export const aliasName = 'any';

const planList = [
  {
    level: 1,
    items: [
      { id: 'a', value: 2, models: ['by-token'] },
      { id: 'b', value: 3, models: ['by-token', 'by-call', 'by-cache'] },
    ],
  },
  {
    level: 2,
    items: [
      { id: 'a', value: 4, models: ['by-token'] },
      { id: 'c', value: -1, models: ['by-call'] },
      { id: 'd', value: 3, models: [aliasName] },
    ],
  },
];

/** The entries of the plans, by level. */
export const planEntries = new Map(planList.map(({ level, items }) => [level, items]));

export const snapshot: Snapshot = {
  ...createEmptySnapshot(startMs / 1000),
  channels,
  charges: priceList.map((row) => ChargeRow.parse(row)),
  plans: planList.map((row) => PlanRow.parse(row)),
  settings: {
    ...defaultSettings,
    subscriptionEnabled: true,
    priceGroups: { some: customerPrices.parse(groupPrices) },
    search: { type: 'searxng', endpoint: 'https://search.test', results: 5, price: searchPrice, cost: 0.004 },
  },
};

export interface Customer {
  account: AccountRow;
  keys: [KeyRow, ...KeyRow[]];
  /** The start of the plan. */
  since: string;
}

const sinces = ['2026-09-21T00:00:00Z', '2026-11-01T00:00:00Z'] as const;

export function makeCustomers(random: SeededRandom): [Customer, ...Customer[]] {
  const make = (number: number): Customer => {
    const account = `account${number}`;
    const since = random.pick(sinces);
    const plan = random.chance(0.5) ? { level: random.integer(1, 2), since } : undefined;
    const key = (position: number): KeyRow =>
      KeyRow.parse({
        hash: `${number}${position}`.padEnd(64, 'a'),
        account,
        official: random.chance(0.2),
        ...(random.chance(0.4) && { max_concurrency: random.integer(1, 3) }),
        ...(random.chance(0.3) && { rpm: random.integer(1, 5) }),
        ...(random.chance(0.4) && { budget: { amount: random.integer(1, 15) / 10, period: 'day' } }),
      });
    const limits = {
      ...(random.chance(0.2) && { concurrency: random.integer(2, 8) }),
      ...(random.chance(0.2) && { rpm: random.integer(2, 10) }),
      ...(random.chance(0.2) && { tpm: random.integer(100, 5_000) }),
    };
    const prices = pricesOf(account);
    const budgets = budgetsOf(account);
    const budgeted = budgets.length > 0 && { budgets };
    const priced =
      prices === ownPrices ? { prices } : { price_group: prices === groupPrices ? 'some' : undefined };
    return {
      account: AccountRow.parse({ account, plan, ...priced, ...limits, ...budgeted }),
      keys: [key(0), key(1)],
      since,
    };
  };
  const more = Array.from({ length: random.integer(0, 4) }, (_, index) => make(index + 1));
  return [make(0), ...more];
}
