/**
 * The tries of one reserve: a first one on a guess, the next ones on what the store returned. Must never leave
 * a part while a try on it may still be applied.
 */
import { emptyQuota, type QuotaItem } from '../../billing/quota-item.ts';
import { needOn, pickPart, roomySlots } from '../../billing/parts/shares.ts';
import { isRefusal, planReserve, type ReserveNeed, type ReserveRefusal } from '../../billing/reservation.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
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
  type ReserveUnderWay,
} from './open-reservation.ts';

const triesMax = 4;
const partWritesMax = 3;
const reserveBudgetMs = 1_500;
const quickMs = 50;

export interface ReserveTriesParts {
  ports: ReservationsPorts;
  guesses: QuotaGuesses;
  request: ReservationRequest;
  /** A settle of the account waits because the store is throttled: reserves wait too. */
  mustWait: () => boolean;
}

export class ReserveTries implements ReserveUnderWay {
  readonly ports: ReservationsPorts;
  readonly guesses: QuotaGuesses;
  readonly request: ReservationRequest;
  /** Of the reserve's own writes. */
  readonly backoff: Backoff;
  /** Of everything else: it leaves nothing behind that would have to be guarded. */
  readonly reads: Backoff;
  readonly #mustWait: () => boolean;
  readonly #endMs: number;
  /** The part of the last try. */
  part = 0;
  /** Undefined: the key has no budget. */
  hold: BudgetHold | undefined;
  /** The sums of the account, if one part refused the call. */
  whole: QuotaItem | undefined;
  /** Money was moved for this call. */
  hasGathered = false;
  #writes = 0;
  #quickEndMs: number | undefined;

  constructor({ ports, guesses, request, mustWait }: ReserveTriesParts) {
    this.ports = ports;
    this.guesses = guesses;
    this.request = request;
    this.#mustWait = mustWait;
    this.backoff = new Backoff(ports, reserveBudgetMs);
    this.reads = new Backoff(ports, reserveBudgetMs);
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
    for (let tries = 0; tries < triesMax && this.#writes < writesMaxOn(item); tries += 1) {
      const own = { ...needOn(this.roomyNeed(item), item), budgetLeft: this.hold?.left };
      const lastTry = tries === triesMax - 1 || this.#writes === writesMaxOn(item) - 1;
      const payment = planReserve(own, item, { lastTry });
      if (isRefusal(payment)) {
        item = await this.#refusedOn(item, payment);
        continue;
      }
      if (this.hold && !(await this.hold.covers(payment.amount))) continue;
      const write = reserveWriteOf(this.request, { item, payment, need: own }, this.ports.clock.now());
      this.part = item.part;
      this.#writes += 1;
      const reply = await this.backoff.until(() => this.#send(write));
      if (reply.item) this.guesses.saw(reply.item);
      if (reply.done) return this.#reservation({ entry: write.entry, payment, item: reply.item, rateCount });
      // Refused, but the id is open: an earlier try, whose reply was lost, was applied.
      const applied = reply.item?.open.get(need.id);
      if (applied) return this.#reservation({ entry: applied, payment, item: undefined, rateCount });
      item = await this.#next(item, reply.item);
    }
    throw this.contended(item);
  }

  /** How long the way to another part may still take: a refusal must not take longer than a call. */
  quickLeftMs(): number {
    const now = this.ports.clock.now();
    this.#quickEndMs ??= now + quickMs;
    return this.#quickEndMs - now;
  }

  /** Others took each time what this call was to have. `item`: what the last try was made on. */
  contended(item: QuotaItem): Refusal {
    const short = planReserve(needOn(this.roomyNeed(item), item), { ...item, available: -1n });
    if (item.parts > 1 && isRefusal(short) && isForMoney(short)) {
      const { available } = this.whole ?? item;
      return this.request.refused({ reason: 'reserved', available, need: short.need }, this.whole ?? item);
    }
    return refuse('unavailable', 'The account is very busy at the moment. Nothing was charged; try again.', {
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
        await this.reads.until(() => this.ports.quotas.create(account));
      return empty;
    }
    if (image && this.isPinned) return image;
    // The number of parts was wrong. What a part says that is no more in use, or never was, is not to be trusted.
    if (!image || part >= image.parts) return { ...this.#guessOn(), part: 0, parts: 1 };
    if (image.parts !== parts) return this.#guessOn();
    const { elsewhere } = await import('./elsewhere.ts');
    return elsewhere(this, image);
  }

  /** The part on which to go on, after a plan was refused. Throws the refusal. */
  async #refusedOn(item: QuotaItem, refusal: ReserveRefusal): Promise<QuotaItem> {
    if (item.parts > 1) {
      const { elsewhere } = await import('./elsewhere.ts');
      return elsewhere(this, item);
    }
    if (refusal.reason === 'concurrency') {
      const { freePlaces } = await import('./free-places.ts');
      const freed = await freePlaces(this, item);
      if (freed) return freed;
    }
    throw this.refusal(refusal, item);
  }

  /** The refusal of the sums of the account, which is remembered if it is for money. */
  refusal(refusal: ReserveRefusal, whole: QuotaItem): Refusal {
    if (isForMoney(refusal)) this.guesses.sawRefusal(whole);
    if (refusal.reason === 'budget') refusal.isShared = this.hold?.isShared === true;
    return this.request.refused(refusal, whole);
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

/** What others take from one part of several is not fought over. */
const writesMaxOn = ({ parts }: QuotaItem): number => (parts === 1 ? triesMax : partWritesMax);

const isForMoney = (
  refusal: ReserveRefusal,
): refusal is Extract<ReserveRefusal, { reason: 'quota' | 'reserved' }> =>
  refusal.reason === 'quota' || refusal.reason === 'reserved';
