/**
 * Reserves money for a call, then closes the reservation exactly once. No upstream may be called before the
 * reserve is written.
 */
import {
  createQuotaItem,
  type CloseRecord,
  type CloseWrite,
  type QuotaItem,
  type ReserveWrite,
} from '../../billing/quota-item.ts';
import {
  isOfAccount,
  isRefusal,
  findExpiredLeases,
  minuteOf,
  planReservation,
  type CallPayment,
  type ReserveNeed,
  type ReserveRefusal,
} from '../../billing/reservation.ts';
import type { NanoYuan } from '../../billing/price.ts';
import { Refusal, refuse } from '../http/refusal.ts';
import { StoreBusy, tryMsMax } from '../ports/store-errors.ts';
import type { WriteReply, QuotaStore } from '../ports/money-stores.ts';
import { Backoff, retried } from '../retry.ts';
import type { GuardedReserve } from './late-settle.ts';
import {
  type Reservation,
  type ReservationRequest,
  type ReservationsPorts,
  type ReserveUnderWay,
} from './open-reservation.ts';
import { drawCounter, firstCounter, shareNeed, pickShard, listSlotsWithRoom } from '../../billing/shares.ts';
import type { BudgetHold } from './budget-hold.ts';
import { CachedBalances } from './cached-balances.ts';

/** Of a settle whose host's deadline has passed: an environment that was frozen has resumed. */
const lateSettleBudgetMs = 4_000;
const countBudgetMs = 1_500;
/** Between the tries of a call that can wait. */
const waitPauseMs = 1_000;
/** Of what may be repeated for long: a settle, a cancel. */
const longPauseMsMax = 1_000;
const renewBudgetMs = 30_000;
/** Of ending tries of a reserve that may still be applied, beside a known one. */
const guardBudgetMs = 1_500;
/** How many keys with a full minute are remembered. The store is asked about others again. */
const fullMinutesMax = 1_000;
/** While a store fails, cancels must not fill the host: beyond so many at once the sweeper closes what one leaves. */
const longCancelsMax = 16;

/** Reserves before the upstream is called and settles after the end. */
export class Reservations {
  readonly #ports: ReservationsPorts;
  readonly #balances: CachedBalances;
  /** Accounts of which a settle is repeated because the store is throttled. Reserves of these wait. */
  readonly #settling = new Map<string, number>();
  /** By request id: reserves that were refused, and whose tries may still be applied. */
  readonly #cancelling = new Map<string, Promise<void>>();
  /** Cancels under way that may take until the lease ends. */
  #longCancels = 0;
  /** By key: the minute that is full, and the limit that filled it. */
  readonly #fullMinutes = new Map<string, { minute: number; rpm: number }>();

  constructor(ports: ReservationsPorts) {
    this.#ports = ports;
    this.#balances = new CachedBalances(ports.clock);
  }

