/** Reserves and settles the money of one call. The outcome of the answer is an input. */
import { partCountsOf, type ChatUsage } from '../../wire/chat-response.ts';
import type { ChatRequest } from '../../wire/canonical-call.ts';
import {
  formatYuan,
  parseYuan,
  convertToYuanNumber,
  type NanoYuan,
  computeBuyingCost,
  computeCost,
  formatPrice,
  computeInputCost,
  findHighestRates,
  choosePriceToReserve,
  applyServiceTier,
  findPricedTier,
  type TokenCounts,
} from '../../billing/price.ts';
import { formatTariffForRow, findModelLimits, findAgreedPrice } from '../../billing/tariff.ts';
import { findBudgetPeriod } from '../../billing/budget-period.ts';
import { estimateInput, loadMediaReader, type MediaReader } from '../../billing/estimate/input-tokens.ts';
import type { MediaEstimator } from '../../billing/estimate/media-tokens.ts';
import {
  listPlanSlots,
  listAliasSlots,
  type SlotQuery,
  type ModelCost,
  type ReserveNeed,
} from '../../billing/reservation.ts';
import type { CloseRecord, QuotaItem } from '../../billing/quota-item.ts';
import { computeCharge, costsNothing, type AnswerOutcome } from '../../billing/usage.ts';
import type { SentFacts } from '../../endpoints/endpoint.ts';
import { upstreamModelOf } from '../../upstreams/called-channel.ts';
import type { ChatCall, DispatchReport } from '../call/call.ts';
import { callTo, computeOutputLimit } from '../call/serving-channels.ts';
import { rateHeaders } from '../http/http.ts';
import type { Refusal } from '../http/refusal.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { CallBudget, Reservation, ReservationRequest, ReserveFailure } from './open-reservation.ts';
import type { Reservations } from './reservations.ts';
import { checkSearchIsPaid, searchCostOf, searchRpmOf, searchTokensMax } from './search-terms.ts';

/** How a call ended, for its close record. */
interface CallEnding {
  outcome: AnswerOutcome;
  /** Charged counts that are not the upstream's own, and why. */
  flag: string | undefined;
  /** `completed`, `failed`, `client_gone`. */
  end: string;
  /** The model that answered or was tried last; default the call's own. */
  answered?: string | undefined;
  /** The service tier that is charged; default the standard one. */
  tier?: string | undefined;
  serving?: ServingFacts | undefined;
  /** Its search is charged whatever happened to the call. */
  isSearchBilled?: boolean | undefined;
}

/** The charge; empty for a call without a reservation. */
export interface BillReport {
  /** In yuan, as an exact decimal. */
  charge?: string;
  planSlot?: string;
  /** The reserved amount, if the charge is above it. */
  exceeded?: string;
}

type BillPorts = Pick<ChatPorts, 'clock' | 'inflate'>;

type Costs = readonly [CallCost, ...CallCost[]];

interface BillInput {
  reservations: Reservations;
  clock: BillPorts['clock'];
  call: BillableCall;
  costs: Costs;
  /** Missing for a free call of a key without limits. */
  reservation: Reservation | undefined;
}

/** A call that its key's minute has counted. */
export interface AdmittedCall {
  /**
   * Throws a Refusal when the balance does not cover the call or its key is at a limit; nothing is then reserved.
   * @param call the admitted one, or with more that was read for it
   */
  reserve(call: BillableCall): Promise<Bill>;
  /** Throws a Refusal when the account cannot pay as much as is known of the call, before more is read for it. */
  prove(): Promise<void>;
  /** The same of the whole call, by a fresh look at its account. Returns headers about limits. */
  proveWhole(call: BillableCall): Promise<Record<string, string>>;
}

/**
 * Throws a Refusal when the key's minute is full, or the account was short a moment ago; nothing is read or reserved.
 * @param call as far as it is read: what is read later only makes it cost more
 * @param prove throws when the account has nothing to pay the call with: asked before a file of it is unpacked
 */
