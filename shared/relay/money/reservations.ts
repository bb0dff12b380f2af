/**
 * Reserves money for a call, then closes the reservation exactly once. No upstream may be called before the
 * reserve is written.
 */
import {
  createQuotaItem,
  type CloseRecord,
  type CloseWrite,
  type QuotaItem,
} from '../../billing/quota-item.ts';
import { isOfAccount, isRefusal, minuteOf, planReservation } from '../../billing/reservation.ts';
import { firstCounter } from '../../billing/shares.ts';
import { keepNewest } from '../../wire/keep-newest.ts';
import { Refusal } from '../http/refusal.ts';
import { StoreBusy, tryMsMax } from '../ports/store-errors.ts';
import type { WriteReply } from '../ports/money-stores.ts';
import { Backoff, retry } from '../retry.ts';
import { BudgetHolds } from './budget-hold.ts';
import { CachedBalances } from './cached-balances.ts';
import type { GuardedReserve } from './late-writes.ts';
import {
  nameBudget,
  type Reservation,
  type ReservationRequest,
  type ReservationsPorts,
  type ReserveFailure,
} from './open-reservation.ts';
import {
  computeLeaseEnd,
  renewEveryMs,
  tryToReserve,
  type FailedReserve,
  type ReserveOutcome,
} from './reserve-tries.ts';

