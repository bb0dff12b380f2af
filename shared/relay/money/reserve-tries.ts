/**
 * The tries of one reserve: a first one on a guess, the next ones on what the store returned. Must never leave
 * a part while a try on it may still be applied.
 */
import { emptyQuota, type QuotaItem } from '../../billing/quota-item.ts';
import { needOn, pickPart, roomySlots } from '../../billing/parts/shares.ts';
import { isRefusal, planReserve, type ReserveNeed, type ReserveRefusal } from '../../billing/reservation.ts';
import { refuse } from '../http/refusal.ts';
import { StoreBusy } from '../ports/stores/store-errors.ts';
import type { QuotaStore } from '../ports/stores/quota-store.ts';
import { Backoff } from './backoff.ts';
import type { BudgetHold } from './budget-hold.ts';
import type { QuotaGuesses } from './quota-guesses.ts';
import {
  hostDeadlineOf,
  leaseMs,
  reserveWriteOf,
  type Reservation,
  type ReservationRequest,
  type ReservationsPorts,
} from './reservation.ts';

const triesMax = 4;
const reserveBudgetMs = 1_500;

export interface ReserveTriesParts {
  ports: ReservationsPorts;
  guesses: QuotaGuesses;
  request: ReservationRequest;
  /** A settle of the account waits because the store is throttled: reserves wait too. */
  mustWait(): boolean;
}

export class ReserveTries {
  readonly ports: ReservationsPorts;
  readonly guesses: QuotaGuesses;
  readonly request: ReservationRequest;
  readonly backoff: Backoff;
  readonly #mustWait: () => boolean;
  readonly #endMs: number;
  /** The part of the last try. */
  part = 0;
  /** Undefined: the key has no budget. */
  hold: BudgetHold | undefined;

  constructor({ ports, guesses, request, mustWait }: ReserveTriesParts) {
    this.ports = ports;
    this.guesses = guesses;
    this.request = request;
    this.#mustWait = mustWait;
    this.backoff = new Backoff(ports, reserveBudgetMs);
    this.#endMs = Math.min(ports.clock.now() + leaseMs, request.deadlineMs);
  }

  /** A try may still be applied to `part`, so the next ones stay there. */
  get isPinned(): boolean {
    return this.backoff.unknowns > 0;
  }

  /** Throws a Refusal, or StoreUnavailable when the store does not answer. */
  async run(): Promise<Reservation> {
    const { need } = this.request;
    this.#refuseAgain();
    const rateCount = await this.#countCall();
    await this.#openBudget();
    let item = this.#guessOn(this.request.parts);
    for (let tries = 0; tries < triesMax; tries += 1) {
      const own = { ...needOn(this.roomyNeed(item), item), budgetLeft: this.hold?.left };
      const payment = planReserve(own, item, { lastTry: tries === triesMax - 1 });
      if (isRefusal(payment)) {
        item = await this.#refusedOn(item, payment);
        continue;
      }
      if (this.hold && !(await this.hold.covers(payment.amount))) continue;
      const write = reserveWriteOf(this.request, { item, payment, need: own }, this.ports.clock.now());
      this.part = item.part;
      const reply = await this.backoff.until(() => this.#send(write));
      if (reply.item) this.guesses.saw(reply.item);
      if (reply.done) return this.#reservation({ entry: write.entry, payment, item: reply.item, rateCount });
      // Refused, but the id is open: an earlier try, whose reply was lost, was applied.
      const applied = reply.item?.open.get(need.id);
      if (applied) return this.#reservation({ entry: applied, payment, item: undefined, rateCount });
      item = await this.#next(item, reply.item);
    }
    throw refuse('unavailable', 'The account is very busy at the moment. Nothing was charged; try again.', {
      headers: { 'retry-after': '1' },
      reason: 'reserve_contended',
    });
  }

  /** The need without plan slots that are full in the sum of the parts. */
  roomyNeed({ parts }: Pick<QuotaItem, 'parts'>): ReserveNeed {
    const { need, account } = this.request;
    return parts === 1 ? need : { ...need, slots: roomySlots(need.slots, this.guesses.of(account).plan) };
  }

  /** What was refused for money a moment ago is refused again without a write. */
  #refuseAgain(): void {
    const { account, need } = this.request;
    const sums = this.guesses.refusalOf(account);
    const again = sums && planReserve(need, sums);
    if (sums && again && isRefusal(again) && isForMoney(again)) throw this.request.refused(again, sums);
  }

