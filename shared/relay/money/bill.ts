/** Reserves and settles the money of one call. The outcome of the answer is an input. */
import { formatYuan, yuanNumber, type NanoYuan } from '../../billing/amount.ts';
import { cacheCounts } from '../../billing/cache-counts.ts';
import { chargeOf, costsNothing, type AnswerOutcome } from '../../billing/usage/call-charge.ts';
import { estimateInput, mediaFor } from '../../billing/estimate/input-tokens.ts';
import type { MediaEstimator } from '../../billing/estimate/media-tokens.ts';
import { costOf, formatPrice, mostRates, type Price, type TokenCounts } from '../../billing/price.ts';
import type { CallEstimate } from '../../billing/reservation.ts';
import type { CloseRecord } from '../../billing/quota-item.ts';
import type { ChatRequest } from '../../wire/chat-request.ts';
import type { ChatUsage } from '../../wire/chat-response.ts';
import { ruleLimitsOf } from '../call/output-limit.ts';
import { reservationRequestOf, priceOfCall, type BillableCall } from './reservation-request.ts';
import { rateHeaders } from './reserve-refusals.ts';
import type { Reservation } from './open-reservation.ts';
import type { Reservations } from './reservations.ts';
import type { ServingFacts } from '../call/serving-facts.ts';
import type { Clock } from '../ports/clock.ts';

/** How a call ended, for its close record. */
export interface CallEnding {
  outcome: AnswerOutcome;
  /** Which of the charged counts are not the upstream's own, and why. Undefined: none. */
  flag: string | undefined;
  /** `completed`, `failed`, `client_gone`. */
  end: string;
  /** Absent: no channel was tried. */
  serving?: ServingFacts | undefined;
}

/** What was charged. Empty for a call without a reservation. */
export interface BillReport {
  /** In yuan, as an exact decimal. */
  charge?: string;
  planSlot?: string;
  /** The reserved amount, if the charge is above it. */
  exceeded?: string;
}

interface BillParts {
  reservations: Reservations;
  clock: Clock;
  call: BillableCall;
  price: Price;
  /** Undefined: a free call of a key without limits. */
  reservation: Reservation | undefined;
  /** Undefined: the request has text alone. */
  media: MediaEstimator | undefined;
  /** What was reserved for one answer, if the balance covers it. */
  outputTokensMax: number | undefined;
}

/** Reserves before the upstream is called and settles once after the call's end. */
export class Bill {
  readonly #reservations: Reservations;
  readonly #clock: Clock;
  readonly #call: BillableCall;
  readonly #price: Price;
  readonly #reservation: Reservation | undefined;
  readonly #media: MediaEstimator | undefined;
  readonly #outputTokensMax: number | undefined;
  readonly #ended = new AbortController();

