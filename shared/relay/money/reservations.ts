/**
 * Reserves money for a call, then closes the reservation exactly once. No upstream may be called before the
 * reserve is written.
 */
import { emptyQuota, type CloseRecord, type OpenEntry, type QuotaItem } from '../../billing/quota-item.ts';
import type { CloseWrite, ReserveWrite } from '../../billing/quota-writes.ts';
import {
  isRefusal,
  planReserve,
  type Payment,
  type ReserveNeed,
  type ReserveRefusal,
} from '../../billing/reservation.ts';
import { Backoff } from './backoff.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/telemetry.ts';
import type { Random } from '../ports/ids.ts';
import type { ReturnedItem, QuotaStore } from '../ports/stores/quota-store.ts';
import { QuotaGuesses } from './quota-guesses.ts';
import { refuse, type Refusal } from '../http/refusal.ts';

export interface ReservationsPorts {
  clock: Clock;
  random: Random;
  quotas: QuotaStore;
  log: Log;
}

/** What a call reserves: the need, and the other fields of its open entry. */
export interface ReservationRequest {
  account: string;
  need: ReserveNeed;
  entry: Omit<OpenEntry, 'amount' | 'slot'>;
  /** The refusal that the caller gets. `item`: the account's item at that time. */
  refused(reason: ReserveRefusal, item: QuotaItem): Refusal;
}

/** A finished reserve, with its tries that may still be applied. */
type GuardedReserve = Pick<Reservation, 'account' | 'id' | 'triesInFlight'> &
  Pick<ReservationRequest, 'entry'>;

/** An open reservation, held by the call that made it. */
export interface Reservation {
  account: string;
  id: string;
  entry: OpenEntry;
  payment: Payment;
  returned: ReturnedItem | undefined;
  /**
   * Number of tries of this reserve that may still be in flight. They must not reopen the id after the call.
   */
  triesInFlight: number;
}

const triesMax = 4;
const reserveBudgetMs = 1_500;
const cancelBudgetMs = 1_500;
/** A settle must finish before the host kills the invocation, some seconds after the deadline. */
const settleBudgetMs = 4_000;

/**
 * Reserves before the upstream is called and settles after the end. The first try uses a guess of the
 * account's state. Only the store can refuse it; the refusal returns the item, which the next try uses.
 */
export class Reservations {
  readonly #ports: ReservationsPorts;
  readonly #guesses: QuotaGuesses;

  constructor(ports: ReservationsPorts) {
    this.#ports = ports;
    this.#guesses = new QuotaGuesses(ports.clock);
  }

