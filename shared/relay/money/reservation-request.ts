/** Computes what a call reserves from the call, its price and the configuration. Must not read a store. */
import { estimateInput, type MediaReader } from '../../billing/estimate/input-tokens.ts';
import type { MediaEstimator } from '../../billing/estimate/media-tokens.ts';
import { parseYuan } from '../../billing/amount.ts';
import { budgetPeriod } from '../../billing/budget-period.ts';
import { planSlots, type PlanSlot, type SlotQuery } from '../../billing/plans.ts';
import { formatPrice, inputCost, type Price, priceOf } from '../../billing/price.ts';
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { ModelCost, ReserveNeed, ReserveRefusal } from '../../billing/reservation.ts';
import type { CallBudget, ReservationRequest } from './open-reservation.ts';
import type { ChatCall } from '../call/call.ts';
import { outputLimit, ruleLimitsOf } from '../call/serving-channels.ts';
import type { Refusal } from '../http/refusal.ts';
import type { Snapshot } from '../../config/snapshot.ts';

/** The fields of a call that determine its cost and the payer. */
export type BillableCall = Pick<
  ChatCall,
  | 'identity'
  | 'request'
  | 'unknown'
  | 'items'
  | 'model'
  | 'alias'
  | 'key'
  | 'account'
  | 'parts'
  | 'snapshot'
  | 'charges'
  | 'limits'
  | 'outputTokensAsked'
  | 'startedMs'
  | 'deadlineMs'
  | 'endpoint'
  | 'concurrencyGiven'
  | 'queued'
>;

const keyLength = 12;
/** By which counters and open entries name a key. */
export const counterKey = ({ hash }: { hash: string }): string => hash.slice(0, keyLength);
/** No balance covers as many, so content of unknown size is only for calls that the balance does not pay. */
const unboundedTokens = Number.MAX_SAFE_INTEGER;

/** The price at the time when the call began, whatever comes into force while it runs. */
export const priceOfCall = ({ charges, model, startedMs }: BillableCall): Price =>
  priceOf(charges, model.base, startedMs);

/** What a call costs if one model answers it. */
export interface CallCost extends ModelCost {
  /** The public base name. */
  model: string;
  /** Undefined: the request has text alone. */
  media: MediaEstimator | undefined;
  /** The path of content whose size nobody knows. */
  unknownPart: string | undefined;
}

/**
 * The limits of the account that pays: those of its row, else of the setting `limits`. One account gets half of the
 * calls at once that the deployment has, so that it never takes all of them from the others.
 */
function accountLimitsOf({
  account,
  snapshot,
  concurrencyGiven,
}: Pick<BillableCall, 'account' | 'snapshot' | 'concurrencyGiven'>): AccountLimits {
  const { accountConcurrency, accountRpm, accountTpm } = snapshot.settings.limits;
  const half = concurrencyGiven === undefined ? undefined : Math.max(1, Math.floor(concurrencyGiven / 2));
  return {
    accountConcurrency: account?.concurrency ?? accountConcurrency ?? half,
    accountRpm: account?.rpm ?? accountRpm,
    accountTpm: account?.tpm ?? accountTpm,
  };
}

type AccountLimits = Pick<ReserveNeed, 'accountConcurrency' | 'accountRpm' | 'accountTpm'>;

/** The cost of the call's own model. `reader`: of content beside text. */
export function costOfModel(call: BillableCall, reader: MediaReader | undefined): CallCost {
  const { model, snapshot, request } = call;
  const limits = ruleLimitsOf(call);
  const media = reader?.(limits.imageTokens);
  const input = estimateInput(call, media);
  const searchTokens = model.web ? searchTokensOf(snapshot) : 0;
  const output = outputLimit(call);
  const inputTokensMax = Math.ceil((input.above + searchTokens) * limits.inputFactor);
  return {
    model: model.base,
    media,
    unknownPart: input.unknownPart,
    price: priceOfCall(call),
    estimate: {
      inputTokens: input.unbiased,
      inputTokensMax: input.unknownPart === undefined ? inputTokensMax : unboundedTokens,
      n: request.n ?? 1,
      outputTokensMax: output.tokens,
      outputTokensLeast: output.least,
      heldWhole: output.heldWhole,
    },
  };
}

