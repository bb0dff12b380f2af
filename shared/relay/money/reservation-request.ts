/** Computes what a call reserves from the call, its price and the configuration. Must not read a store. */
import { outputTokensMin } from '../../upstreams/dialects/dialects.ts';
import { dialectOf } from '../../upstreams/types/channel-request.ts';
import { parseYuan } from '../../billing/amount.ts';
import { budgetPeriod } from '../../billing/budget-period.ts';
import { planSlots } from '../../billing/plans/plan-slots.ts';
import { formatPrice, inputCost, type Price } from '../../billing/price.ts';
import { priceOf } from '../../billing/price-rule.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { CallEstimate, ReserveNeed, ReserveRefusal } from '../../billing/reservation.ts';
import type { CallBudget } from './budget-hold.ts';
import type { ReservationRequest } from './reservation.ts';
import type { ChatCall } from '../call/chat-call.ts';
import { promptTokens } from '../../billing/estimators.ts';
import { searchTokensOf } from '../search/search-tokens.ts';
import type { Refusal } from '../http/refusal.ts';
import { reserveRefusal } from './reserve-refusals.ts';

/** The fields of a call that determine its cost and the payer. */
export type BillableCall = Pick<
  ChatCall,
  | 'identity'
  | 'request'
  | 'unknown'
  | 'model'
  | 'key'
  | 'account'
  | 'parts'
  | 'snapshot'
  | 'channels'
  | 'outputTokensAsked'
  | 'startedMs'
  | 'deadlineMs'
  | 'endpoint'
>;

/** The reserved input is the estimate times this margin, because estimates are up to 16 % off. */
const inputMargin = 1.2;
const inputMarginTokens = 16;
/** With fewer output tokens than this an answer is of little use; a call that reasons needs more. */
const outputTokensLeast = 1_024;
const outputTokensLeastReasoning = 4_096;
const keyLength = 12;

/** The price at the time when the call began, whatever comes into force while it runs. */
export const priceOfCall = ({ snapshot, model, startedMs }: BillableCall): Price =>
  priceOf(snapshot.charges, model.base, startedMs);

/** Undefined for a free call without limits of key or account, if free calls are not counted. */
export function reservationRequestOf(
  call: BillableCall,
  price: Price,
  nowMs: number,
): ReservationRequest | undefined {
  const { key, model, snapshot, account } = call;
  const limited = [key.max_concurrency, key.rpm, account?.concurrency, account?.rpm, account?.tpm].some(
    (limit) => limit !== undefined,
  );
  const free = price.type === 'non-billing';
  const countsFree = snapshot.settings.limits.countFree ?? true;
  if (free && !limited && !model.official && !countsFree) return undefined;

  const held = snapshot.settings.subscriptionEnabled ? account?.plan : undefined;
  const slots = planSlots({ plans: snapshot.plans, held, nowMs, model: model.base });
  const inputTokens = promptTokens(call);
  const searchTokens = model.web ? searchTokensOf(snapshot) : 0;
  const need: ReserveNeed = {
    id: call.identity.requestId,
    price,
    slots,
    estimate: {
      inputTokens,
      inputTokensMax: Math.ceil(inputTokens * inputMargin) + inputMarginTokens + searchTokens,
      n: call.request.n ?? 1,
      ...outputTokens(call),
    },
    key: key.hash.slice(0, keyLength),
    maxConcurrency: key.max_concurrency,
    accountConcurrency: account?.concurrency,
    accountRpm: account?.rpm,
    accountTpm: account?.tpm,
    minute: Math.floor(nowMs / 60_000),
    takesNothing: free || model.official,
  };
  const entry = {
    input: need.takesNothing ? 0n : inputCost(price, inputTokens),
    key: need.key,
    model: model.base,
    // Of the tier that `input` has: a row of an expired call has this text.
    price: formatPrice(price, { prompt_tokens: inputTokens }),
    official: model.official,
  };
  const budget = need.takesNothing ? undefined : callBudget(call, need.key, nowMs);
  const refused = (reason: ReserveRefusal, item: QuotaItem): Refusal =>
    reserveRefusal({ call, need, reason, item, nowMs, budget });
  return {
    account: key.account,
    parts: call.parts,
    deadlineMs: call.deadlineMs,
    need,
    rpm: key.rpm,
    budget,
    entry,
    refused,
  };
}

/** A counter outlives its period, so that calls that end later find it. */
const counterKeptMs = 48 * 60 * 60 * 1000;

function callBudget(
  { key, snapshot }: BillableCall,
  keyPrefix: string,
  nowMs: number,
): CallBudget | undefined {
  if (!key.budget) return undefined;
  const { period, amount } = key.budget;
  const { key: periodKey, resetsAtMs } = budgetPeriod(period, snapshot.settings.timeZone ?? 'UTC', nowMs);
  const expires = Math.ceil((resetsAtMs + counterKeptMs) / 1000);
  return {
    counter: { key: keyPrefix, period: periodKey, expires },
    most: parseYuan(amount) ?? 0n,
    resetsAtMs,
  };
}

/**
 * Maximum output tokens of one answer: the requested limit, otherwise the default; at most what the channels
 * support, and at least what their dialects accept as a limit.
 */
function outputTokens(
  call: BillableCall,
): Pick<CallEstimate, 'outputTokensMax' | 'outputTokensLeast' | 'heldWhole'> {
  const { request, outputTokensAsked, channels, snapshot, model } = call;
  // A client may send both fields, and an upstream may follow either one.
  const limits = [request.max_completion_tokens, request.max_tokens, outputTokensAsked];
  const sent = limits.filter((limit) => typeof limit === 'number');
  const asked = sent.length > 0 ? Math.max(...sent) : undefined;
  const usual = snapshot.settings.limits.defaultOutputTokens;
  const known = Math.max(...channels.map((channel) => channel.params.max_output_tokens ?? Infinity));
  const least = channels.map((channel) => outputTokensMin(dialectOf(channel, model.base)));
  return {
    outputTokensMax: Math.max(Math.min(asked ?? usual, known), ...least),
    outputTokensLeast: reasons(call) ? outputTokensLeastReasoning : outputTokensLeast,
    heldWhole: asked !== undefined && asked <= (Number.isFinite(known) ? known : usual),
  };
}

/** Efforts that spend few tokens before the answer. */
const lowEfforts: ReadonlySet<string> = new Set(['none', 'minimal', 'low']);

function reasons({ request }: BillableCall): boolean {
  const { reasoning_effort: effort } = request;
  return typeof effort === 'string' && !lowEfforts.has(effort);
}
