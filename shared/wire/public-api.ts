/**
 * Bodies of `GET /v1/account` and `GET /v1/account/usage`, which extend the relay's client contract. Amounts
 * are yuan as JSON numbers, times are Unix seconds. Every key is always present; a missing value is null.
 */
import type { PartPrice, PartCount } from './chat-response.ts';
import type { ServiceTiers } from './service-tier.ts';

export interface AccountBody {
  object: 'account';
  /** The account's name: whoever opens a link with a key sees whose it is before paying. */
  account: string;
  currency: 'CNY';
  /** The amount that new calls may spend. available + reserved + spent = granted, and what was metered. */
  available: number;
  reserved: number;
  spent: number;
  granted: number;
  /** How long `available` lasts at the pace of this month; null: it doesn't fall, or no balance pays. */
  days_left: number | null;
  /** Below it the operator's alerts tell of the balance; null: they do not. */
  alert_below: number | null;
  /** Yuan for each web search; null: searches have no price of their own. */
  search_price: number | null;
  /** Only for metered accounts: the part of `spent` that no balance paid. */
  metered?: number;
  plan: AccountPlan | null;
  /** When the plan that the account had ended; null: it holds one, or had none. */
  plan_ended_at: number | null;
  key: AccountKey;
  notices: AccountNotice[];
  /** The account's own prices, and those that depend on the hour. */
  prices: AccountPrice[];
  /** Prices that begin later, by time. */
  price_changes: AccountPriceChange[];
  /** Limits of calls of an end user or with a tag. */
  budgets: AccountTagBudget[];
  /** Calls of the last 24 hours that were refused or failed, newest hour first. Up to a minute late; some may be missing. */
  errors: AccountErrors[];
  /** The usage by day and model; null unless the query asks for `days`. */
  days: AccountDays | null;
}

/** Plain text, to be shown as it is. */
export interface AccountNotice {
  text: string;
  from: number | null;
  until: number | null;
  /** null: it is about all models. */
  models: string[] | null;
}

/** A price of a part of the input that is null is that of `input`. */
type PartPrices = Record<PartPrice, number | null>;

export interface AccountPriceChange extends AccountRates {
  from: number;
}

export interface AccountPrice extends AccountRates {
  /** The open price window; null if none is open. */
  window: string | null;
  /** When the next window opens or this one ends; null if the price has no windows. */
  until: number | null;
}

/** Prices as `GET /v1/charge` has them. */
export interface AccountRates extends PartPrices {
  models: string[];
  type: ChargeEntry['type'];
  input: number;
  output: number;
  tiers: AccountPriceTier[];
  service_tiers: ServiceTiers | null;
}

export interface AccountPriceTier extends PartPrices {
  above: number;
  input: number;
  output: number;
}

/** `GET /v1/account/keys`: the key that asks, then those that customers made, newest first. */
export interface ManagedKeyList {
  object: 'list';
  can_manage: true;
  /** The most that customers make of an account. */
  limit: number;
  data: ManagedKey[];
  /** The answer of `POST /v1/account/top-ups`. */
  top_up: 'checkout' | 'link' | null;
  /** In yuan, lowest first: a payment of at least `pay` gets `get - pay` on top. */
  top_up_bonus: { pay: number; get: number }[];
}

/** The answer of `POST /v1/account/codes`, also to a repeat by the same account. */
export interface RedeemedCode {
  object: 'account.code';
  /** The id of its grant. */
  id: string;
  /** In yuan. */
  amount: number;
  redeemed_at: number;
}

/** A key as `/v1/account/keys` has it. */
export interface ManagedKey {
  id: string;
  hint: string;
  name: string | null;
  models: string[] | null;
  budget: { amount: number; period: 'day' | 'month' } | null;
  rpm: number | null;
  max_concurrency: number | null;
  expires_at: number | null;
  /** null: as the setting `store` says. */
  store: boolean | null;
  state: 'usable' | 'disabled' | 'expired';
  /** `operator`: nobody changes it here. */
  made_by: 'customer' | 'operator';
  created_at: number | null;
  /** The key that asks. */
  self: boolean;
}

export interface AccountErrors {
  hour: number;
  code: string;
  count: number;
}

export interface AccountDays {
  /** When the first day began that is whole; later than was asked for where there are too many models. */
  from: number;
  /** Newest day first. Days without calls are left out. */
  data: AccountDay[];
}

/** The calls of a UTC day that a model answered. They follow the ledger at once. */
export interface AccountDay {
  day: number;
  model: string;
  calls: number;
  /** Those of `calls` that had no complete answer. */
  failed_calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_tokens: number;
  charge: number;
  searches: number;
}

/** A month of UTC: closing = opening + granted - charged + metered. */
export interface AccountStatement {
  object: 'account.statement';
  currency: 'CNY';
  account: string;
  /** `2026-10` */
  month: string;
  /** As the operator's setting has it. */
  seller: { name: string; address: string } | null;
  opening: number;
  granted: number;
  charged: number;
  /** The part of `charged` that no balance paid. */
  metered: number;
  closing: number;
  /** false: the month or calls of it still run, or sums follow within seconds. Such a statement may change. */
  final: boolean;
  grants: { id: string; created: number; amount: number; reason: string }[];
  /** The account's own current prices; null once the month is over. */
  prices: AccountPrice[] | null;
  /** The largest charge first. null: more days and models than one answer has. */
  models: Omit<AccountDay, 'day'>[] | null;
}

export interface AccountPlan {
  level: number;
  until: number | null;
  items: AccountPlanItem[];
}

interface AccountPlanItem {
  id: string;
  name: string;
  used: number;
  /** Calls a month; -1 is unlimited. */
  value: number;
  resets_at: number;
}

