/**
 * Caches the last known state of accounts to choose the first try of a reserve. Must never decide a refusal.
 */
import { emptyQuota, type QuotaItem } from '../../billing/quota-item.ts';
import type { ReserveWrite } from '../../billing/quota-writes.ts';
import type { Clock } from '../ports/clock.ts';
import type { ReturnedItem } from '../ports/stores/quota-store.ts';

const accountsMax = 1_000;
/** Maximum age of a guess. A slot that another environment released is tried again within this time. */
const trustedMs = 10_000;
const endlessBalance = 10n ** 30n;

interface Guess {
  seenMs: number;
  item: QuotaItem;
}

/**
 * Remembers, for each account, the last known plan slot counts and rate minute. A guess never refuses a call
 * or lowers a limit. Its balance is unlimited, because a balance read during other calls is too low once they
 * settle.
 */
export class QuotaGuesses {
  readonly #clock: Clock;
  readonly #guesses = new Map<string, Guess>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  of(account: string): QuotaItem {
    const guess = this.#guesses.get(account);
    return guess && this.#trusted(guess) ? guess.item : guessed(account);
  }

  /** Remembers an item that the store returned. */
  sawItem(item: QuotaItem): void {
    const plan = new Map(item.plan);
    const rate = new Map([...item.rate].map(([key, { minute }]) => [key, { minute, count: 0 }]));
    this.#keep({ ...guessed(item.account), plan, rate }, this.#clock.now());
  }

  /**
   * Remembers what an applied write returned. Other slots keep their known counts, and the guess keeps its
   * age.
   */
  sawWrite({ account, slot, rate }: ReserveWrite, { slotCount }: ReturnedItem): void {
    const kept = this.#guesses.get(account);
    const known = kept && this.#trusted(kept) ? kept : { seenMs: this.#clock.now(), item: guessed(account) };
    const plan = new Map(known.item.plan);
    const rates = new Map(known.item.rate);
    if (slot) plan.set(slot.key, slotCount ?? 0);
    if (rate) rates.set(rate.key, { minute: rate.minute, count: 0 });
    this.#keep({ ...known.item, plan, rate: rates }, known.seenMs);
  }

  /** Forgets the count of a slot that was released. */
  slotReleased(account: string, slotKey: string): void {
    this.#guesses.get(account)?.item.plan.delete(slotKey);
  }

  #trusted({ seenMs }: Guess): boolean {
    return this.#clock.now() - seenMs < trustedMs;
  }

  #keep(item: QuotaItem, seenMs: number): void {
    this.#guesses.delete(item.account);
    this.#guesses.set(item.account, { seenMs, item });
    const oldest = this.#guesses.keys().next();
    if (this.#guesses.size > accountsMax && !oldest.done) this.#guesses.delete(oldest.value);
  }
}

const guessed = (account: string): QuotaItem => ({ ...emptyQuota(account), available: endlessBalance });
