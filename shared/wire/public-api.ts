/**
 * Bodies of the public lists and of all account routes. Each schema is also the type of its answer, and docs/openapi.json includes it.
 * Amounts are yuan as JSON numbers, times are Unix seconds. Every key is always present; a missing value is null. Functions must import
 * only types from here, because they never parse their own answers.
 */
import * as z from 'zod/mini';
import { mapInputParts } from './chat-response.ts';

const explain = <Schema extends z.ZodMiniType>(schema: Schema, words: string): Schema =>
  schema.check(z.describe(words));

const text = z.string();
const number = z.number();
const flag = z.boolean();
const count = z.int().check(z.gte(0));
const seconds = z.int();
const maybeText = z.nullable(text);
const maybeNumber = z.nullable(number);
const maybeSeconds = z.nullable(seconds);
const texts = z.array(text);
const budgetPeriod = z.enum(['day', 'month']);

export type AccountNotice = z.infer<typeof AccountNotice>;
const AccountNotice = z.strictObject({
  text: explain(text, 'Plain text, to be shown unchanged'),
  from: maybeSeconds,
  until: maybeSeconds,
  models: explain(z.nullable(texts), 'null: about all models'),
});

const chargeType = z.enum(['non-billing', 'times-billing', 'token-billing']);
const inputPrices = mapInputParts('price', () => explain(maybeNumber, 'null: the price of input'));

export type AccountPriceTier = z.infer<typeof AccountPriceTier>;
const AccountPriceTier = z.strictObject({ above: number, input: number, output: number, ...inputPrices });

/** Prices as `GET /v1/charge` has them. */
const rates = {
  models: texts,
  type: chargeType,
  input: number,
  output: number,
  ...inputPrices,
  tiers: z.array(AccountPriceTier),
  service_tiers: explain(
    z.nullable(z.record(text, number)),
    'Factors of the price by the name of a service tier',
  ),
};
export type AccountRates = z.infer<typeof AccountRates>;
const AccountRates = z.strictObject(rates);

export type AccountPriceChange = z.infer<typeof AccountPriceChange>;
const AccountPriceChange = z.strictObject({ ...rates, from: seconds });

export type AccountPrice = z.infer<typeof AccountPrice>;
const AccountPrice = z.strictObject({
  ...rates,
  window: explain(maybeText, 'The open price window; null: none is open'),
  until: explain(maybeSeconds, 'When the next window opens or this one ends; null: the price has no windows'),
});

export type AccountBudget = z.infer<typeof AccountBudget>;
const AccountBudget = z.strictObject({ amount: number, period: budgetPeriod, resets_at: seconds });

export type AccountTagBudget = z.infer<typeof AccountTagBudget>;
const AccountTagBudget = z.strictObject({
  ...AccountBudget.shape,
  by: explain(text, '`end_user` or `tag:<name>`'),
  name: explain(text, 'Empty for calls without a name; `*` for all other names'),
  used: explain(maybeNumber, 'Spent or reserved in this period; null for `*`'),
});

export type AccountKey = z.infer<typeof AccountKey>;
const AccountKey = z.strictObject({
  hint: text,
  models: explain(z.nullable(texts), 'null: the key may call every model'),
  manage: explain(flag, 'True if the key creates and revokes other keys of the account'),
  expires_at: maybeSeconds,
  limits: z.strictObject({
    max_concurrency: maybeNumber,
    rpm: maybeNumber,
    budget: z.nullable(AccountBudget),
  }),
});

export type AccountPlan = z.infer<typeof AccountPlan>;
const AccountPlan = z.strictObject({
  level: number,
  until: maybeSeconds,
  items: z.array(
    z.strictObject({
      id: text,
      name: text,
      used: number,
      value: explain(number, 'Calls a month; -1 is unlimited'),
      resets_at: seconds,
    }),
  ),
});

export type AccountErrors = z.infer<typeof AccountErrors>;
const AccountErrors = z.strictObject({ hour: seconds, code: text, count });

export type AccountDay = z.infer<typeof AccountDay>;
const AccountDay = z.strictObject({
  day: explain(seconds, 'The start of a UTC day'),
  model: text,
  calls: explain(count, 'Calls that the model answered'),
  failed_calls: explain(count, 'The part of `calls` without a complete answer'),
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  charge: number,
  searches: count,
});

export type AccountDays = z.infer<typeof AccountDays>;
const AccountDays = z.strictObject({
  from: explain(
    seconds,
    'Start of the first complete day; later than requested if there are too many models',
  ),
  data: explain(z.array(AccountDay), 'Newest day first. Days without calls are left out'),
});

