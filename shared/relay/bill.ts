import { formatYuan, yuanNumber, type NanoYuan } from '../billing/amount.ts';
import { chargeOf, costsNothing, type AnswerOutcome } from '../billing/charge-of.ts';
import { costOf, type Price } from '../billing/price.ts';
import type { Journal } from '../billing/quota-item.ts';
import type { ChatUsage } from '../wire/chat-response.ts';
import { bookingOf, priceOfCall, rateHeaders, type BillableCall } from './booking.ts';
import type { Books, Reservation } from './books.ts';
import type { Clock } from './ports.ts';

/** The money side of one call: reserved before the upstream hears of it, settled once after its end. */
export class Bill {
  readonly #books: Books;
  readonly #clock: Clock;
  readonly #call: BillableCall;
  readonly #price: Price;
  readonly #reservation: Reservation | undefined;

  private constructor(
    books: Books,
    clock: Clock,
    call: BillableCall,
    price: Price,
    reservation?: Reservation,
  ) {
    this.#books = books;
    this.#clock = clock;
    this.#call = call;
    this.#price = price;
    this.#reservation = reservation;
  }

  /** Throws a Refusal when the call cannot be paid or its key is at a limit; then nothing is reserved. */
  static async open(books: Books, clock: Clock, call: BillableCall): Promise<Bill> {
    const price = priceOfCall(call);
    const booking = bookingOf(call, price, clock.now());
    const reservation = booking ? await books.reserve(booking) : undefined;
    return new Bill(books, clock, call, price, reservation);
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
    const count = this.#reservation?.sight?.rateCount;
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
    const giveBack = costsNothing(outcome);
    const due = chargeOf(this.#price, outcome);
    const { slot, official } = reservation.entry;
    const charge: NanoYuan = slot !== '' || official ? 0n : due;
    const journal: Journal = {
      id: reservation.id,
      kind: giveBack ? 'released' : 'settled',
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
    await this.#books.close(reservation, journal, giveBack);
  }
}
