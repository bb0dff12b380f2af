import { emptyQuota, type CloseRecord, type OpenEntry, type QuotaItem } from '../../billing/quota-item.ts';
import type { CloseWrite, ReserveWrite } from '../../billing/quota-writes.ts';
import { isRefusal, planReserve, type Payment, type ReserveNeed } from '../../billing/reservation.ts';
import { Backoff } from './backoff.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/telemetry.ts';
import type { Random } from '../ports/ids.ts';
import type { ReturnedItem, QuotaStore } from '../ports/quota-store.ts';
import { QuotaGuesses } from './quota-guesses.ts';
import { refuse, type Refusal } from '../http/refusal.ts';

export interface BooksPorts {
  clock: Clock;
  random: Random;
  quotas: QuotaStore;
  log: Log;
}

/** What a call reserves: the need, and what its open entry says beside the amount. */
export interface ReservationRequest {
  account: string;
  need: ReserveNeed;
  entry: Omit<OpenEntry, 'amount' | 'slot'>;
  /** The words in which a refusal is told; `item` is the account's as it stood. */
  refused(plan: Exclude<ReturnType<typeof planReserve>, Payment>, item: QuotaItem): Refusal;
}

/** An open reservation, held by the call that made it. */
export interface Reservation {
  account: string;
  id: string;
  entry: OpenEntry;
  payment: Payment;
  returned: ReturnedItem | undefined;
  /** Tries of this reserve that may still be on their way: they must not open the id again when the call is over. */
  triesInFlight: number;
}

const triesMax = 4;
const reserveBudgetMs = 1_500;
const cancelBudgetMs = 1_500;
/** The host kills the invocation some seconds after the deadline; a settle has to be through by then. */
const settleBudgetMs = 4_000;

/**
 * The two-phase reservations: reserve before the upstream hears of a call, settle after its end. Which plan slot or amount
 * to try is guessed from the last that was seen of the account; only the store refuses, and a refusal shows the item on
 * which the next try is based.
 */
export class Reservations {
  readonly #ports: BooksPorts;
  readonly #guesses: QuotaGuesses;

  constructor(ports: BooksPorts) {
    this.#ports = ports;
    this.#guesses = new QuotaGuesses(ports.clock);
  }

  /** Throws a Refusal: what the caller is told, or 503 when the store cannot be reached. Then nothing is reserved. */
  async reserve(reservationRequest: ReservationRequest): Promise<Reservation> {
    const backoff = new Backoff(this.#ports, reserveBudgetMs);
    try {
      return await this.#tryReserve(reservationRequest, backoff);
    } catch (error) {
      await this.#guard(
        reservationRequest.account,
        reservationRequest.need.id,
        reservationRequest.entry,
        backoff.unknowns,
      );
      throw error;
    }
  }

  /** Closes a reservation, once however often it is called. A close that cannot be written is logged whole. */
  async close(reservation: Reservation, closeRecord: CloseRecord, releaseSlot: boolean): Promise<void> {
    const { account, id, entry } = reservation;
    const write: CloseWrite = { account, id, entry, releaseSlot, closeRecord };
    if (releaseSlot) this.#guesses.gaveBack(account, entry.slot);
    const backoff = new Backoff(this.#ports, settleBudgetMs);
    try {
      const reply = await backoff.until(() => this.#ports.quotas.close(write));
      if (!reply.done && !isOwn(reply.item?.last, closeRecord)) {
        // After an unknown outcome the close may have been this one, and another call's the last.
        const unsure = backoff.unknowns > 0 || undefined;
        this.#ports.log.event('settle_late', { ...lossOf(write), unsure });
      }
    } catch (error) {
      this.#ports.log.event('settle_lost', lossOf(write));
      this.#ports.log.fault(id, error);
      return;
    }
    await this.#guard(account, id, entry, reservation.triesInFlight);
  }

  async #tryReserve(reservationRequest: ReservationRequest, backoff: Backoff): Promise<Reservation> {
    const { account, need } = reservationRequest;
    let item = this.#guesses.of(account);
    for (let tries = 0; tries < triesMax; tries += 1) {
      const payment = planReserve(need, item);
      if (isRefusal(payment)) throw reservationRequest.refused(payment, item);
      const write = writeOf(reservationRequest, payment, item);
      const reply = await backoff.until(() => this.#sendReserve(write));
      if (reply.done) {
        this.#guesses.sawWrite(write, reply.returned);
        const { returned } = reply;
        return {
          account,
          id: need.id,
          entry: write.entry,
          payment,
          returned,
          triesInFlight: backoff.unknowns,
        };
      }
      // Not done, but open under this id: an earlier try, whose reply was lost, had landed.
      const landed = reply.item?.open.get(need.id);
      const triesInFlight = backoff.unknowns - 1;
      if (landed) return { account, id: need.id, entry: landed, payment, returned: undefined, triesInFlight };
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
   * An environment that stood still may come back when an earlier try of it has expired: what it opened now would be
   * charged a second time.
   */
  #sendReserve(write: ReserveWrite): ReturnType<QuotaStore['reserve']> {
    if (this.#ports.clock.now() >= write.entry.until * 1000)
      throw refuse('unavailable', 'The request ran out of time before it could start; try again.', {
        headers: { 'retry-after': '1' },
        reason: 'reserve_out_of_time',
      });
    return this.#ports.quotas.reserve(write);
  }

  /** Closes what landed of a reserve's tries, and takes their id, so that those still in flight fail. */
  async #guard(
    account: string,
    id: string,
    entry: ReservationRequest['entry'],
    triesInFlight: number,
  ): Promise<void> {
    const { quotas, clock, log } = this.#ports;
    const tombstone: OpenEntry = { ...entry, amount: 0n, input: 0n, slot: '', busy: false, tombstone: true };
    const backoff = new Backoff(this.#ports, cancelBudgetMs);
    try {
      for (let inFlight = triesInFlight; inFlight > 0; inFlight -= 1) {
        const reply = await backoff.until(() => quotas.tombstone(account, id, tombstone));
        const landed = reply.done ? undefined : reply.item?.open.get(id);
        if (!landed || landed.tombstone) return;
        const closeRecord: CloseRecord = {
          id,
          kind: 'released',
          charge: 0n,
          at: Math.floor(clock.now() / 1000),
        };
        await backoff.until(() =>
          quotas.close({ account, id, entry: landed, releaseSlot: true, closeRecord }),
        );
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
  // Another environment's clock may be ahead: then its minute is the one that counts.
  const minute = Math.max(need.minute, counted ?? 0);
  return {
    account,
    id: need.id,
    entry: { ...entry, amount: payment.amount, slot: payment.slot?.key ?? '' },
    slot: payment.slot,
    busy: maxConcurrency === undefined ? undefined : { key, max: maxConcurrency },
    rate: rpm === undefined ? undefined : { key, minute, max: rpm, starts: counted !== minute },
  };
}

/** Whether a repeat found its own first try done; a sweeper that came before it closes under another kind. */
const isOwn = (last: CloseRecord | undefined, own: CloseRecord): boolean =>
  last?.id === own.id && last.kind === own.kind;

/** Everything that `ops audit --repair` needs to write the close again. Amounts in nano-yuan. */
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
  estimated: closeRecord.estimated,
  end: closeRecord.end,
  cost_nano: closeRecord.cost === undefined ? undefined : String(closeRecord.cost),
});