export type AccountBody = z.infer<typeof AccountBody>;
export const AccountBody = z.strictObject({
  object: z.literal('account'),
  account: explain(text, "The account's name"),
  currency: z.literal('CNY'),
  available: explain(number, 'What new calls may spend: granted + metered - reserved - spent'),
  reserved: number,
  spent: number,
  granted: number,
  days_left: explain(maybeNumber, "Days that `available` lasts at this month's pace; null: it does not fall"),
  alert_below: explain(maybeNumber, 'The operator is alerted below this balance; null: never'),
  search_price: explain(maybeNumber, 'Yuan for each web search; null: searches have no price of their own'),
  metered: z.optional(explain(number, 'Only for metered accounts: the part of `spent` that no balance paid')),
  plan: z.nullable(AccountPlan),
  plan_ended_at: explain(maybeSeconds, 'When the last plan ended; null: a plan is active, or there was none'),
  key: AccountKey,
  notices: z.array(AccountNotice),
  prices: explain(z.array(AccountPrice), "The account's own prices, and those that depend on the hour"),
  price_changes: explain(z.array(AccountPriceChange), 'Future prices, by start'),
  budgets: explain(z.array(AccountTagBudget), 'Budgets for calls of an end user or with a tag'),
  errors: explain(
    z.array(AccountErrors),
    'Refused and failed calls of the last 24 hours, newest hour first. Up to a minute late; some may be missing',
  ),
  days: explain(z.nullable(AccountDays), 'Usage by day and model; null unless the query asks for `days`'),
});

export type AccountStatement = z.infer<typeof AccountStatement>;
/** A month of UTC: closing = opening + granted - charged + metered. */
export const AccountStatement = z.strictObject({
  object: z.literal('account.statement'),
  currency: z.literal('CNY'),
  account: text,
  month: explain(text, 'Such as 2026-10'),
  seller: z.nullable(z.strictObject({ name: text, address: text })),
  opening: number,
  granted: number,
  charged: number,
  metered: explain(number, 'The part of `charged` that no balance paid'),
  closing: explain(number, 'opening + granted - charged + metered'),
  final: explain(
    flag,
    'False while the month or one of its calls is still running: the statement may change',
  ),
  grants: z.array(z.strictObject({ id: text, created: seconds, amount: number, reason: text })),
  prices: explain(z.nullable(z.array(AccountPrice)), 'Current prices; null once the month is over'),
  models: explain(
    z.nullable(z.array(z.omit(AccountDay, { day: true }))),
    'The largest charge first. null: more days and models than one answer has',
  ),
});

export type ManagedKey = z.infer<typeof ManagedKey>;
/** A key as `/v1/account/keys` has it. */
export const ManagedKey = z.strictObject({
  id: text,
  hint: text,
  name: maybeText,
  models: z.nullable(texts),
  budget: z.nullable(z.strictObject({ amount: number, period: budgetPeriod })),
  rpm: maybeNumber,
  max_concurrency: maybeNumber,
  expires_at: maybeSeconds,
  store: explain(z.nullable(flag), "Whether calls may store responses; null: the relay's setting decides"),
  state: z.enum(['usable', 'disabled', 'expired']),
  made_by: explain(z.enum(['customer', 'operator']), '`operator`: only the operator can change it'),
  created_at: maybeSeconds,
  self: explain(flag, 'The key of this request'),
});

const topUpKind = z.nullable(z.enum(['checkout', 'link']));

export type ManagedKeyList = z.infer<typeof ManagedKeyList>;
/** The key that asks, then those that customers created, newest first. */
export const ManagedKeyList = z.strictObject({
  object: z.literal('list'),
  can_manage: z.literal(true),
  limit: explain(count, 'The most keys that customers can have in an account'),
  data: z.array(ManagedKey),
  top_up: topUpKind,
  top_up_bonus: explain(
    z.array(z.strictObject({ pay: number, get: number })),
    'Lowest first: a payment of at least `pay` gets `get - pay` on top',
  ),
});

export type RedeemedCode = z.infer<typeof RedeemedCode>;
/** Also the answer to a repeat by the same account. */
export const RedeemedCode = z.strictObject({
  object: z.literal('account.code'),
  id: explain(text, 'The id of its grant'),
  amount: number,
  redeemed_at: seconds,
});

export type AutoTopUpBody = z.infer<typeof AutoTopUpBody>;
export const AutoTopUpBody = z.strictObject({
  on: flag,
  off_reason: explain(maybeText, 'Why it was turned off; null: the customer turned it off'),
  below: maybeNumber,
  amount: maybeNumber,
  monthly_limit: maybeNumber,
  charged: explain(z.strictObject({ month: text, amount: number }), 'The last UTC month with a charge'),
  pending: flag,
});

export type TopUpsBody = z.infer<typeof TopUpsBody>;
export const TopUpsBody = z.strictObject({
  object: z.literal('top_ups'),
  top_up: topUpKind,
  auto_offered: flag,
  auto: z.nullable(AutoTopUpBody),
  plans: explain(
    z.array(z.strictObject({ level: number, price: number })),
    'Levels that the account may buy now, with the price of a month',
  ),
});

const page = { object: z.literal('list'), has_more: flag, next_cursor: maybeText };