export interface ReservedCall {
  call: BillableCall;
  /** Of each model that may answer, the first one first. */
  costs: readonly [CallCost, ...CallCost[]];
  /** The plan entries that cover it, whichever answers. Absent: those of the first model. */
  slots?: PlanSlot[] | undefined;
  nowMs: number;
}

/** What decides which plan entries cover a call. */
export const planQuery = (
  { snapshot, account }: BillableCall,
  nowMs: number,
): Pick<SlotQuery, 'plans' | 'held' | 'nowMs'> => {
  const held = snapshot.settings.subscriptionEnabled ? account?.plan : undefined;
  return { plans: snapshot.plans, held, nowMs };
};

/** Undefined for a free call whose key and account have no limits of their own, if free calls are not counted. */
export function reservationRequestOf(reserved: ReservedCall): ReservationRequest | undefined {
  const { call, costs, nowMs } = reserved;
  const [{ price, estimate }, ...others] = costs;
  const { key, model, snapshot, account } = call;
  const limited = [key.max_concurrency, key.rpm, account?.concurrency, account?.rpm, account?.tpm].some(
    (limit) => limit !== undefined,
  );
  const free = costs.every((cost) => cost.price.type === 'non-billing');
  const countsFree = snapshot.settings.limits.countFree;
  if (free && !limited && !model.official && !countsFree) return undefined;

  const slots = reserved.slots ?? planSlots({ ...planQuery(call, nowMs), model: model.base });
  const need: ReserveNeed = {
    id: call.identity.requestId,
    price,
    slots,
    estimate,
    ...(others.length > 0 && { others }),
    key: counterKey(key),
    maxConcurrency: key.max_concurrency,
    ...accountLimitsOf(call),
    minute: Math.floor(nowMs / 60_000),
    takesNothing: free || model.official,
  };
  const entry = {
    input: need.takesNothing ? 0n : inputCost(price, estimate.inputTokens),
    key: need.key,
    model: model.base,
    // Of the tier that `input` has: a row of an expired call has this text.
    price: formatPrice(price, { prompt_tokens: estimate.inputTokens }),
    official: model.official,
    ...(call.queued && { queued: true }),
  };
  const budget = need.takesNothing ? undefined : callBudget(call, need.key, nowMs);
  const unknownPart = costs.find((cost) => cost.unknownPart !== undefined)?.unknownPart;
  const refused = async (reason: ReserveRefusal, item: QuotaItem): Promise<Refusal> => {
    const { reserveRefusal } = await import('./reserve-refusals.ts');
    return reserveRefusal({ call, need, reason, item, nowMs, budget, unknownPart });
  };
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
  { key, snapshot, identity }: BillableCall,
  keyPrefix: string,
  nowMs: number,
): CallBudget | undefined {
  if (!key.budget) return undefined;
  const { period, amount } = key.budget;
  const { key: periodKey, resetsAtMs } = budgetPeriod(period, snapshot.settings.timeZone, nowMs);
  const expires = Math.ceil((resetsAtMs + counterKeptMs) / 1000);
  return {
    counter: { key: keyPrefix, period: periodKey, expires },
    call: identity.requestId,
    most: parseYuan(amount) ?? 0n,
    resetsAtMs,
  };
}

// What a search may add to a prompt. The reservation counts it before the search.

/** Tokens, estimated from above. */
export const searchTokensMax = 4_000;

/** Maximum prompt tokens that a search adds to a `web-` call; reserved in addition to those of its request. */
export const searchTokensOf = ({ settings }: Snapshot): number => (settings.search ? searchTokensMax : 0);