export async function admitCall(
  reservations: Reservations,
  ports: BillPorts,
  call: BillableCall,
  prove: () => Promise<void>,
): Promise<AdmittedCall> {
  const { clock } = ports;
  const admitted = await priceOnceProven(ports, call, prove);
  checkSearchIsPaid(call, admitted.costs);
  const rateCount = admitted.request && (await reservations.admit(admitted.request));
  return {
    async reserve(whole) {
      const { costs, request } = whole === call ? admitted : await priceCall(ports, whole);
      const reservation = request && (await reservations.reserve({ ...request, rateCount }));
      return openBill({ reservations, clock, call: whole, costs, reservation });
    },
    async prove() {
      if (admitted.request) await reservations.prove({ ...admitted.request, rateCount });
    },
    async proveWhole(whole) {
      const { request } = whole === call ? admitted : await priceCall(ports, whole);
      if (request) await reservations.prove({ ...request, rateCount }, true);
      return buildMinuteHeaders(call, rateCount, clock.now());
    },
  };
}

/**
 * For the run of a background response: the minute of its key counted it when it was accepted. Throws a Refusal.
 * @param shard where a version before decision 93 reserved for the call
 */
export async function reserveForRun(
  reservations: Reservations,
  ports: BillPorts,
  call: BillableCall,
  { waiting, shard }: Pick<ReservationRequest, 'waiting' | 'shard'>,
): Promise<Bill> {
  const { costs, request } = await priceCall(ports, call);
  const own = request && { ...request, rpm: undefined, waiting, shard };
  // The entry that is there holds its share of the budget.
  const asked = own && shard !== undefined ? { ...own, budget: undefined } : own;
  const reservation = asked && (await reservations.reserve(asked));
  return openBill({ reservations, clock: ports.clock, call, costs, reservation });
}

/** Renews the lease of its reservation until it is closed. */
function openBill(input: BillInput): Bill {
  const closed = new AbortController();
  const { reservations, reservation } = input;
  if (reservation) void reservations.renewUntil(reservation, closed.signal);
  return new Bill(input, closed);
}

/** The reservation and the charge of one call. It is settled once, after the call ends. */
export class Bill {
  readonly #input: BillInput;
  readonly #closed: AbortController;

  constructor(input: BillInput, closed: AbortController) {
    this.#input = input;
    this.#closed = closed;
  }

  get reserved(): Reservation | undefined {
    return this.#input.reservation;
  }