  private constructor(parts: BillParts) {
    this.#reservations = parts.reservations;
    this.#clock = parts.clock;
    this.#call = parts.call;
    this.#price = parts.price;
    this.#reservation = parts.reservation;
    this.#media = parts.media;
    this.#outputTokensMax = parts.outputTokensMax;
    if (this.#reservation) void this.#reservations.renewUntil(this.#reservation, this.#ended.signal);
  }

  /**
   * Throws a Refusal when the balance does not cover the call or its key is at a limit; nothing is then
   * reserved.
   */
  static async open(reservations: Reservations, clock: Clock, call: BillableCall): Promise<Bill> {
    const price = priceOfCall(call);
    const media = await mediaFor(call.request, ruleLimitsOf(call).imageTokens);
    const request = reservationRequestOf({ call, price, media, nowMs: clock.now() });
    const reservation = request && (await reservations.reserve(request));
    const outputTokensMax = request && boundedOutput(price, request.need.estimate);
    return new Bill({ reservations, clock, call, price, reservation, media, outputTokensMax });
  }

  /** The output tokens of one answer that the balance covers, if fewer than requested. */
  get limitedTo(): number | undefined {
    return this.#reservation?.payment.limitedTo;
  }

  /** What lowered the limit. Undefined: nothing did. */
  get limitedBy(): 'balance' | 'budget' | undefined {
    return this.limitedTo === undefined ? undefined : (this.#reservation?.payment.limitedBy ?? 'balance');
  }

  /** The limit that must go upstream, because the balance pays no more. Undefined: it does not pay by tokens. */
  get outputTokensLimit(): number | undefined {
    const { slot, amount } = this.#reservation?.payment ?? { amount: 0n };
    return amount > 0n && !slot ? (this.limitedTo ?? this.#outputTokensMax) : undefined;
  }

  /** The input as it is charged when the upstream reports no count. `request`: with what a search added. */
  inputTokens(request: ChatRequest): number {
    return estimateInput({ request, unknown: this.#call.unknown }, this.#media).unbiased;
  }

  /** Headers about limits, for every response to the call. */
  get headers(): Record<string, string> {
    const headers: Record<string, string> = {};
    if (this.limitedTo !== undefined) {
      headers['x-relay-limited-by'] = this.limitedBy ?? 'balance';
      headers['x-relay-max-tokens'] = String(this.limitedTo);
    }
    const { rpm } = this.#call.key;
    const count = this.#reservation?.rateCount;
    if (rpm === undefined || count === undefined) return headers;
    Object.assign(headers, rateHeaders(rpm, Math.max(0, rpm - count), this.#clock.now()));
    return headers;
  }

  /** Official mode only: computes what a usage would have cost, in yuan. */
  get quota(): ((usage: ChatUsage) => number) | undefined {
    return this.#call.model.official ? (usage) => yuanNumber(costOf(this.#price, usage)) : undefined;
  }

  /** The price of the tier that the usage came to, if it is not the tier of the estimate. */
  #priceIfOther(usage: TokenCounts): string | undefined {
    const text = formatPrice(this.#price, usage);
    return text === this.#reservation?.entry.price ? undefined : text;
  }

  /** Releases the reservation of a call that was never made. Never throws. */
  async cancel(): Promise<void> {
    const usage = { prompt_tokens: 0, completion_tokens: 0 };
    await this.close({ outcome: { failed: true, anyContent: false, usage }, flag: undefined, end: 'failed' });
  }

  /** Settles or releases the reservation. Never throws. To be called once, after the last byte. */
  async close({ outcome, flag, end, serving }: CallEnding): Promise<BillReport> {
    const reservation = this.#reservation;
    this.#ended.abort();
    if (!reservation) return {};
    const releaseSlot = costsNothing(outcome);
    const due = chargeOf(this.#price, outcome);
    const { amount, slot, official } = reservation.entry;
    const charge: NanoYuan = slot !== '' || official ? 0n : due;
    const closeRecord: CloseRecord = {
      id: reservation.id,
      kind: releaseSlot ? 'released' : 'settled',
      charge,
      at: Math.floor(this.#clock.now() / 1000),
      endpoint: this.#call.endpoint,
      promptTokens: outcome.usage.prompt_tokens,
      completionTokens: outcome.usage.completion_tokens,
      cache: cacheCounts(outcome.usage.prompt_tokens_details),
      estimated: flag !== undefined,
      flag,
      end,
      cost: official ? due : undefined,
      ...serving,
      // What a failed call cost the operator is not known.
      bought: releaseSlot ? undefined : serving?.bought,
      price: this.#priceIfOther(outcome.usage),
    };
    await this.#reservations.close(reservation, closeRecord, releaseSlot);
    return {
      charge: formatYuan(charge),
      ...(slot !== '' && { planSlot: slot }),
      ...(charge > amount && { exceeded: formatYuan(amount) }),
    };
  }
}

/** The limit that bounds the cost. Undefined: output costs nothing, or the call costs the same at any length. */
const boundedOutput = (
  price: Price,
  { inputTokensMax, outputTokensMax }: Pick<CallEstimate, 'inputTokensMax' | 'outputTokensMax'>,
): number | undefined =>
  price.type === 'token-billing' && mostRates(price.tiers, inputTokensMax).output > 0n
    ? outputTokensMax
    : undefined;
