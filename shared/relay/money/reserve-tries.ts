/**
 * The tries of one reserve: a first one on a guess, the next ones on what the store returned. Must never leave
 * a part while a try on it may still be applied.
 */
import type { QuotaItem } from '../../billing/quota-item.ts';
import type { ReserveWrite } from '../../billing/quota-writes.ts';
import { needOn, pickPart, roomySlots } from '../../billing/shares.ts';
import {
  isOfAccount,
  isRefusal,
  planReserve,
  type CallPayment,
  type ReserveNeed,
  type ReserveRefusal,
} from '../../billing/reservation.ts';
import { refuse, type Refusal } from '../http/refusal.ts';
import { StoreBusy } from '../ports/store-errors.ts';
import type { QuotaStore } from '../ports/money-stores.ts';
import { Backoff } from './backoff.ts';
import type { BudgetHold } from './budget-hold.ts';
import type {
  QuotaGuesses,
  Reservation,
  ReservationRequest,
  ReservationsPorts,
  ReserveUnderWay,
} from './open-reservation.ts';

const triesMax = 4;
const partWritesMax = 3;
const reserveBudgetMs = 1_500;

/** How long an entry counts without a renewal. Calls up to this long cost two writes. */
const leaseMs = 60_000;
/** A lease is renewed shortly before its end. */
export const renewEveryMs = leaseMs - 2_000;

/** The end of a lease that starts now, in Unix seconds. No call lives longer than its host. */
export const leaseEnd = (nowMs: number, hostDeadlineMs: number): number =>
  Math.ceil(Math.min(nowMs + leaseMs, hostDeadlineMs) / 1000);

/** A settle must finish before the host kills the invocation, some seconds after the deadline. */
const settleBudgetMs = 4_000;

export const hostDeadlineOf = ({ deadlineMs }: Pick<ReservationRequest, 'deadlineMs'>): number =>
  deadlineMs + settleBudgetMs;

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
  /** When an entry that may have been applied ends, in epoch milliseconds. */
  readonly endMs: number;
  /** The part of the last try. */
  part = 0;
  /** The sums of the account, if one part refused the call. */
  whole: QuotaItem | undefined;
  /** Money was moved for this call. */
  hasGathered = false;
  /** Undefined: the key has no budget. */
  hold: BudgetHold | undefined;
  #writes = 0;
  quickEndMs: number | undefined;

  constructor({ ports, guesses, request, mustWait }: ReserveTriesParts) {
    this.ports = ports;
    this.guesses = guesses;
    this.request = request;
    this.#mustWait = mustWait;
    this.backoff = new Backoff(ports, reserveBudgetMs);
    this.reads = new Backoff(ports, reserveBudgetMs);
    this.endMs = Math.min(ports.clock.now() + leaseMs, request.deadlineMs);
  }

  /** A try may still be applied to `part`, so the next ones stay there. */
  get isPinned(): boolean {
    return this.backoff.unknowns > 0;
  }

  /** A try that was applied may have expired, so there must be no more. */
  get isOver(): boolean {
    return this.ports.clock.now() >= this.endMs;
  }

  /** On several parts. */
  get isLast(): boolean {
    return this.#writes >= partWritesMax - 1;
  }

  /** Throws a Refusal, or StoreUnavailable when the store does not answer. */
  async run(): Promise<Reservation> {
    const { need, rateCount } = this.request;
    await this.#openBudget();
    let item = this.guessOn(this.request.parts);
    for (let tries = 0; tries < triesMax && this.#writes < writesMaxOn(item); tries += 1) {
      const onPart = item.parts === 1 ? need : needOn(this.roomyNeed(item), item);
      const own = { ...onPart, budgetLeft: this.hold?.left };
      const lastTry = tries === triesMax - 1 || this.#writes === writesMaxOn(item) - 1;
      const payment = planReserve(own, item, { lastTry });
      if (isRefusal(payment)) {
        const { afterRefusal } = await import('./shards.ts');
        item = await afterRefusal(this, item, payment);
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
      const { afterRefusedWrite } = await import('./shards.ts');
      item = await afterRefusedWrite(this, item, reply.item);
    }
    const { contended } = await import('./reserve-refusals.ts');
    throw await contended(this, item);
  }

  /** The need without plan slots that are full in the sum of the parts. */
  roomyNeed({ parts }: Pick<QuotaItem, 'parts'>): ReserveNeed {
    const { need, account } = this.request;
    return parts === 1 ? need : { ...need, slots: roomySlots(need.slots, this.guesses.of(account).plan) };
  }

  async #openBudget(): Promise<void> {
    const { budget } = this.request;
    if (!budget) return;
    const { BudgetHold } = await import('./budget-hold.ts');
    this.hold = new BudgetHold(this.ports.counters, this.reads, budget);
  }

  /** A guess of one of the account's parts. */
  guessOn(parts?: number): QuotaItem {
    const sums = this.guesses.of(this.request.account, parts);
    if (sums.parts === 1) return sums;
    const { need } = this.request;
    // A part without a share in a slot may have got room from another one.
    const plan = new Map(need.slots.map(({ key }) => [key, -1]));
    return { ...sums, plan, part: pickPart(need, sums, this.ports.random.next()) };
  }

  /** The refusal of the sums of the account, which is remembered unless it is the key's own. */
  async refusal(refusal: ReserveRefusal, whole: QuotaItem): Promise<Refusal> {
    if (isOfAccount(refusal)) this.guesses.sawRefusal(whole, refusal.reason === 'open_entries');
    if (refusal.reason === 'budget') refusal.isShared = this.hold?.isShared === true;
    return this.request.refused(refusal, whole);
  }

  #send(write: Parameters<QuotaStore['reserve']>[0]): ReturnType<QuotaStore['reserve']> {
    // An environment may resume from a freeze after the sweeper has closed an earlier try; a new try would then be
    // charged a second time.
    if (this.isOver)
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

interface ReserveTarget {
  item: QuotaItem;
  payment: CallPayment;
  /** The need with the limits of this part. */
  need: ReserveNeed;
}

/** The reserve of a payment on a part of the account. */
function reserveWriteOf(
  { account, entry, budget, deadlineMs }: ReservationRequest,
  { item, payment, need }: ReserveTarget,
  nowMs: number,
): ReserveWrite {
  const { key, id, maxConcurrency, accountConcurrency, accountRpm, accountTpm } = need;
  const { parts, part } = item;
  const counted = item.rate?.minute;
  // Another environment's clock may be ahead; its later minute is then used.
  const minute = Math.max(need.minute, counted ?? 0);
  const slot = payment.slot?.key ?? '';
  const shares = [
    payment.slot?.limit ?? undefined,
    maxConcurrency,
    accountConcurrency,
    accountRpm,
    accountTpm,
  ];
  return {
    account,
    part,
    id,
    entry: {
      ...entry,
      until: leaseEnd(nowMs, hostDeadlineOf({ deadlineMs })),
      amount: payment.amount,
      slot,
      budget: payment.amount > 0n ? budget?.counter.period : undefined,
      tombstone: false,
    },
    atLeast: payment.atLeast,
    parts: shares.some((share) => share !== undefined) ? parts : undefined,
    openMax: accountConcurrency,
    slot: payment.slot,
    place: maxConcurrency === undefined ? undefined : { key, max: maxConcurrency },
    rate:
      accountRpm === undefined && accountTpm === undefined
        ? undefined
        : {
            minute,
            max: accountRpm,
            tokensMax: accountTpm,
            tokens: need.estimate.inputTokens,
            starts: counted !== minute,
          },
  };
}