  /** Counts the call in its key's minute, if that has a limit. */
  async #countCall(): Promise<number | undefined> {
    const { need, rpm } = this.request;
    if (rpm === undefined) return undefined;
    const count = await this.backoff.until(() => this.ports.counters.countCall(need.key, need.minute, rpm));
    if (count === undefined) throw this.request.refused({ reason: 'rate' }, emptyQuota(this.request.account));
    return count;
  }

  async #openBudget(): Promise<void> {
    const { budget } = this.request;
    if (!budget) return;
    const { BudgetHold } = await import('./budget-hold.ts');
    this.hold = new BudgetHold(this.ports.counters, new Backoff(this.ports, reserveBudgetMs), budget);
  }

  /** A guess of one of the account's parts. */
  #guessOn(parts?: number): QuotaItem {
    const sums = this.guesses.of(this.request.account, parts);
    if (sums.parts === 1) return sums;
    return { ...sums, plan: new Map(), part: pickPart(this.request.need, sums, this.ports.random.next()) };
  }

  /** What the next try is made on, after a write was refused. */
  async #next(tried: QuotaItem, image: QuotaItem | undefined): Promise<QuotaItem> {
    const { account, need } = this.request;
    const { part, parts } = tried;
    if (image?.parts === 1 && part === 0) return image;
    if (!image && part === 0) {
      const empty = emptyQuota(account);
      if (!isRefusal(planReserve(need, empty)))
        await this.backoff.until(() => this.ports.quotas.create(account));
      return empty;
    }
    if (image && this.isPinned) return image;
    // The number of parts was wrong. What a part says that is no more in use, or never was, is not to be trusted.
    if (!image || part >= image.parts) return { ...this.#guessOn(), part: 0, parts: 1 };
    return image.parts === parts ? image : this.#guessOn();
  }

  /** The part on which to go on, after a plan was refused. Throws the refusal. */
  async #refusedOn(item: QuotaItem, refusal: ReserveRefusal): Promise<QuotaItem> {
    if (refusal.reason === 'concurrency') {
      const { freePlaces } = await import('./free-places.ts');
      const freed = await freePlaces(this, item);
      if (freed) return freed;
    }
    if (isForMoney(refusal)) this.guesses.sawRefusal(item);
    if (refusal.reason === 'budget') refusal.isShared = this.hold?.isShared === true;
    throw this.request.refused(refusal, item);
  }

  #send(write: Parameters<QuotaStore['reserve']>[0]): ReturnType<QuotaStore['reserve']> {
    // An environment may resume from a freeze after the sweeper has closed an earlier try; a new try would then be
    // charged a second time.
    if (this.ports.clock.now() >= this.#endMs)
      throw refuse('unavailable', 'The request ran out of time before it could start; try again.', {
        headers: { 'retry-after': '1' },
        reason: 'reserve_out_of_time',
      });
    if (this.#mustWait()) throw new StoreBusy('settles go first');
    return this.ports.quotas.reserve(write);
  }

  async #reservation(
    reserved: Pick<Reservation, 'entry' | 'payment' | 'item' | 'rateCount'>,
  ): Promise<Reservation> {
    const { account, need } = this.request;
    await this.hold?.keep(reserved.entry.amount);
    const { unknowns } = this.backoff;
    return {
      account,
      part: this.part,
      id: need.id,
      ...reserved,
      countsTokens: need.accountTpm !== undefined,
      triesInFlight: reserved.item ? unknowns : unknowns - 1,
      hostDeadlineMs: hostDeadlineOf(this.request),
    };
  }
}

const isForMoney = ({ reason }: ReserveRefusal): boolean => reason === 'quota' || reason === 'reserved';
