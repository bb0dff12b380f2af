/**
 * Computes what a call may cost and what must be reserved for it, from the call, its tariff and the configuration. Must not read a
 * store.
 */
import type { ChatRequest } from '../../wire/canonical-call.ts';
import { keyHash } from '../../wire/ids.ts';
import { readWindow } from '../../wire/service-tier.ts';
import type { AccountBudget } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';
import type { BudgetShare } from '../../endpoints/endpoint.ts';
import {
  computeInputCost,
  choosePriceToReserve,
  applyServiceTier,
  formatPrice,
} from '../../billing/price.ts';
import { type NanoYuan, parseYuan } from '../../billing/money.ts';
import { formatTariffForRow, findModelLimits, findAgreedPrice } from '../../billing/tariff.ts';
import { findBudgetPeriod } from '../../billing/budget-period.ts';
import { findAttributedName } from '../../billing/ledger-row.ts';
import { estimateInput, loadMediaReader, type MediaReader } from '../../billing/estimate/input-tokens.ts';
import type { MediaEstimator } from '../../billing/estimate/media-tokens.ts';
import {
  listPlanSlots,
  listAliasSlots,
  computeReserveAmount,
  type SlotQuery,
  type ModelCost,
  type ReserveNeed,
} from '../../billing/reservation.ts';
import type { ChatCall } from '../call/call.ts';
import { callTo, computeOutputLimit } from '../call/serving-channels.ts';
import { refuse } from '../http/refusal.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { Budget, ReservationRequest } from './open-reservation.ts';

/** The fields of a call that determine its cost and payer. */
export type BillableCall = Omit<
  ChatCall,
  'candidates' | 'droppedTools' | 'states' | 'stateDropped' | 'signal' | 'entry' | 'form'
>;

/** The cost if one model answers: at most this price in any service tier. */
export interface CallCost extends ModelCost {
  /** The public base name. */
  model: string;
  media: MediaEstimator | undefined;
  /** The path of content whose size nobody knows. */
  unknownPart: string | undefined;
}

/** One cost for each model that may answer. The call's own model comes first. */
export type Costs = readonly [CallCost, ...CallCost[]];

export interface PricedCall {
  costs: Costs;
  /** Missing if the call costs nothing and nothing limits it. */
  request: ReservationRequest | undefined;
}

export type PricePorts = Pick<ChatPorts, 'inflate'>;

export async function priceCall({ inflate }: PricePorts, call: BillableCall): Promise<PricedCall> {
  const reader = await loadMediaReader(call, inflate);
  const later = call.alias?.models.slice(1) ?? [];
  const costs: Costs = [
    estimateModelCost(call, reader),
    ...later.map(({ model }) => estimateModelCost(callTo(call, model), reader)),
  ];
  return { costs, request: buildCallRequest(call, costs) };
}

const unproven = new Error('a file is unpacked only for who can pay');
const refuseInflating = (): never => {
  throw unproven;
};

/** Like `priceCall`, but calls `prove` before it unpacks a file of the call. Most calls have no file. */
export async function priceOnceProven(
  ports: PricePorts,
  call: BillableCall,
  prove: () => Promise<void>,
): Promise<PricedCall> {
  try {
    return await priceCall({ inflate: refuseInflating }, call);
  } catch (error) {
    if (error !== unproven) throw error;
  }
  await prove();
  return priceCall(ports, call);
}

/** More than any balance covers, so content of unknown size is refused unless a plan or official mode pays, or the model is free. */
const unboundedTokens = Number.MAX_SAFE_INTEGER;
/** The most prompt tokens that a search adds, estimated from above: reserved in addition to those of the request. */
export const searchTokensMax = 4_000;

/** Estimates the cost of the call's own model. `reader` reads content other than text. */
function estimateModelCost(call: BillableCall, reader: MediaReader | undefined): CallCost {
  const { model, request, tariff } = call;
  const limits = findModelLimits(tariff, model.base);
  const media = reader?.(limits.imageTokens);
  const input = estimateInput(call, media);
  const searchTokens = tariff.search === undefined ? 0 : searchTokensMax;
  const output = computeOutputLimit(call);
  const inputTokensMax = Math.ceil((input.above + searchTokens) * limits.inputFactor);
  return {
    model: model.base,
    media,
    unknownPart: input.unknownContentPart,
    price: choosePriceToReserve(findAgreedPrice(tariff, model.base), tierOf(request)),
    estimate: {
      inputTokens: input.unbiased,
      inputTokensMax: input.unknownContentPart === undefined ? inputTokensMax : unboundedTokens,
      n: request.n ?? 1,
      outputTokensMax: output.tokens,
      outputTokensLeast: output.least,
      reservesFully: output.reservesFully,
    },
  };
}