export interface AccountKey {
  hint: string;
  /** null: the key may call every model. */
  models: string[] | null;
  /** True if it creates and revokes other keys of the account, by `/v1/account/keys`. */
  manage: boolean;
  expires_at: number | null;
  limits: { max_concurrency: number | null; rpm: number | null; budget: AccountBudget | null };
}

export interface AccountBudget {
  amount: number;
  period: 'day' | 'month';
  resets_at: number;
}

export interface AccountTagBudget extends AccountBudget {
  /** `end_user` or `tag:<name>`. */
  by: string;
  /** Empty for calls without a name; `*` for all other names. */
  name: string;
  /** Spent or reserved in this period. Null for `*`. */
  used: number | null;
}

export interface UsageList {
  object: 'list';
  data: UsageEntry[];
  has_more: boolean;
  next_cursor: string | null;
}

/** With `by`: sums of the rows that were read. The sums of the next pages add to them. */
export interface UsageSums extends Omit<UsageList, 'data'> {
  data: UsageSum[];
}

export interface UsageSum {
  object: 'usage.sum';
  /** The end user, or the value of the tag. Null: of the calls that name none. */
  name: string | null;
  requests: number;
  prompt_tokens: number;
  completion_tokens: number;
  charge: number;
}

/** One row of the ledger: a call that ended, or a top-up. */
export interface UsageEntry extends Record<PartCount, number | null> {
  /** The request id; `grant#...` for a top-up. */
  id: string;
  object: 'usage';
  /** When the call began, or when the top-up was applied. */
  created: number;
  kind: 'settled' | 'released' | 'expired' | 'cancelled' | 'grant';
  endpoint: string | null;
  model: string | null;
  alias: string | null;
  /** First 12 hex digits of the SHA-256 of the key. */
  key: string | null;
  charge: number;
  prompt_tokens: number | null;
  completion_tokens: number | null;
  /** true: the token counts are the relay's estimate, for input, output or both. */
  estimated: boolean;
  flag: string | null;
  /** By which the call was charged. Null: the standard one. */
  service_tier: string | null;
  first_content_ms: number | null;
  /** `completed`, `failed` or `client_gone`. */
  end: string | null;
  /** The end user, in at most 64 characters, and the tags that the client named. */
  end_user: string | null;
  tags: Readonly<Record<string, string>> | null;
  /** The id and the prices of the billing rule at the time of the call. */
  price: string | null;
  /** The plan entry and the month on which the call was counted. */
  plan_slot: string | null;
  official: boolean;
  /** Official calls: what the call would have cost. */
  cost: number | null;
  /** The cost of the web search: a part of `charge`, or of `cost`. */
  search_price: number | null;
  amount: number | null;
  reason: string | null;
}

/** Bodies of the public read endpoints. Source: the relay's client contract, "Model list", "Billing rule", "Plan". */

export interface ModelEntry {
  id: string;
  object: 'model';
  /** Unix seconds: when the configuration that lists the model was loaded. */
  created: number;
  owned_by: 'system';
}

export interface ModelList {
  object: 'list';
  data: ModelEntry[];
  /** Sent, empty, to coding agents that name their version: they require it, with models in their form. */
  models?: [];
}

/** The list as Anthropic's clients read it, by pages. */
export interface MessagesModelList {
  data: MessagesModel[];
  has_more: boolean;
  first_id: string | null;
  last_id: string | null;
}

export interface MessagesModel {
  type: 'model';
  id: string;
  display_name: string;
  /** RFC 3339. */
  created_at: string;
}

/** Prices are in yuan: per 1,000 tokens for token-billing, per call (`output`) for times-billing. */
export interface ChargeEntry {
  id: number;
  type: 'non-billing' | 'times-billing' | 'token-billing';
  models: string[];
  input: number;
  output: number;
  anonymous: boolean;
  /** Only for rules with windows: the open window, whose prices these are; null if none is open. */
  window?: string | null;
  /** When these prices change, in Unix seconds. */
  until?: number | null;
}

export interface PlanEntry {
  level: number;
  price: number;
  items: PlanEntryItem[];
}

/** `value` is a number of calls a month; -1 is unlimited. */
export interface PlanEntryItem {
  id: string;
  name: string;
  icon: string;
  value: number;
  models: string[];
}

/** The body of notices to operators' and customers' receivers. */

/** The answer of `GET /v1/account/top-ups`. Amounts are yuan. */
export interface TopUpsBody {
  object: 'top_ups';
  top_up: 'checkout' | 'link' | null;
  auto_offered: boolean;
  auto: AutoTopUpBody | null;
  /** Levels that the account may buy now, with the price of a month. */
  plans: { level: number; price: number }[];
}

export interface AutoTopUpBody {
  on: boolean;
  /** Why it was turned off; null if the customer turned it off. */
  off_reason: string | null;
  below: number | null;
  amount: number | null;
  monthly_limit: number | null;
  /** `month`: the last UTC month with a charge. */
  charged: { month: string; amount: number };
  pending: boolean;
}

type NoticeType =
  | 'balance.low'
  | 'plan.ending'
  | 'plan.ended'
  | 'key.expiring'
  | 'upstream.balance_low'
  | 'auto_top_up.off'
  | 'auto_top_up.limit'
  | 'channel.failing'
  | 'channel.slower'
  | 'channel.costlier';

/** One event. Its id stays the same however often it is sent. */
export interface Notice {
  id: string;
  type: NoticeType;
  /** Unix seconds. */
  created: number;
  /** Absent if the notice is about a channel. */
  account?: string;
  data: Record<string, string | number>;
}