  #findCost(answering: string | undefined): CallCost {
    const { costs } = this.#input;
    return costs.find(({ model }) => model === answering) ?? costs[0];
  }

  /** The output tokens of one answer that the balance covers, if fewer than requested. */
  get limitedTo(): number | undefined {
    return this.reserved?.payment.limitedTo;
  }

  get limitedBy(): 'balance' | 'budget' | undefined {
    return this.limitedTo === undefined ? undefined : (this.reserved?.payment.limitedBy ?? 'balance');
  }

  /**
   * The limit to send upstream because the balance covers no more. Only for calls paid by tokens.
   * @param answering the model that is asked; undefined: the call's own
   */
  limitOutputTokens(answering?: string): number | undefined {
    const { slot, amount } = this.reserved?.payment ?? { amount: 0n };
    const most = findOutputBound(this.#findCost(answering));
    return amount > 0n && !slot && most !== undefined ? Math.min(this.limitedTo ?? most, most) : undefined;
  }

  /**
   * The input as it is charged when the upstream reports no count. `request`: with what a search added. `answering`: the
   * model; undefined: the call's own. `facts`: in whose form it went up, and what was dropped.
   */
  inputTokens(request: ChatRequest, answering?: string, facts: SentFacts = { dropped: [] }): number {
    const { unknown, embedding, native } = this.#input.call;
    const { isNative, dropped } = facts;
    const sent = { request, unknown, embedding, native: isNative ? native : undefined, dropped };
    return estimateInput(sent, this.#findCost(answering).media).unbiased;
  }

  /** Headers about limits, for every response to the call. */
  get headers(): Record<string, string> {
    const headers: Record<string, string> = {};
    if (this.limitedTo !== undefined) {
      headers['x-relay-limited-by'] = this.limitedBy ?? 'balance';
      headers['x-relay-max-tokens'] = String(this.limitedTo);
    }
    const { call, clock } = this.#input;
    return { ...headers, ...buildMinuteHeaders(call, this.reserved?.rateCount, clock.now()) };
  }

  /** Official mode only: computes what a usage and a search would have cost, in yuan. */
  get quota(): ((usage: ChatUsage, report: DispatchReport) => number) | undefined {
    if (!this.#input.call.model.official) return undefined;
    return (usage, { model, sent, isSearchBilled }) => {
      const price = applyServiceTier(this.#findCost(model).price, sent.serviceTier);
      return convertToYuanNumber(computeCost(price, usage) + (isSearchBilled ? this.#searchPrice : 0n));
    };
  }

  get #searchPrice(): NanoYuan {
    return this.#input.call.tariff.search ?? 0n;
  }

  /** Releases the reservation of a call that was never made, but for its search. Never throws. */
  async cancel(isSearchBilled = false): Promise<void> {
    const usage = { prompt_tokens: 0, completion_tokens: 0 };
    const outcome = { failed: true, anyContent: false, usage };
    await this.close({ outcome, flag: undefined, end: 'failed', isSearchBilled });
  }

  /** Settles or releases the reservation. Never throws. To be called once, after the last byte. */
  async close(ending: CallEnding): Promise<BillReport> {
    const { outcome, flag, end, answered, tier, serving, isSearchBilled } = ending;
    const { reservations, reservation, clock, call } = this.#input;
    this.#closed.abort('closed');
    if (!reservation) return {};
    const { amount, slot, official, ...entry } = reservation.entry;
    const { usage } = outcome;
    const isNothing = costsNothing(outcome);
    const { model, price: held } = this.#findCost(answered);
    const price = applyServiceTier(held, tier);
    const search = isSearchBilled ? this.#searchPrice : 0n;
    const due = computeCharge(price, outcome, search);
    const priceText = formatPrice(price, usage);
    // An answer of a free model uses no plan slot.
    const releaseSlot = isNothing || (slot !== '' && price.type === 'non-billing');
    // A plan covers the model's call, and no search.
    const charge: NanoYuan = official ? 0n : slot === '' ? due : search;
    const closeRecord: CloseRecord = {
      id: reservation.id,
      kind: isNothing ? 'released' : 'settled',
      charge,
      at: Math.floor(clock.now() / 1000),
      endpoint: call.endpoint,
      prompt_tokens: usage.prompt_tokens,
      completion_tokens: usage.completion_tokens,
      ...partCountsOf(usage.prompt_tokens_details),
      estimated: flag !== undefined,
      flag,
      end,
      cost: official ? due : undefined,
      ...serving,
      // The operator's cost of a failed call is unknown.
      bought: isNothing ? undefined : serving?.bought,
      price: priceText === entry.price ? undefined : priceText,
      model: model === entry.model ? undefined : model,
      alias: call.alias?.name,
      ...call.attribution,
      service_tier: isNothing ? undefined : findPricedTier(held, tier),
      ...(isSearchBilled && { search_price: search, search_bought: searchCostOf(call) }),
    };
    await reservations.close(reservation, closeRecord, releaseSlot);
    return {
      charge: formatYuan(charge),
      ...(slot !== '' && (isNothing || !releaseSlot) && { planSlot: slot }),
      ...(charge > amount && !entry.metered && { exceeded: formatYuan(amount) }),
    };
  }
}

const buildMinuteHeaders = (
  { key: { rpm } }: Pick<ChatCall, 'key'>,
  count: number | undefined,
  nowMs: number,
): Record<string, string> =>
  rpm === undefined || count === undefined ? {} : rateHeaders(rpm, Math.max(0, rpm - count), nowMs);

/** The limit that bounds the cost, if the length changes it. */
const findOutputBound = ({ price, estimate }: CallCost): number | undefined =>
  price.type === 'token-billing' && findHighestRates(price, estimate.inputTokensMax).output > 0n
    ? estimate.outputTokensMax
    : undefined;

/** The price and the reservation of a call, if it costs anything or is limited. */
async function priceCall(
  ports: BillPorts,
  call: BillableCall,
): Promise<{ costs: Costs; request: ReservationRequest | undefined }> {
  const costs = await costsOf(ports, call);
  return { costs, request: reservationRequestOf(call, costs) };
}

const unproven = new Error('a file is unpacked only for who can pay');
const refuseInflating = (): never => {
  throw unproven;
};

/** The same, but `prove` is asked before a file of the call is unpacked. Most calls have none. */
export async function priceOnceProven(
  ports: BillPorts,
  call: BillableCall,
  prove: () => Promise<void>,
): ReturnType<typeof priceCall> {
  try {
    return await priceCall({ ...ports, inflate: refuseInflating }, call);
  } catch (error) {
    if (error !== unproven) throw error;
  }
  await prove();
  return priceCall(ports, call);
}

async function costsOf({ inflate }: BillPorts, call: BillableCall): Promise<Costs> {
  const reader = await loadMediaReader(call, inflate);
  const later = call.alias?.models.slice(1) ?? [];
  return [
    estimateModelCost(call, reader),
    ...later.map(({ model }) => estimateModelCost(callTo(call, model), reader)),
  ];
}

// The channel that served a call and the operator's cost, for the close record. Must not read a store.

type ServingFacts = Pick<CloseRecord, 'channel' | 'upstream_model' | 'first_content_ms' | 'bought'>;

/** `model`: the public name. */
export function describeServing(
  { channel, firstContentMs, sent }: Pick<DispatchReport, 'channel' | 'firstContentMs' | 'sent'>,
  model: string,
  usage: TokenCounts,
): ServingFacts | undefined {
  if (!channel) return undefined;
  const upstream = upstreamModelOf(channel, model);
  return {
    channel: channel.id,
    upstream_model: upstream === model ? undefined : upstream,
    first_content_ms: firstContentMs,
    // The vendor bills the tier that it reports.
    bought: computeBuyingCost(channel.cost, upstream, usage, sent.reportedTier ?? sent.serviceTier),
  };
}

// Computes the reservation from the call, its price and the configuration. Must not read a store.

/** The fields of a call that determine its cost and payer. */
export type BillableCall = Omit<
  ChatCall,
  'candidates' | 'droppedTools' | 'states' | 'stateDropped' | 'signal' | 'entry' | 'form'
>;

const keyLength = 12;
/** By which counters and open entries name a key. */
export const counterKeyOf = ({ hash }: { hash: string }): string => hash.slice(0, keyLength);
/** No balance covers as many, so content of unknown size is only for calls that the balance does not pay. */
const unboundedTokens = Number.MAX_SAFE_INTEGER;

/** The cost if one model answers: at most this price in any service tier. */
interface CallCost extends ModelCost {
  /** The public base name. */
  model: string;
  media: MediaEstimator | undefined;
  /** The path of content whose size nobody knows. */
  unknownPart: string | undefined;
}

/**
 * The limits of the account that pays: those of its row, else of the setting `limits`. One account gets half of the
 * calls at once that the deployment has, so that it never takes all of them from the others; but for a metered one, which is
 * who the deployment is for.
 */
export function accountLimitsOf({
  account,
  snapshot,
  concurrencyGiven,
}: Pick<BillableCall, 'account' | 'snapshot' | 'concurrencyGiven'>) {
  const { accountConcurrency, accountRpm, accountTpm } = snapshot.settings.limits;
  const isShared = concurrencyGiven !== undefined && !account?.metered;
  const half = isShared ? Math.max(1, Math.floor(concurrencyGiven / 2)) : undefined;
  return {
    accountConcurrency: account?.concurrency ?? accountConcurrency ?? half,
    accountRpm: account?.rpm ?? accountRpm,
    accountTpm: account?.tpm ?? accountTpm,
  };
}

/** The cost of the call's own model. `reader`: of content beside text. */
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
    price: choosePriceToReserve(findAgreedPrice(tariff, model.base), request.service_tier ?? undefined),
    estimate: {
      inputTokens: input.unbiased,
      inputTokensMax: input.unknownContentPart === undefined ? inputTokensMax : unboundedTokens,
      n: request.n ?? 1,
      outputTokensMax: output.tokens,
      outputTokensLeast: output.least,
      reservesFully: output.heldWhole,
    },
  };
}

/** The facts that decide which plan entries cover a call. */
export const planQuery = ({
  snapshot,
  account,
  startedMs,
}: Pick<BillableCall, 'snapshot' | 'account' | 'startedMs'>): Pick<
  SlotQuery,
  'plans' | 'subscription' | 'nowMs'
> => {
  const held = snapshot.settings.subscriptionEnabled ? account?.plan : undefined;
  return { plans: snapshot.plans, subscription: held, nowMs: startedMs };
};

/**
 * Minutes, days and plan months are those in which the call began, as its price is, however long it is read before it is
 * reserved. Undefined for a free call whose key and account have no limits of their own, if free calls are not counted. */
function reservationRequestOf(call: BillableCall, costs: Costs): ReservationRequest | undefined {
  const [{ price, estimate }, ...others] = costs;
  // Nobody hears which service tier a crashed call had, so its input is that of the one that was asked for.
  const asked = applyServiceTier(price, call.request.service_tier ?? undefined);
  const { identity, key, model, alias, snapshot, account, startedMs: nowMs } = call;
  const paidFor = costs.filter((cost) => cost.price.type !== 'non-billing').map((cost) => cost.model);
  const isFree = paidFor.length === 0;
  const searchPrice = call.tariff.search || undefined;
  const searchRpm = searchRpmOf(call);
  const limits = [key.max_concurrency, key.rpm, account?.concurrency, account?.rpm, account?.tpm, searchRpm];
  const isLimited = searchPrice !== undefined || limits.some((limit) => limit !== undefined);
  if (isFree && !isLimited && !model.official && !snapshot.settings.limits.countFree) return undefined;

  const plan = planQuery(call);
  const covering = alias
    ? listAliasSlots(plan, alias.name, paidFor)
    : listPlanSlots({ ...plan, model: model.base });
  // A plan counts calls of the standard price: who asks for a dearer service tier pays for the call.
  const isDearer = costs.some(
    ({ price: held }) => 'serviceFactor' in held && held.serviceFactor !== undefined,
  );
  const slots = isDearer || isFree ? [] : covering;
  const need: ReserveNeed = {
    id: identity.requestId,
    price,
    searchPrice,
    searchRpm,
    slots,
    estimate,
    ...(others.length > 0 && { alternatives: others }),
    key: counterKeyOf(key),
    maxConcurrency: key.max_concurrency,
    ...accountLimitsOf(call),
    nowMs,
    ...(account?.metered && { metered: true }),
    reservesNothing: model.official || (isFree && searchPrice === undefined),
  };
  const entry = {
    input: need.reservesNothing ? 0n : computeInputCost(asked, estimate.inputTokens),
    searchPrice: model.official ? undefined : searchPrice,
    key: need.key,
    model: model.base,
    // The tier of the estimated input; the row of an expired call has this text.
    price: formatPrice(asked, { prompt_tokens: estimate.inputTokens }),
    tariff: formatTariffForRow(call.tariff),
    official: model.official,
  };
  const budget = need.reservesNothing ? undefined : callBudget(call, need.key);
  const unknownPart = costs.find((cost) => cost.unknownPart !== undefined)?.unknownPart;
  const refused = async (reason: ReserveFailure, item: QuotaItem): Promise<Refusal> => {
    const { refuseReserve } = await import('./reserve-refusals.ts');
    return refuseReserve({ call, need, reason, item, nowMs, budget, unknownPart });
  };
  return {
    account: key.account,
    parts: call.parts,
    deadlineMs: call.deadlineMs,
    need,
    rpm: key.rpm,
    budget,
    entry,
    createRefusal: refused,
  };
}

/** A counter outlives its period, so that calls that end later find it. */
const counterKeptMs = 48 * 60 * 60 * 1000;

function callBudget(
  { key, snapshot, identity, startedMs }: BillableCall,
  keyPrefix: string,
): CallBudget | undefined {
  if (!key.budget) return undefined;
  const { period, amount } = key.budget;
  const { key: periodKey, resetsAtMs } = findBudgetPeriod(period, snapshot.settings.timeZone, startedMs);
  const expires = Math.ceil((resetsAtMs + counterKeptMs) / 1000);
  return {
    counter: { key: keyPrefix, period: periodKey, expires },
    call: identity.requestId,
    most: parseYuan(amount) ?? 0n,
    resetsAtMs,
  };
}