const tierOf = ({ service_tier: tier }: ChatRequest): string | undefined => tier ?? undefined;

/** Returns undefined for a free call without limits, for which nothing has to be reserved or counted. */
function buildCallRequest(call: BillableCall, costs: Costs): ReservationRequest | undefined {
  const [{ price, estimate }, ...others] = costs;
  // The service tier of a crashed call is unknown, so its input is charged in the tier that was asked for.
  const asked = applyServiceTier(price, tierOf(call.request));
  const { identity, model, alias } = call;
  const paidFor = costs.filter((cost) => cost.price.type !== 'non-billing').map((cost) => cost.model);
  const isFree = paidFor.length === 0;
  const searchPrice = call.tariff.search || undefined;
  const searchRpm = searchRpmOf(call);
  const isLimited = searchPrice !== undefined || searchRpm !== undefined || model.official || hasLimits(call);
  if (isFree && !isLimited) return undefined;

  const plan = planQuery(call);
  const covering = alias
    ? listAliasSlots(plan, alias.name, paidFor)
    : listPlanSlots({ ...plan, model: model.base });
  // A plan covers calls at the standard price. The balance pays for calls in a dearer service tier.
  const isDearer = costs.some(
    (cost) => 'serviceFactor' in cost.price && cost.price.serviceFactor !== undefined,
  );
  const reservesNothing = model.official || (isFree && searchPrice === undefined);
  return buildRequest(call, {
    need: {
      id: identity.requestId,
      price,
      searchPrice,
      searchRpm,
      slots: isDearer || isFree ? [] : covering,
      estimate,
      ...(others.length > 0 && { alternatives: others }),
      reservesNothing,
      ...(readWindow(call.request.service_tier) !== undefined && { waits: true }),
    },
    entry: {
      input: reservesNothing ? 0n : computeInputCost(asked, estimate.inputTokens),
      searchPrice: model.official ? undefined : searchPrice,
      model: model.base,
      // The tier of the estimated input; the row of an expired call has this text.
      price: formatPrice(asked, { prompt_tokens: estimate.inputTokens }),
      tariff: formatTariffForRow(call.tariff),
      official: model.official,
    },
    budgets: reservesNothing ? [] : findCallBudgets(call),
    unknownPart: costs.find((cost) => cost.unknownPart !== undefined)?.unknownPart,
  });
}

/** Searches per key and minute if searches are free: $0.24 a minute at Tavily's $0.008 each. */
const freeSearchesOfMinute = 30;

/** Searches that the call's key may make in a minute, if limited. */
function searchRpmOf({ model, snapshot: { settings } }: BillableCall): number | undefined {
  const { search } = settings;
  if (!model.web || !search) return undefined;
  return search.perMinute ?? (search.price ? undefined : freeSearchesOfMinute);
}

/**
 * Throws a Refusal if a call would pay neither for its search nor for its model: anybody with a key could use up the operator's
 * searches. Official calls pay nothing either, but need a permission.
 */
export function checkSearchIsPaid({ model, alias, snapshot }: BillableCall, costs: Costs): void {
  const { search } = snapshot.settings;
  if (!model.web || model.official || !search || search.price !== undefined) return;
  if (costs.every(({ price, estimate }) => computeReserveAmount(price, estimate) > 0n)) return;
  throw refuse(
    'model_not_allowed',
    `Web search is only available for models with a price. Use "${alias?.name ?? model.base}" without the prefix "web-".`,
    { param: 'model', reason: 'search_unpaid' },
  );
}

/** The account that pays for a call, and its limits, even if the call itself is not read. */
export type Payer = Pick<
  ChatCall,
  'key' | 'account' | 'shardCount' | 'snapshot' | 'startedMs' | 'deadlineMs' | 'concurrencyGiven'
>;

/** True if a call of the payer is counted even if it is free. */
export function hasLimits({ key, account, snapshot }: Payer): boolean {
  const limits = [key.max_concurrency, key.rpm, account?.concurrency, account?.rpm, account?.tpm];
  return snapshot.settings.limits.countFree || limits.some((limit) => limit !== undefined);
}

/** The facts that decide which plan entries cover a call. */
export const planQuery = ({
  snapshot,
  account,
  startedMs,
}: Pick<Payer, 'snapshot' | 'account' | 'startedMs'>): Pick<
  SlotQuery,
  'plans' | 'subscription' | 'nowMs'
> => ({
  plans: snapshot.plans,
  subscription: snapshot.settings.subscriptionEnabled ? account?.plan : undefined,
  nowMs: startedMs,
});

/** The parts of a reservation request that do not depend on the payer, whose limits replace those of `need`. */
interface RequestTerms {
  need: Omit<ReserveNeed, 'key' | 'nowMs'>;
  entry: Omit<ReservationRequest['entry'], 'key'>;
  budgets?: readonly Budget[];
  unknownPart?: string | undefined;
  isLeast?: true;
}