  /**
   * Counts the call, and its search, in their key's minute, if that has a limit: before anything is read for it, once, whatever becomes of it.
   * Throws a Refusal of what is known without a reserve, or StoreUnavailable.
   * @param request of what the call has at least
   * @returns which call of the minute it is
   */
  async admit(request: ReservationRequest): Promise<number | undefined> {
    const again = this.refusalAgain(request);
    if (again) throw await again;
    const { account, need, rpm } = request;
    const { key, searchRpm } = need;
    const minute = minuteOf(need.nowMs);
    let count: number | undefined;
    if (rpm !== undefined) {
      count = await this.#countInMinute(key, minute, rpm);
      if (count === undefined) {
        if (this.#fullMinutes.size >= fullMinutesMax) this.#fullMinutes.clear();
        this.#fullMinutes.set(key, { minute, rpm });
        throw await request.refused({ reason: 'rate' }, createQuotaItem(account));
      }
    }
    const name = `searches-${key}`;
    if (searchRpm !== undefined && (await this.#countInMinute(name, minute, searchRpm)) === undefined)
      throw await request.refused({ reason: 'search_rate' }, createQuotaItem(account));
    return count;
  }

  /** Undefined: the minute is full. */
  #countInMinute(name: string, minute: number, most: number): Promise<number | undefined> {
    const { counters, repeats } = this.#ports;
    const backoff = new Backoff(this.#ports, countBudgetMs, { repeats });
    return backoff.until(() => counters.countCall(name, minute, most));
  }

  /** Whether anything is known that `refusalAgain` could refuse a call for. `key`: as counters name it. */
  mayRefuse(account: string, key: string): boolean {
    return this.#balances.refusalOf(account) !== undefined || this.#fullMinutes.has(key);
  }

  /**
   * What the account was short of a moment ago, or the key in this minute, is refused again without a write. Undefined: it is not
   * known to be short of anything.
   */
  refusalAgain(request: ReservationRequest): Promise<Refusal> | undefined {
    const { account, need, rpm } = request;
    const full = this.#fullMinutes.get(need.key);
    const isCounted = request.rateCount !== undefined;
    if (!isCounted && full?.minute === minuteOf(need.nowMs) && full.rpm === rpm)
      return request.refused({ reason: 'rate' }, createQuotaItem(account));
    const sums = this.#balances.refusalOf(account);
    const again = sums && planReservation(need, sums);
    return sums && again && isRefusal(again) && isOfAccount(again) ? request.refused(again, sums) : undefined;
  }

  /**
   * Throws the Refusal of a call that the account cannot pay, before work is done for it. Reads the balance where what is known of it
   * does not pay; takes nothing.
   * @param isFresh reads balance, limits and the key's budget in any case
   */
  async prove(request: ReservationRequest, isFresh = false): Promise<void> {
    const again = this.refusalAgain(request);
    if (again) throw await again;
    const { account } = request;
    let { need } = request;
    const known = this.#balances.storedOf(account) ?? createQuotaItem(account);
    if (!isFresh && !isRefusal(planReservation(need, known))) return;
    const budget = isFresh ? await this.#budgetUse(request) : undefined;
    if (budget) need = { ...need, budgetLeft: budget.left };
    const { readSums } = await import('./shards.ts');
    // An image that is a second old may pay. It must not say that an account has no money.
    for (const exact of isFresh ? [true] : [false, true]) {
      const sums = await readSums(this.#ports, request, exact);
      const plan = planReservation(need, sums);
      if (isRefusal(plan) && plan.reason === 'budget') plan.isShared = budget?.isShared === true;
      if (isRefusal(plan) && exact) throw await this.refused(request, plan, sums);
      if (!isRefusal(plan)) return this.#balances.sawSums(sums, sums.shards?.[0].shardCount ?? 1);
    }
  }

  async #budgetUse({
    budget,
  }: ReservationRequest): Promise<{ left: NanoYuan; isShared: boolean } | undefined> {
    if (!budget) return undefined;
    const { used, running } = await retried(this.#ports, () => this.#ports.counters.use(budget.counter));
    return { left: budget.most - used, isShared: running > 0 };
  }

  /** The refusal of a call by the sums of its account, which is remembered unless it is the key's own. */
  refused(request: ReservationRequest, refusal: ReserveRefusal, sums: QuotaItem): Promise<Refusal> {
    if (isOfAccount(refusal)) this.#balances.sawRefusal(sums, refusal.reason === 'open_entries');
    return request.refused(refusal, sums);
  }

  /**
   * Throws a Refusal, or StoreUnavailable when the store does not answer. Nothing then stays reserved, once `cancelled`
   * resolves, unless the event `reserve_unknown` is logged.
   */
  async reserve(request: ReservationRequest): Promise<Reservation> {
    const { waiting, need } = request;
    if (!waiting) return this.#reserveNow(request);
    const { clock } = this.#ports;
    for (let tries = 1; ; tries += 1) {
      const now = { ...need, nowMs: clock.now() };
      // A hold of the same name as the one before would count as its repeat.
      const budget = request.budget && { ...request.budget, call: `${need.id}.${tries}` };
      try {
        return await this.#reserveNow({ ...request, need: now, budget });
      } catch (error) {
        const endsSoon = error instanceof Refusal && error.headers['retry-after'] !== undefined;
        // After a try that may still be applied no other one may be made under the same id.
        const isOver = this.#cancelling.has(need.id) || clock.now() + waitPauseMs > waiting.untilMs;
        if (!endsSoon || isOver || waiting.signal.aborted) throw error;
      }
      await clock.sleep(waitPauseMs, waiting.signal);
    }
  }

  async #reserveNow(request: ReservationRequest): Promise<Reservation> {
    const again = this.refusalAgain(request);
    if (again) throw await again;
    const { account } = request;
    const mustWait = (): boolean => this.#settling.has(account);
    const tries = new ReserveTries(this.#ports, request, { balances: this.#balances, mustWait });
    try {
      const reservation = await tries.run();
      return { ...reservation, besides: this.#splitIfBusy(reservation, tries) };
    } catch (error) {
      const work = this.#cancel(tries);
      // The caller does not wait for a store that does not answer.
      if (tries.isPinned) this.#cancelling.set(request.need.id, work);
      else await work;
      throw error;
    }
  }

  /** Resolves when what a refused reserve may have left is cancelled, or never will be. To be asked once. Never rejects. */
  async cancelled(requestId: string): Promise<void> {
    const work = this.#cancelling.get(requestId);
    this.#cancelling.delete(requestId);
    await work;
  }

  /** Renews the lease of a reservation until the signal aborts. Never throws. */
  async renewUntil(reservation: Reservation, signal: AbortSignal): Promise<void> {
    const { clock, quotas, log } = this.#ports;
    const { account, part, id, entry, hostDeadlineMs } = reservation;
    for (;;) {
      await clock.sleep(renewEveryMs, signal);
      if (signal.aborted || clock.now() >= hostDeadlineMs) return;
      const backoff = new Backoff(this.#ports, renewBudgetMs);
      try {
        const reply = await backoff.until(async () =>
          signal.aborted
            ? { done: false }
            : quotas.renew({ account, shard: part, id, entry, until: leaseEnd(clock.now(), hostDeadlineMs) }),
        );
        // Closed by the sweeper: the settle finds that out.
        if (!reply.done) return;
      } catch (error) {
        log.fault(id, error);
      }
    }
  }

  /** Closes a reservation. Repeated calls close it once. Logs all fields of a close that cannot be written. */
  async close(reservation: Reservation, closeRecord: CloseRecord, releaseSlot: boolean): Promise<void> {
    const { account, part, id, entry } = reservation;
    const rateTokens = reservation.countsTokens ? closeRecord.completion_tokens : undefined;
    const write: CloseWrite = { account, shard: part, id, entry, releaseSlot, closeRecord, rateTokens };
    this.#balances.closed(account, releaseSlot ? entry.slot : '');
    const leftMs = reservation.hostDeadlineMs - this.#ports.clock.now();
    // The last try must have ended, and its failure been logged, before the host kills.
    const budgetMs = leftMs > 0 ? leftMs - tryMsMax : lateSettleBudgetMs;
    const backoff = new Backoff(this.#ports, budgetMs, { pauseMsMax: longPauseMsMax });
    try {
      const reply = await this.#settle(write, backoff);
      // After an unknown outcome, an earlier try may have closed it, followed by another call's close in `last`.
      if (!reply.done && !isOwn(reply.item?.last, closeRecord)) {
        const { settleLate } = await import('./late-settle.ts');
        await settleLate(this.#ports, write, backoff);
      }
    } catch (error) {
      const { formatLoss: lossOf } = await import('../../billing/audit/loss-lines.ts');
      this.#ports.log.event('settle_lost', lossOf(write));
      this.#ports.log.fault(id, error);
      return;
    }
    await this.#guard(reservation, guardBudgetMs);
    await this.#joinIfQuiet(reservation);
    await reservation.besides;
  }

  /** Only some of the calls that see a busy part try to split it: each image has another number of entries. */
  #splitIfBusy({ item }: Reservation, { backoff, request }: ReserveTries): Promise<void> | undefined {
    if (!item || item.shard >= firstCounter) return undefined;
    const throttled = backoff.throttled > 0 && item.open.size > 2 && this.#ports.random.next() < 0.25;
    const isBusy = item.open.size > 8 && (item.open.size - 9) % 4 === 0;
    if (!isBusy && !throttled) return undefined;
    const { need } = request;
    const work = import('./shards.ts').then(({ split }) => split(this.#ports, { item, need, throttled }));
    return work.catch((error: unknown) => this.#ports.log.fault(need.id, error));
  }

  /** A call that was alone in its part may have been the only one. */
  async #joinIfQuiet({ id, item }: Reservation): Promise<void> {
    if (!item || item.shardCount === 1 || item.open.size > 1 || this.#ports.random.next() >= 0.25) return;
    try {
      const { join } = await import('./shards.ts');
      await join(this.#ports, item);
    } catch (error) {
      this.#ports.log.fault(id, error);
    }
  }

  /** Once the store puts a settle off, reserves of the account wait until it is written. */
  async #settle(write: CloseWrite, backoff: Backoff): Promise<WriteReply> {
    const { account } = write;
    let waits = false;
    try {
      return await backoff.until(async () => {
        try {
          return await this.#ports.quotas.close(write);
        } catch (error) {
          if (error instanceof StoreBusy && !waits) {
            waits = true;
            this.#settling.set(account, (this.#settling.get(account) ?? 0) + 1);
          }
          throw error;
        }
      });
    } finally {
      const others = (this.#settling.get(account) ?? 0) - 1;
      if (waits && others > 0) this.#settling.set(account, others);
      else if (waits) this.#settling.delete(account);
    }
  }

  /** The sweeper closes what was not cancelled in its time, and charges its input. */
  async #cancel({ request, backoff, part, hold, endMs }: ReserveTries): Promise<void> {
    const { clock, log } = this.#ports;
    const { account, need, entry } = request;
    const triesInFlight = backoff.unknowns;
    const reserve = { account, part, id: need.id, entry, triesInFlight };
    const mayTakeLong = triesInFlight > 0 && this.#longCancels < longCancelsMax;
    this.#longCancels += Number(mayTakeLong);
    const wholeMs = Math.max(guardBudgetMs, endMs - clock.now() - tryMsMax);
    const nothingOpened = await (
      mayTakeLong ? this.#guard(reserve, wholeMs, longPauseMsMax) : this.#guard(reserve, guardBudgetMs)
    ).finally(() => {
      this.#longCancels -= Number(mayTakeLong);
    });
    // Of a try that may have expired by now, the projector gives the budget back.
    if (!nothingOpened || (triesInFlight > 0 && clock.now() >= endMs)) return;
    await hold?.release().catch((error: unknown) => log.fault(need.id, error));
  }

  /** Ends the tries of a reserve that may still be applied. Returns whether none was and none will be. */
  async #guard(reserve: GuardedReserve, budgetMs: number, pauseMsMax?: number): Promise<boolean> {
    if (reserve.triesInFlight === 0) return true;
    const { guard } = await import('./late-settle.ts');
    // The sweeper closes what a short one leaves.
    const bounds = pauseMsMax === undefined ? { repeats: this.#ports.repeats } : { pauseMsMax };
    return guard(this.#ports, reserve, new Backoff(this.#ports, budgetMs, bounds));
  }
}

/** Whether the last close is this call's own earlier try. A close by the sweeper has another kind. */
const isOwn = (last: CloseRecord | undefined, own: CloseRecord): boolean =>
  last?.id === own.id && last.kind === own.kind;

// The tries of one reserve: a first one on a guess, the next ones on what the store returned. Must never leave
// a part while a try on it may still be applied.

const triesMax = 4;
const partWritesMax = 3;
const reserveBudgetMs = 1_500;

/** How long an entry counts without a renewal. Calls up to this long cost two writes. */
const leaseMs = 60_000;
/** A lease is renewed shortly before its end. */
const renewEveryMs = leaseMs - 2_000;

/** The end of a lease that starts now, in Unix seconds. No call lives longer than its host. */
const leaseEnd = (nowMs: number, hostDeadlineMs: number): number =>
  Math.ceil(Math.min(nowMs + leaseMs, hostDeadlineMs) / 1000);

/** A settle must finish before the host kills the invocation, some seconds after the deadline. */
const settleBudgetMs = 4_000;

const hostDeadlineOf = ({ deadlineMs }: Pick<ReservationRequest, 'deadlineMs'>): number =>
  deadlineMs + settleBudgetMs;

class ReserveTries implements ReserveUnderWay {
  readonly request: ReservationRequest;
  readonly ports: ReservationsPorts;
  readonly #balances: CachedBalances;
  readonly #mustWait: () => boolean;
  /** Of the reserve's own writes. */
  readonly backoff: Backoff;
  readonly reads: Backoff;
  /** When an entry that may have been applied ends, in epoch milliseconds. */
  readonly endMs: number;
  part = 0;
  whole: QuotaItem | undefined;
  hasGathered = false;
  quickEndMs: number | undefined;
  hold: BudgetHold | undefined;
  #writes = 0;

  /** @param mustWait whether a settle of the account waits because the store is throttled: reserves wait too */
  constructor(
    ports: ReservationsPorts,
    request: ReservationRequest,
    { balances, mustWait }: { balances: CachedBalances; mustWait: () => boolean },
  ) {
    this.ports = ports;
    this.request = request;
    this.#balances = balances;
    this.#mustWait = mustWait;
    const { repeats } = ports;
    this.backoff = new Backoff(ports, reserveBudgetMs, { repeats });
    this.reads = new Backoff(ports, reserveBudgetMs, { repeats });
    this.endMs = Math.min(ports.clock.now() + leaseMs, request.deadlineMs);
  }

  get isPinned(): boolean {
    return this.backoff.unknowns > 0;
  }

  get isLast(): boolean {
    return this.#writes >= partWritesMax - 1;
  }

  /** Throws a Refusal, or StoreUnavailable when the store does not answer. */
  async run(): Promise<Reservation> {
    const { need, rateCount } = this.request;
    await this.#openBudget();
    const { parts, shard } = this.request;
    let item = { ...this.guessOn(parts), ...(shard !== undefined && { shard }) };
    const payments: CallPayment[] = [];
    for (let tries = 0; tries < triesMax && this.#writes < writesMaxOn(item); tries += 1) {
      const onPart = item.shardCount === 1 ? need : shareNeed(this.roomyNeed(item), item);
      const own = { ...onPart, budgetLeft: this.hold?.left };
      const lastTry = tries === triesMax - 1 || this.#writes === writesMaxOn(item) - 1;
      const payment = planReservation(own, item, { lastTry });
      if (isRefusal(payment)) {
        const { afterRefusal } = await import('./shards.ts');
        item = await afterRefusal(this, item, payment);
        continue;
      }
      if (this.hold && !(await this.hold.covers(payment.amount))) continue;
      const write = reserveWriteOf(this.request, { item, payment, need: own }, this.ports.clock.now());
      this.part = item.shard;
      this.#writes += 1;
      payments.push(payment);
      const reply = await this.backoff.until(() => this.#send(write));
      if (reply.item) this.#balances.saw(reply.item);
      if (reply.done) return this.#reservation({ entry: write.entry, payment, item: reply.item, rateCount });
      // Refused, but the id is open: an earlier try, whose reply was lost, was applied.
      const applied = reply.item?.open.get(need.id);
      if (applied) {
        // Perhaps not the last one, which was planned on another state: by its payment the upstream's limit is set.
        const isOfIt = ({ amount, slot }: CallPayment): boolean =>
          amount === applied.amount && (slot?.key ?? '') === applied.slot;
        const paid = payments.find(isOfIt) ?? payment;
        return this.#reservation({ entry: applied, payment: paid, item: undefined, rateCount });
      }
      const { afterRefusedWrite } = await import('./shards.ts');
      item = await afterRefusedWrite(this, item, reply.item);
    }
    const { contended } = await import('./reserve-refusals.ts');
    throw await contended(this, item);
  }

  sawSums(sums: QuotaItem, parts: number): void {
    this.#balances.sawSums(sums, parts);
  }

  roomyNeed({ shardCount: parts }: Pick<QuotaItem, 'shardCount'>): ReserveNeed {
    const { need, account } = this.request;
    return parts === 1
      ? need
      : { ...need, slots: listSlotsWithRoom(need.slots, this.#balances.of(account).plan) };
  }

  async #openBudget(): Promise<void> {
    const { budget } = this.request;
    if (!budget) return;
    const { BudgetHold } = await import('./budget-hold.ts');
    this.hold = new BudgetHold(this.ports.counters, this.reads, budget);
  }

  guessOn(parts?: number): QuotaItem {
    const { account, need } = this.request;
    const counter = need.metered ? drawCounter(need, this.ports.random.next()) : undefined;
    if (counter !== undefined) return createQuotaItem(account, counter);
    const sums = this.#balances.of(account, parts);
    if (sums.shardCount === 1) return sums;
    // A part without a share in a slot may have got room from another one.
    const plan = new Map(need.slots.map(({ key }) => [key, -1]));
    return { ...sums, plan, shard: pickShard(need, sums, this.ports.random.next()) };
  }

  async refusal(refusal: ReserveRefusal, whole: QuotaItem): Promise<Refusal> {
    if (isOfAccount(refusal)) this.#balances.sawRefusal(whole, refusal.reason === 'open_entries');
    if (refusal.reason === 'budget') refusal.isShared = this.hold?.isShared === true;
    return this.request.refused(refusal, whole);
  }

  #send(write: Parameters<QuotaStore['reserve']>[0]): ReturnType<QuotaStore['reserve']> {
    // An environment may resume from a freeze after the sweeper has closed an earlier try; a new try would then be
    // charged a second time.
    if (this.ports.clock.now() >= this.endMs)
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
const writesMaxOn = ({ shardCount: parts }: QuotaItem): number => (parts === 1 ? triesMax : partWritesMax);

/** @param need with the limits of this part */
function reserveWriteOf(
  { account, entry, budget, deadlineMs }: ReservationRequest,
  { item, payment, need }: { item: QuotaItem; payment: CallPayment; need: ReserveNeed },
  nowMs: number,
): ReserveWrite {
  const { key, id, maxConcurrency, accountConcurrency, accountRpm, accountTpm } = need;
  const { shardCount: parts, shard: part } = item;
  const counted = item.rate?.minute;
  // Another environment's clock may be ahead; its later minute is then used.
  const minute = Math.max(minuteOf(need.nowMs), counted ?? 0);
  const { slot, amount, balanceNeeded: atLeast } = payment;
  const { leases: lapsed, countOfKey: ofKey } = findExpiredLeases(need, item);
  const shares = [slot?.limit ?? undefined, maxConcurrency, accountConcurrency, accountRpm, accountTpm];
  const hasRate = accountRpm !== undefined || accountTpm !== undefined;
  return {
    account,
    shard: part,
    id,
    entry: {
      ...entry,
      until: leaseEnd(nowMs, hostDeadlineOf({ deadlineMs })),
      amount,
      slot: slot?.key ?? '',
      budget: amount > 0n ? budget?.counter.period : undefined,
      tombstone: false,
      ...(need.metered && { metered: true }),
    },
    balanceNeeded: atLeast,
    shardCount: shares.some((share) => share !== undefined) ? parts : undefined,
    expiredLeases: lapsed,
    openMax: accountConcurrency === undefined ? undefined : accountConcurrency + lapsed.size,
    slot,
    permit: maxConcurrency === undefined ? undefined : { key, max: maxConcurrency + ofKey },
    rate: hasRate
      ? {
          minute,
          max: accountRpm,
          tokensMax: accountTpm,
          tokens: need.estimate.inputTokens,
          starts: counted !== minute,
        }
      : undefined,
  };
}
