import { emptyQuota, type Journal, type OpenEntry, type QuotaItem } from '../billing/quota-item.ts';
import type { CloseWrite, ReserveWrite } from '../billing/quota-writes.ts';
import { isRefusal, planReserve, type Payment, type ReserveNeed } from '../billing/reserve-plan.ts';
import { Patience } from './patience.ts';
import type { Clock, Log, Random } from './ports.ts';
import type { QuotaSight, QuotaStore } from './quota-store.ts';
import { QuotaGuesses } from './quota-guesses.ts';
import { refuse, type Refusal } from './refusal.ts';

export interface BooksPorts {
  clock: Clock;
  random: Random;
  quotas: QuotaStore;
  log: Log;
}

/** What a call reserves: the need, and what its open entry says beside the amount. */
export interface Booking {
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
  sight: QuotaSight | undefined;
  /** Tries of this reserve that may still be on their way: they must not open the id again when the call is over. */
  triesAfloat: number;
}

const triesMax = 4;
const reserveBudgetMs = 1_500;
const cancelBudgetMs = 1_500;
/** The host kills the invocation some seconds after the deadline; a settle has to be through by then. */
const settleBudgetMs = 4_000;

/**
 * The two-phase books: reserve before the upstream hears of a call, settle after its end. Which plan slot or amount
 * to try is guessed from the last that was seen of the account; only the store refuses, and a refusal shows the item on
 * which the next try is based.
 */
export class Books {
  readonly #ports: BooksPorts;
  readonly #guesses: QuotaGuesses;

  constructor(ports: BooksPorts) {
    this.#ports = ports;
    this.#guesses = new QuotaGuesses(ports.clock);
  }

  /** Throws a Refusal: what the caller is told, or 503 when the store cannot be reached. Then nothing is reserved. */
  async reserve(booking: Booking): Promise<Reservation> {
    const patience = new Patience(this.#ports, reserveBudgetMs);
    try {
      return await this.#tryReserve(booking, patience);
    } catch (error) {
      await this.#guard(booking.account, booking.need.id, booking.entry, patience.unknowns);
      throw error;
    }
  }

  /** Closes a reservation, once however often it is called. A close that cannot be written is logged whole. */
  async close(reservation: Reservation, journal: Journal, giveBack: boolean): Promise<void> {
    const { account, id, entry } = reservation;
    const write: CloseWrite = { account, id, entry, giveBack, journal };
    if (giveBack) this.#guesses.gaveBack(account, entry.slot);
    const patience = new Patience(this.#ports, settleBudgetMs);
    try {
      const reply = await patience.until(() => this.#ports.quotas.close(write));
      if (!reply.done && !isOwn(reply.item?.last, journal)) {
        // After an unknown outcome the close may have been this one, and another call's the last.
        const unsure = patience.unknowns > 0 || undefined;
        this.#ports.log.event('settle_late', { ...lossOf(write), unsure });
      }
    } catch (error) {
      this.#ports.log.event('settle_lost', lossOf(write));
      this.#ports.log.fault(id, error);
      return;
    }
    await this.#guard(account, id, entry, reservation.triesAfloat);
  }

  async #tryReserve(booking: Booking, patience: Patience): Promise<Reservation> {
    const { account, need } = booking;
    let item = this.#guesses.of(account);
    for (let tries = 0; tries < triesMax; tries += 1) {
      const payment = planReserve(need, item);
      if (isRefusal(payment)) throw booking.refused(payment, item);
      const write = writeOf(booking, payment, item);
      const reply = await patience.until(() => this.#sendReserve(write));
      if (reply.done) {
        this.#guesses.sawWrite(write, reply.sight);
        const { sight } = reply;
        return { account, id: need.id, entry: write.entry, payment, sight, triesAfloat: patience.unknowns };
      }
      // Not done, but open under this id: an earlier try, whose reply was lost, had landed.
      const landed = reply.item?.open.get(need.id);
      const triesAfloat = patience.unknowns - 1;
      if (landed) return { account, id: need.id, entry: landed, payment, sight: undefined, triesAfloat };
      item = reply.item ?? emptyQuota(account);
      if (!reply.item && !isRefusal(planReserve(need, item)))
        await patience.until(() => this.#ports.quotas.create(account));
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

  /** Closes what landed of a reserve's tries, and takes their id, so that those still afloat fail. */
  async #guard(account: string, id: string, entry: Booking['entry'], triesAfloat: number): Promise<void> {
    const { quotas, clock, log } = this.#ports;
    const tombstone: OpenEntry = { ...entry, amount: 0n, input: 0n, slot: '', busy: false, tombstone: true };
    const patience = new Patience(this.#ports, cancelBudgetMs);
    try {
      for (let afloat = triesAfloat; afloat > 0; afloat -= 1) {
        const reply = await patience.until(() => quotas.tombstone(account, id, tombstone));
        const landed = reply.done ? undefined : reply.item?.open.get(id);
        if (!landed || landed.tombstone) return;
        const journal: Journal = { id, kind: 'released', charge: 0n, at: Math.floor(clock.now() / 1000) };
        await patience.until(() => quotas.close({ account, id, entry: landed, giveBack: true, journal }));
      }
    } catch {
      log.event('reserve_unknown', { request_id: id, account });
    }
  }
}

function writeOf({ account, need, entry }: Booking, payment: Payment, item: QuotaItem): ReserveWrite {
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
const isOwn = (last: Journal | undefined, own: Journal): boolean =>
  last?.id === own.id && last.kind === own.kind;

/** Everything that `ops audit --repair` needs to write the close again. Amounts in nano-yuan. */
const lossOf = ({ account, id, giveBack, journal }: CloseWrite): Record<string, unknown> => ({
  request_id: id,
  account,
  give_back: giveBack,
  kind: journal.kind,
  charge_nano: String(journal.charge),
  at: journal.at,
  endpoint: journal.endpoint,
  prompt_tokens: journal.promptTokens,
  completion_tokens: journal.completionTokens,
  estimated: journal.estimated,
  end: journal.end,
  cost_nano: journal.cost === undefined ? undefined : String(journal.cost),
});