/**
 * Counts the call in the minute, day and plan month in which it began, which also decides its price, however long its body takes
 * to arrive.
 */
export function buildRequest(payer: Payer, terms: RequestTerms): ReservationRequest {
  const { key, account, snapshot, shardCount, deadlineMs, startedMs: nowMs } = payer;
  const { entry, budgets, unknownPart, isLeast } = terms;
  const need: ReserveNeed = {
    ...terms.need,
    key: counterKeyOf(key),
    maxConcurrency: key.max_concurrency,
    ...accountLimitsOf(payer),
    nowMs,
    ...(account?.metered && { metered: true }),
  };
  return {
    account: key.account,
    shardCount,
    deadlineMs,
    need,
    rpm: key.rpm,
    budgets,
    entry: { ...entry, key: need.key },
    createRefusal: async (reason, item) => {
      const { refuseReserve } = await import('./reserve-refusals.ts');
      const call = { snapshot, key };
      return refuseReserve({ call, need, reason, item, nowMs, unknownPart, isLeast });
    },
  };
}

const keyLength = 12;
/** Returns the name of a key in counters and open entries. */
export const counterKeyOf = ({ hash }: { hash: string }): string => hash.slice(0, keyLength);

/**
 * Returns the limits of the account that pays: from its row, else from the setting `limits`. By default an account gets half of the
 * deployment's concurrent calls, so that it never blocks the others. A metered account has no such limit, because the deployment
 * exists for it.
 */
function accountLimitsOf({ account, snapshot, concurrencyGiven }: Payer) {
  const { accountConcurrency, accountRpm, accountTpm } = snapshot.settings.limits;
  const isShared = concurrencyGiven !== undefined && !account?.metered;
  const half = isShared ? Math.max(1, Math.floor(concurrencyGiven / 2)) : undefined;
  return {
    accountConcurrency: account?.concurrency ?? accountConcurrency ?? half,
    accountRpm: account?.rpm ?? accountRpm,
    accountTpm: account?.tpm ?? accountTpm,
  };
}

/** A counter outlives its period, so that calls that end later find it. */
const counterKeptMs = 48 * 60 * 60 * 1000;

/** Finds the budgets that a call counts toward: its key's, and for each `by` and period the budget of its name, else that of `*`. */
function findCallBudgets({ key, account, attribution, snapshot, startedMs }: BillableCall): Budget[] {
  const { timeZone } = snapshot.settings;
  const named = new Map<string, AccountBudget>();
  for (const budget of account?.budgets ?? []) {
    const { by, period } = budget;
    const name = findAttributedName(attribution, by) ?? '';
    const isOwn = budget.name === name;
    if (isOwn || (budget.name === '*' && !named.has(by + period)))
      named.set(by + period, { ...budget, name });
  }
  const ofKey = findKeyBudget(key, timeZone, startedMs);
  const ofTags = [...named.values()].map((budget) => findTagBudget(key.account, budget, timeZone, startedMs));
  return [...(ofKey ? [ofKey] : []), ...ofTags];
}

export const findKeyBudget = (
  key: Pick<KeyRow, 'budget' | 'hash'>,
  timeZone: string,
  nowMs: number,
): Budget | undefined => key.budget && findBudget(counterKeyOf(key), key.budget, timeZone, nowMs);

/** Returns the budget of one name. The counter's key hides the name, which may be a person's. */
export const findTagBudget = (
  account: string,
  { by, name, ...written }: AccountBudget,
  timeZone: string,
  nowMs: number,
): Budget => ({
  of: { by, name },
  ...findBudget(
    keyHash(JSON.stringify([account, by, name])).slice(0, tagKeyLength),
    written,
    timeZone,
    nowMs,
  ),
});

/** Longer than the counter's name of a key, so that the two never collide. */
const tagKeyLength = 16;

function findBudget(
  key: string,
  { period, amount }: NonNullable<KeyRow['budget']>,
  timeZone: string,
  nowMs: number,
): Budget {
  const { key: periodKey, resetsAtMs } = findBudgetPeriod(period, timeZone, nowMs);
  const expires = Math.ceil((resetsAtMs + counterKeptMs) / 1000);
  return { period, counter: { key, period: periodKey, expires }, most: parseYuan(amount) ?? 0n, resetsAtMs };
}

/** Computes the used share for clients that show it. A budget of 0 counts as used up. */
export function describeBudget({ period, most, resetsAtMs }: Budget, used: NanoYuan): BudgetShare {
  const share = most > 0n ? Number(used) / Number(most) : 1;
  return { period, used: Math.min(Math.max(share, 0), 1), resetsAtMs };
}
