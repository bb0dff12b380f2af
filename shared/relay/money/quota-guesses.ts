/** What was last seen of accounts, to choose the first try of a reserve. Never decides a refusal. */
import { emptyQuota, type QuotaItem } from '../../billing/quota-item.ts';
import type { ReserveWrite } from '../../billing/quota-writes.ts';
import type { Clock } from '../ports/clock.ts';
import type { ReturnedItem } from '../ports/quota-store.ts';

const accountsMax = 1_000;
/** As for an edit of the tables: a slot that another environment released is seen within this time. */
const trustedMs = 10_000;
const endlessBalance = 10n ** 30n;

interface Guess {
  seenMs: number;
  item: QuotaItem;
}

/**
 * What to try first for an account: which plan slots were full and which rate minute runs, as last seen here. A guess
 * never refuses and never lowers a limit: its balance is endless, because a balance seen while calls ran is too low as
 * soon as they are settled.
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

  /** The whole item as the store showed it. */
  sawItem(item: QuotaItem): void {
    const plan = new Map(item.plan);
    const rate = new Map([...item.rate].map(([key, { minute }]) => [key, { minute, count: 0 }]));
    this.#keep({ ...guessed(item.account), plan, rate }, this.#clock.now());
  }

  /** What a write that was applied returned: other slots keep what is known of them, and for no longer than before. */
  sawWrite({ account, slot, rate }: ReserveWrite, { slotCount }: ReturnedItem): void {
    const kept = this.#guesses.get(account);
    const known = kept && this.#trusted(kept) ? kept : { seenMs: this.#clock.now(), item: guessed(account) };
    const plan = new Map(known.item.plan);
    const rates = new Map(known.item.rate);
    if (slot) plan.set(slot.key, slotCount ?? 0);
    if (rate) rates.set(rate.key, { minute: rate.minute, count: 0 });
    this.#keep({ ...known.item, plan, rate: rates }, known.seenMs);
  }

  /** A slot has room again. */
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
