/** Reserves and settles the money of one call. The outcome of the answer is an input. */
import { partCountsOf, type ChatUsage } from '../../wire/chat-response.ts';
import type { ChatRequest } from '../../wire/canonical-call.ts';
import {
  computeBuyingCost,
  computeCost,
  formatPrice,
  findHighestRates,
  applyServiceTier,
  findPricedTier,
  type TokenCounts,
} from '../../billing/price.ts';
import { formatYuan, parseYuan, convertToYuanNumber, type NanoYuan } from '../../billing/money.ts';
import { estimateInput } from '../../billing/estimate/input-tokens.ts';
import { formatAttempts, hashSecret, type CallAttempt } from '../../billing/attempts.ts';
import type { CloseRecord } from '../../billing/quota-item.ts';
import { computeCharge, costsNothing, type AnswerOutcome } from '../../billing/usage.ts';
import type { BudgetShare, SentFacts } from '../../endpoints/endpoint.ts';
import { upstreamModelOf } from '../../upstreams/called-channel.ts';
import type { ChatCall, DispatchReport, TriedCandidate } from '../call/call.ts';
import { rateHeaders } from '../http/http.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { Reservation, ReservationRequest } from './open-reservation.ts';
import type { Reservations } from './reservations.ts';
import {
  checkSearchIsPaid,
  describeBudget,
  priceCall,
  priceOnceProven,
  type BillableCall,
  type CallCost,
  type Costs,
} from './call-costs.ts';

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

type BillPorts = Pick<ChatPorts, 'clock' | 'inflate' | 'freeAttempts'>;

interface BillInput {
  reservations: Reservations;
  ports: BillPorts;
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
      return openBill({ reservations, ports, call: whole, costs, reservation });
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
  // The existing entry already holds its share of the budgets.
  const asked = own && shard !== undefined ? { ...own, budgets: [] } : own;
  const reservation = asked && (await reservations.reserve(asked));
  return openBill({ reservations, ports, call, costs, reservation });
}

/** Restores the bill of a call that another invocation reserved. */
export async function restoreBill(
  reservations: Reservations,
  ports: BillPorts,
  call: BillableCall,
  reservation: Reservation,
): Promise<Bill> {
  const { costs } = await priceCall(ports, call);
  return new Bill({ reservations, ports, call, costs, reservation }, new AbortController());
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
    const { call } = this.#input;
    const { media, estimate } = this.#findCost(answering);
    // Text counts the same in every form, and counting a megabyte again takes 5 ms. Media count as they were sent.
    if (media === undefined && request === call.request) return estimate.inputTokens;
    const { unknown, embedding, native, thread } = call;
    const { isNative, dropped, unsentMedia } = facts;
    const sent = {
      request,
      unknown,
      embedding,
      thread,
      native: isNative ? native : undefined,
      dropped,
      unsentMedia,
    };
    return estimateInput(sent, media).unbiased;
  }

  /** Headers about limits, for every response to the call. */
  get headers(): Record<string, string> {
    const headers: Record<string, string> = {};
    if (this.limitedTo !== undefined) {
      headers['x-relay-limited-by'] = this.limitedBy ?? 'balance';
      headers['x-relay-max-tokens'] = String(this.limitedTo);
    }
    const { call, ports } = this.#input;
    return { ...headers, ...buildMinuteHeaders(call, this.reserved?.rateCount, ports.clock.now()) };
  }

  /** The key's budget before this call, for clients that show it. */
  get budget(): BudgetShare | undefined {
    const { budget } = this.reserved ?? {};
    return budget && describeBudget(budget, budget.used);
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

  get #searchCost(): NanoYuan {
    return parseYuan(this.#input.call.snapshot.settings.search?.cost ?? 0) ?? 0n;
  }

  /** Hands the reservation over to other invocations until a time in Unix seconds. A lease that ends earlier is charged late. */
  async handOver(until: number): Promise<void> {
    const { reservations, reservation } = this.#input;
    this.#closed.abort('handed over');
    if (reservation) await reservations.moveLeaseEnd(reservation, until);
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
    const { reservations, reservation, ports, call } = this.#input;
    this.#closed.abort('closed');
    const { usage } = outcome;
    const isNothing = costsNothing(outcome);
    if (!reservation) {
      const { prompt_tokens, completion_tokens } = usage;
      const tokens = { prompt_tokens, completion_tokens };
      const free = { id: call.identity.requestId, model: answered ?? call.model.base, end, ...tokens };
      // A lost count is missing only in a plot.
      if (serving) await ports.freeAttempts.count({ ...free, ...serving }).catch(() => {});
      return {};
    }
    const { amount, slot, official, ...entry } = reservation.entry;
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
      at: Math.floor(ports.clock.now() / 1000),
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
      ...(isSearchBilled && { search_price: search, search_bought: this.#searchCost }),
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

// The channel that served a call and the operator's cost, for the close record. Must not read a store.

type ServingFacts = Pick<CloseRecord, 'channel' | 'upstream_model' | 'first_content_ms' | 'bought' | 'tried'>;

/** `model`: the public name. */
export function describeServing(
  {
    channel,
    firstContentMs,
    sent,
    history,
  }: Pick<DispatchReport, 'channel' | 'firstContentMs' | 'sent' | 'history'>,
  model: string,
  usage: TokenCounts,
  startedMs: number,
): ServingFacts | undefined {
  if (!channel) return undefined;
  const upstream = upstreamModelOf(channel, model);
  return {
    channel: channel.id,
    upstream_model: upstream === model ? undefined : upstream,
    first_content_ms: firstContentMs,
    tried: history && formatAttempts(history().tried.map(describeAttempt), { channel: channel.id, model }),
    // The vendor bills the tier that it reports.
    bought: computeBuyingCost(channel.cost, upstream, usage, {
      tier: sent.reportedTier ?? sent.serviceTier,
      startedMs,
    }),
  };
}

/** Times count from the start of the attempt, so that a channel is not blamed for the attempts before. */
function describeAttempt({ candidate, outcome, startedMs, ...one }: TriedCandidate): CallAttempt {
  const { channel, model, secret } = candidate;
  const endMs = one.endedMs ?? one.doneMs;
  return {
    channel: channel.id,
    model,
    secret: secret === undefined ? '' : hashSecret(secret),
    outcome,
    contentMs: one.contentMs === undefined ? undefined : one.contentMs - startedMs,
    endMs: endMs === undefined ? undefined : endMs - startedMs,
  };
}