export type UsageEntry = z.infer<typeof UsageEntry>;
/** One row of the ledger: a call that ended, or a top-up. */
const UsageEntry = z.strictObject({
  id: explain(text, 'The request id; `grant#...` for a top-up'),
  object: z.literal('usage'),
  created: explain(seconds, 'When the call began, or when the top-up was applied'),
  kind: z.enum(['settled', 'released', 'expired', 'cancelled', 'grant']),
  endpoint: maybeText,
  model: maybeText,
  alias: maybeText,
  key: explain(maybeText, 'First 12 hex digits of the SHA-256 of the key'),
  charge: number,
  prompt_tokens: maybeNumber,
  completion_tokens: maybeNumber,
  ...mapInputParts('count', () => maybeNumber),
  estimated: explain(flag, 'Token counts are an estimate, for input, output or both'),
  flag: maybeText,
  service_tier: explain(maybeText, 'The tier that was charged; null: the standard one'),
  first_content_ms: maybeNumber,
  end: explain(maybeText, '`completed`, `failed` or `client_gone`'),
  end_user: explain(maybeText, 'As the client named it, in at most 64 characters'),
  tags: z.nullable(z.record(text, text)),
  price: explain(maybeText, 'Id and prices of the billing rule at the time of the call'),
  plan_slot: explain(maybeText, 'The plan entry and the month on which the call was counted'),
  official: flag,
  cost: explain(maybeNumber, 'Official calls: what the call would have cost'),
  search_price: explain(maybeNumber, 'The cost of the web search: a part of `charge`, or of `cost`'),
  amount: maybeNumber,
  reason: maybeText,
});

export type UsageSum = z.infer<typeof UsageSum>;
const UsageSum = z.strictObject({
  object: z.literal('usage.sum'),
  name: explain(maybeText, 'The end user, or the value of the tag; null: calls that name none'),
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  charge: number,
});

export type UsageList = z.infer<typeof UsageList>;
export const UsageList = z.strictObject({ ...page, data: z.array(UsageEntry) });
export type UsageSums = z.infer<typeof UsageSums>;
/** With `by`: sums of the rows that were read. The sums of the next pages add to them. */
export const UsageSums = z.strictObject({ ...page, data: z.array(UsageSum) });

// Bodies of the public read endpoints. Source: the relay's client contract, "Model list", "Billing rule", "Plan".

export type ModelEntry = z.infer<typeof ModelEntry>;
export const ModelEntry = z.strictObject({
  id: text,
  object: z.literal('model'),
  created: explain(seconds, 'When the configuration that lists the model was loaded'),
  owned_by: z.literal('system'),
});

export type ModelList = z.infer<typeof ModelList>;
export const ModelList = z.strictObject({
  object: z.literal('list'),
  data: z.array(ModelEntry),
  models: z.optional(
    explain(z.array(z.never()), 'Only for coding agents that send `client_version`: they require this field'),
  ),
});

export type MessagesModel = z.infer<typeof MessagesModel>;
export const MessagesModel = z.strictObject({
  type: z.literal('model'),
  id: text,
  display_name: text,
  created_at: explain(text, 'RFC 3339'),
});

export type MessagesModelList = z.infer<typeof MessagesModelList>;
/** The list as Anthropic's clients read it, by pages. */
export const MessagesModelList = z.strictObject({
  data: z.array(MessagesModel),
  has_more: flag,
  first_id: maybeText,
  last_id: maybeText,
});

export type ChargeEntry = z.infer<typeof ChargeEntry>;
export const ChargeEntry = z.strictObject({
  id: number,
  type: chargeType,
  models: texts,
  input: explain(number, 'Yuan for 1,000 tokens, for token-billing'),
  output: explain(number, 'Yuan for 1,000 tokens; for times-billing yuan for a call'),
  anonymous: flag,
  window: z.optional(
    explain(maybeText, 'Only for rules with windows: the open window, whose prices these are; null: none'),
  ),
  until: z.optional(explain(maybeSeconds, 'Only for rules with windows: when these prices change')),
});

export type PlanEntryItem = z.infer<typeof PlanEntryItem>;
const PlanEntryItem = z.strictObject({
  id: text,
  name: text,
  icon: text,
  value: explain(number, 'Calls a month; -1 is unlimited'),
  models: texts,
});

export type PlanEntry = z.infer<typeof PlanEntry>;
export const PlanEntry = z.strictObject({ level: number, price: number, items: z.array(PlanEntryItem) });

export type Notice = z.infer<typeof Notice>;
/** One event, for receivers of operators and customers. */
export const Notice = z.strictObject({
  id: explain(text, 'The same in every retry'),
  type: z.enum([
    'balance.low',
    'plan.ending',
    'plan.ended',
    'key.expiring',
    'upstream.balance_low',
    'auto_top_up.off',
    'auto_top_up.limit',
    'channel.failing',
    'channel.slower',
    'channel.costlier',
  ]),
  created: seconds,
  account: z.optional(explain(text, 'Absent if the notice is about a channel')),
  data: z.record(text, z.union([text, number])),
});
