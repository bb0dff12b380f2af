import { formatYuan, yuanNumber, type NanoYuan } from '../../billing/amount.ts';
import { chargeOf, costsNothing, type AnswerOutcome } from '../../billing/call-charge.ts';
import { costOf, type Price } from '../../billing/price.ts';
import type { CloseRecord } from '../../billing/quota-item.ts';
import type { ChatUsage } from '../../wire/chat-response.ts';
import { reservationRequestOf, priceOfCall, rateHeaders, type BillableCall } from './reservation-request.ts';
import type { Reservations, Reservation } from './reservations.ts';
import type { Clock } from '../ports/clock.ts';

/** The money side of one call: reserved before the upstream hears of it, settled once after its end. */
export class Bill {
  readonly #reservations: Reservations;
  readonly #clock: Clock;
  readonly #call: BillableCall;
  readonly #price: Price;
  readonly #reservation: Reservation | undefined;

  private constructor(
    reservations: Reservations,
    clock: Clock,
    call: BillableCall,
    price: Price,
    reservation?: Reservation,
  ) {
    this.#reservations = reservations;
    this.#clock = clock;
    this.#call = call;
    this.#price = price;
    this.#reservation = reservation;
  }

  /** Throws a Refusal when the call cannot be paid or its key is at a limit; then nothing is reserved. */
  static async open(reservations: Reservations, clock: Clock, call: BillableCall): Promise<Bill> {
    const price = priceOfCall(call);
    const reservationRequest = reservationRequestOf(call, price, clock.now());
    const reservation = reservationRequest ? await reservations.reserve(reservationRequest) : undefined;
    return new Bill(reservations, clock, call, price, reservation);
  }

  /** Output tokens of one answer that the balance covers, when that is fewer than were asked for. */
  get limitedTo(): number | undefined {
    return this.#reservation?.payment.limitedTo;
  }

  /** What the client is told of limits, on every answer of the call. */
  get headers(): Record<string, string> {
    const headers: Record<string, string> = {};
    if (this.limitedTo !== undefined) {
      headers['x-relay-limited-by'] = 'balance';
      headers['x-relay-max-tokens'] = String(this.limitedTo);
    }
    const { rpm } = this.#call.key;
    const count = this.#reservation?.returned?.rateCount;
    if (rpm === undefined || count === undefined) return headers;
    Object.assign(headers, rateHeaders(rpm, Math.max(0, rpm - count), this.#clock.now()));
    return headers;
  }

  /** Official mode alone: what a usage would have cost, in yuan. */
  get quota(): ((usage: ChatUsage) => number) | undefined {
    return this.#call.model.official ? (usage) => yuanNumber(costOf(this.#price, usage)) : undefined;
  }

  /** Settles or releases. Never throws; to be called once, after the last byte. */
  async close(outcome: AnswerOutcome, end: string): Promise<void> {
    const reservation = this.#reservation;
    if (!reservation) return;
    const { record } = this.#call;
    const releaseSlot = costsNothing(outcome);
    const due = chargeOf(this.#price, outcome);
    const { slot, official } = reservation.entry;
    const charge: NanoYuan = slot !== '' || official ? 0n : due;
    const closeRecord: CloseRecord = {
      id: reservation.id,
      kind: releaseSlot ? 'released' : 'settled',
      charge,
      at: Math.floor(this.#clock.now() / 1000),
      endpoint: record.endpoint,
      promptTokens: outcome.usage.prompt_tokens,
      completionTokens: outcome.usage.completion_tokens,
      estimated: !outcome.usageKnown || record.usage_clamped === true,
      end,
      cost: official ? due : undefined,
    };
    record.charge = formatYuan(charge);
    if (slot !== '') record.plan_slot = slot;
    await this.#reservations.close(reservation, closeRecord, releaseSlot);
  }
}