/** For a settle after the host's deadline: a frozen environment has resumed. */
const lateSettleBudgetMs = 4_000;
const countBudgetMs = 1_500;
/** Between the tries of a call that can wait. */
const waitPauseMs = 1_000;
/** For writes that may be repeated for long: a settle, a cancel. */
const longPauseMsMax = 1_000;
const renewBudgetMs = 30_000;
/** For blocking tries of a reserve that may still be applied, beside a known one. */
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
    const again = this.repeatRefusal(request);
    if (again) throw await again;
    const { account, need, rpm } = request;
    const { key, searchRpm } = need;
    const minute = minuteOf(need.nowMs);
    let count: number | undefined;
    if (rpm !== undefined) {
      count = await this.#countInMinute(key, minute, rpm);
      if (count === undefined) {
        keepNewest(this.#fullMinutes, fullMinutesMax, key, { minute, rpm });
        throw await request.createRefusal({ reason: 'rate' }, createQuotaItem(account));
      }
    }
    const name = `searches-${key}`;
    if (searchRpm !== undefined && (await this.#countInMinute(name, minute, searchRpm)) === undefined)
      throw await request.createRefusal({ reason: 'search_rate' }, createQuotaItem(account));
    return count;
  }

  /** Returns nothing if the minute is full. */
  #countInMinute(name: string, minute: number, most: number): Promise<number | undefined> {
    const { counters, repeats } = this.#ports;
    const backoff = new Backoff(this.#ports, countBudgetMs, { repeats });
    return backoff.until(() => counters.countCall(name, minute, most));
  }

  /** True if `repeatRefusal` could refuse a call. `key` is the name in counters. */
  mayRefuse(account: string, key: string): boolean {
    return this.#balances.refusalOf(account) !== undefined || this.#fullMinutes.has(key);
  }

  /** Repeats a recent refusal of the account, or of the key in this minute, without a write. */
  repeatRefusal(request: ReservationRequest): Promise<Refusal> | undefined {
    const { account, need, rpm } = request;
    const full = this.#fullMinutes.get(need.key);
    const isCounted = request.rateCount !== undefined;
    if (!isCounted && full?.minute === minuteOf(need.nowMs) && full.rpm === rpm)
      return request.createRefusal({ reason: 'rate' }, createQuotaItem(account));
    const sums = this.#balances.refusalOf(account);
    const again = sums && planReservation(need, sums);
    return sums && again && isRefusal(again) && isOfAccount(again)
      ? request.createRefusal(again, sums)
      : undefined;
  }

  /**
   * Throws the Refusal of a call that the account cannot pay, before work is done for it. Reads the balance where what is known of it
   * does not pay; takes nothing.
   * @param isFresh reads balance, limits and the key's budget in any case
   */
  async prove(request: ReservationRequest, isFresh = false): Promise<void> {
    const again = this.repeatRefusal(request);
    if (again) throw await again;
    const { account } = request;
    let { need } = request;
    const known = this.#balances.findStored(account) ?? createQuotaItem(account);
    if (!isFresh && !isRefusal(planReservation(need, known))) return;
    const holds = new BudgetHolds(this.#ports.counters, new Backoff(this.#ports, countBudgetMs), request);
    if (isFresh) await holds.readUse();
    const tightest = isFresh ? holds.tightest : undefined;
    if (tightest) need = { ...need, budgetLeft: tightest.left };
    const { readSums } = await import('./shards.ts');
    // An image that is a second old may pay. It must not say that an account has no money.
    for (const exact of isFresh ? [true] : [false, true]) {
      const sums = await readSums(this.#ports, request, exact);
      const plan = planReservation(need, sums);
      if (isRefusal(plan) && exact) throw await this.createRefusal(request, nameBudget(plan, tightest), sums);
      if (!isRefusal(plan)) return this.#balances.storeSums(sums, sums.shards?.[0].shardCount ?? 1);
    }
  }

  /** The refusal of a call by the sums of its account, which is remembered unless it is the key's own. */
  createRefusal(request: ReservationRequest, refusal: ReserveFailure, sums: QuotaItem): Promise<Refusal> {
    if (isOfAccount(refusal)) this.#balances.keepRefusal(sums, refusal.reason === 'open_entries');
    return request.createRefusal(refusal, sums);
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
      try {
        return await this.#reserveNow({ ...request, need: now, holdName: `${need.id}.${tries}` });
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
    const again = this.repeatRefusal(request);
    if (again) throw await again;
    const { account } = request;
    const mustWait = (): boolean => this.#settling.has(account);
    const outcome = await tryToReserve(this.#ports, request, { balances: this.#balances, mustWait });
    if ('reservation' in outcome)
      return { ...outcome.reservation, besides: this.#splitIfBusy(outcome, request.need) };
    const { failed } = outcome;
    const work = this.#cancel(failed);
    // The caller does not wait for a store that does not answer.
    if (failed.triesInFlight > 0) this.#cancelling.set(request.need.id, work);
    else await work;
    throw failed.error;
  }

  /** Resolves when what a refused reserve may have left is cancelled, or never will be. To be asked once. Never rejects. */
  async awaitCancel(requestId: string): Promise<void> {
    const work = this.#cancelling.get(requestId);
    this.#cancelling.delete(requestId);
    await work;
  }

  /** Renews the lease of a reservation until the signal aborts. Never throws. */
  async renewUntil(reservation: Reservation, signal: AbortSignal): Promise<void> {
    const { clock, quotas, log } = this.#ports;
    const { account, shard, id, entry, hostDeadlineMs } = reservation;
    for (;;) {
      await clock.sleep(renewEveryMs, signal);
      if (signal.aborted || clock.now() >= hostDeadlineMs) return;
      const backoff = new Backoff(this.#ports, renewBudgetMs);
      try {
        const reply = await backoff.until(async () =>
          signal.aborted
            ? { done: false }
            : quotas.renew({
                account,
                shard,
                id,
                entry,
                until: computeLeaseEnd(clock.now(), hostDeadlineMs),
              }),
        );
        // Closed by the sweeper: the settle finds that out.
        if (!reply.done) return;
      } catch (error) {
        log.fault(id, error);
      }
    }
  }

  /** Moves the end (in Unix seconds) of a lease that no invocation renews. */
  async moveLeaseEnd({ account, shard, id, entry }: Reservation, until: number): Promise<void> {
    await retry(this.#ports, () => this.#ports.quotas.renew({ account, shard, id, entry, until }));
  }

  /** Closes a reservation. Repeated calls close it once. Logs all fields of a close that cannot be written. */
  async close(reservation: Reservation, closeRecord: CloseRecord, releaseSlot: boolean): Promise<void> {
    const { account, shard, id, entry } = reservation;
    const rateTokens = reservation.countsTokens ? closeRecord.completion_tokens : undefined;
    const write: CloseWrite = { account, shard, id, entry, releaseSlot, closeRecord, rateTokens };
    this.#balances.noteClose(account, releaseSlot ? entry.slot : '');
    const leftMs = reservation.hostDeadlineMs - this.#ports.clock.now();
    // The last try must have ended, and its failure been logged, before the host kills.
    const budgetMs = leftMs > 0 ? leftMs - tryMsMax : lateSettleBudgetMs;
    const backoff = new Backoff(this.#ports, budgetMs, { pauseMsMax: longPauseMsMax });
    try {
      const reply = await this.#settle(write, backoff);
      // After an unknown outcome, an earlier try may have closed it, followed by another call's close in `last`.
      if (!reply.done && !isOwn(reply.item?.last, closeRecord)) {
        const { settleLate } = await import('./late-writes.ts');
        await settleLate(this.#ports, write, backoff, reservation.isShared);
      }
    } catch (error) {
      const { formatLoss } = await import('../../billing/audit/loss-lines.ts');
      this.#ports.log.event('settle_lost', formatLoss(write));
      this.#ports.log.fault(id, error);
      return;
    }
    await this.#guard(reservation, guardBudgetMs);
    await this.#joinIfQuiet(reservation);
    await reservation.besides;
  }

  /** Only some of the calls that see a busy shard try to split it: each image has another number of entries. */
  #splitIfBusy(
    { reservation: { item }, throttled }: Extract<ReserveOutcome, { reservation: Reservation }>,
    need: ReservationRequest['need'],
  ): Promise<void> | undefined {
    if (!item || item.shard >= firstCounter) return undefined;
    const isThrottled = throttled > 0 && item.open.size > 2 && this.#ports.random.next() < 0.25;
    const isBusy = item.open.size > 8 && (item.open.size - 9) % 4 === 0;
    if (!isBusy && !isThrottled) return undefined;
    const work = import('./shards.ts').then(({ splitShards }) =>
      splitShards(this.#ports, { item, need, throttled: isThrottled }),
    );
    return work.catch((error: unknown) => this.#ports.log.fault(need.id, error));
  }

  /** Joins the shards after a quarter of the calls that were alone in theirs, because such an account may be quiet. */
  async #joinIfQuiet({ id, item }: Reservation): Promise<void> {
    if (!item || item.shardCount === 1 || item.open.size > 1 || this.#ports.random.next() >= 0.25) return;
    try {
      const { joinShards } = await import('./shards.ts');
      await joinShards(this.#ports, item);
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
  async #cancel({ request, triesInFlight, shard, holds, endMs }: FailedReserve): Promise<void> {
    const { clock, log } = this.#ports;
    const { account, need, entry } = request;
    const reserve = { account, shard, id: need.id, entry, triesInFlight };
    const mayTakeLong = triesInFlight > 0 && this.#longCancels < longCancelsMax;
    this.#longCancels += Number(mayTakeLong);
    const wholeMs = Math.max(guardBudgetMs, endMs - clock.now() - tryMsMax);
    const nothingOpened = await (
      mayTakeLong ? this.#guard(reserve, wholeMs, longPauseMsMax) : this.#guard(reserve, guardBudgetMs)
    ).finally(() => {
      this.#longCancels -= Number(mayTakeLong);
    });
    // If a try may have expired by now, the projector returns the budget.
    if (!nothingOpened || (triesInFlight > 0 && clock.now() >= endMs)) return;
    await holds.reduceTo(0n).catch((error: unknown) => log.fault(need.id, error));
  }

  /** Ends the tries of a reserve that may still be applied. Returns whether none was and none will be. */
  async #guard(reserve: GuardedReserve, budgetMs: number, pauseMsMax?: number): Promise<boolean> {
    if (reserve.triesInFlight === 0) return true;
    const { guardReserve } = await import('./late-writes.ts');
    // The sweeper closes what a short one leaves.
    const bounds = pauseMsMax === undefined ? { repeats: this.#ports.repeats } : { pauseMsMax };
    return guardReserve(this.#ports, reserve, new Backoff(this.#ports, budgetMs, bounds));
  }
}

/** True if the last settle is this call's own earlier try; one by the sweeper has another kind. */
const isOwn = (last: CloseRecord | undefined, own: CloseRecord): boolean =>
  last?.id === own.id && last.kind === own.kind;