  /**
   * Throws a Refusal, or StoreUnavailable when the store does not answer. Nothing then stays reserved, unless
   * the event `reserve_unknown` is logged.
   */
  async reserve(request: ReservationRequest): Promise<Reservation> {
    const backoff = new Backoff(this.#ports, reserveBudgetMs);
    try {
      return await this.#tryReserve(request, backoff);
    } catch (error) {
      const { account, need, entry } = request;
      await this.#guard({ account, id: need.id, entry, triesInFlight: backoff.unknowns });
      throw error;
    }
  }

  /**
   * Closes a reservation. Repeated calls close it once. Logs all fields of a close that cannot be written.
   */
  async close(reservation: Reservation, closeRecord: CloseRecord, releaseSlot: boolean): Promise<void> {
    const { account, id, entry } = reservation;
    const write: CloseWrite = { account, id, entry, releaseSlot, closeRecord };
    if (releaseSlot) this.#guesses.slotReleased(account, entry.slot);
    const backoff = new Backoff(this.#ports, settleBudgetMs);
    try {
      const reply = await backoff.until(() => this.#ports.quotas.close(write));
      if (!reply.done && !isOwn(reply.item?.last, closeRecord)) {
        // After an unknown outcome, an earlier try may have closed it, followed by another call's close in
        // `last`.
        const unsure = backoff.unknowns > 0 || undefined;
        this.#ports.log.event('settle_late', { ...lossOf(write), unsure });
      }
    } catch (error) {
      this.#ports.log.event('settle_lost', lossOf(write));
      this.#ports.log.fault(id, error);
      return;
    }
    await this.#guard(reservation);
  }

  async #tryReserve(request: ReservationRequest, backoff: Backoff): Promise<Reservation> {
    const { account, need } = request;
    let item = this.#guesses.of(account);
    for (let tries = 0; tries < triesMax; tries += 1) {
      const payment = planReserve(need, item, { lastTry: tries === triesMax - 1 });
      if (isRefusal(payment)) throw request.refused(payment, item);
      const write = writeOf(request, payment, item);
      const reply = await backoff.until(() => this.#sendReserve(write));
      if (reply.done) {
        this.#guesses.sawWrite(write, reply.returned);
        const { entry } = write;
        const { returned } = reply;
        return { account, id: need.id, entry, payment, returned, triesInFlight: backoff.unknowns };
      }
      // Refused, but the id is open: an earlier try, whose reply was lost, was applied.
      const applied = reply.item?.open.get(need.id);
      const triesInFlight = backoff.unknowns - 1;
      if (applied)
        return { account, id: need.id, entry: applied, payment, returned: undefined, triesInFlight };
      item = reply.item ?? emptyQuota(account);
      if (!reply.item && !isRefusal(planReserve(need, item)))
        await backoff.until(() => this.#ports.quotas.create(account));
      this.#guesses.sawItem(item);
    }
    throw refuse('unavailable', 'The account is very busy at the moment. Nothing was charged; try again.', {
      headers: { 'retry-after': '1' },
      reason: 'reserve_contended',
    });
  }

  /**
   * Throws when the entry has expired. An environment may resume from a freeze after the sweeper has closed
   * an earlier try; a new try would then be charged a second time.
   */
  #sendReserve(write: ReserveWrite): ReturnType<QuotaStore['reserve']> {
    if (this.#ports.clock.now() >= write.entry.until * 1000)
      throw refuse('unavailable', 'The request ran out of time before it could start; try again.', {
        headers: { 'retry-after': '1' },
        reason: 'reserve_out_of_time',
      });
    return this.#ports.quotas.reserve(write);
  }

  /**
   * Closes any applied try of a reserve, and puts a tombstone under its id, so that tries still in flight
   * fail.
   */
  async #guard({ account, id, entry, triesInFlight }: GuardedReserve): Promise<void> {
    const { quotas, clock, log } = this.#ports;
    const tombstone: OpenEntry = { ...entry, amount: 0n, input: 0n, slot: '', busy: false, tombstone: true };
    const backoff = new Backoff(this.#ports, cancelBudgetMs);
    try {
      for (let inFlight = triesInFlight; inFlight > 0; inFlight -= 1) {
        const reply = await backoff.until(() => quotas.tombstone(account, id, tombstone));
        const applied = reply.done ? undefined : reply.item?.open.get(id);
        if (!applied || applied.tombstone) return;
        const at = Math.floor(clock.now() / 1000);
        const closeRecord: CloseRecord = { id, kind: 'released', charge: 0n, at };
        const close = { account, id, entry: applied, releaseSlot: true, closeRecord };
        await backoff.until(() => quotas.close(close));
      }
    } catch {
      log.event('reserve_unknown', { request_id: id, account });
    }
  }
}

function writeOf(
  { account, need, entry }: ReservationRequest,
  payment: Payment,
  item: QuotaItem,
): ReserveWrite {
  const { key, maxConcurrency, rpm } = need;
  const counted = item.rate.get(key)?.minute;
  // Another environment's clock may be ahead; its later minute is then used.
  const minute = Math.max(need.minute, counted ?? 0);
  return {
    account,
    id: need.id,
    entry: { ...entry, amount: payment.amount, slot: payment.slot?.key ?? '' },
    atLeast: payment.atLeast,
    slot: payment.slot,
    busy: maxConcurrency === undefined ? undefined : { key, max: maxConcurrency },
    rate: rpm === undefined ? undefined : { key, minute, max: rpm, starts: counted !== minute },
  };
}

/** Whether the last close is this call's own earlier try. A close by the sweeper has another kind. */
const isOwn = (last: CloseRecord | undefined, own: CloseRecord): boolean =>
  last?.id === own.id && last.kind === own.kind;

/** All fields that `ops audit --repair` needs to write the close again. Amounts in nano-yuan. */
const lossOf = ({ account, id, releaseSlot, closeRecord }: CloseWrite): Record<string, unknown> => ({
  request_id: id,
  account,
  give_back: releaseSlot,
  kind: closeRecord.kind,
  charge_nano: String(closeRecord.charge),
  at: closeRecord.at,
  endpoint: closeRecord.endpoint,
  prompt_tokens: closeRecord.promptTokens,
  completion_tokens: closeRecord.completionTokens,
  ...closeRecord.cache,
  estimated: closeRecord.estimated,
  end: closeRecord.end,
  cost_nano: closeRecord.cost === undefined ? undefined : String(closeRecord.cost),
  channel: closeRecord.channel,
  upstream_model: closeRecord.upstreamModel,
  first_content_ms: closeRecord.firstContentMs,
  bought_nano: closeRecord.bought === undefined ? undefined : String(closeRecord.bought),
  flag: closeRecord.flag,
  price: closeRecord.price,
});
