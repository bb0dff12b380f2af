/**
 * Caches the last known state of accounts to choose the first try of a reserve. Must never decide a refusal,
 * but for a second after one.
 */
import { emptyQuota, type QuotaItem } from '../../billing/quota-item.ts';
import type { Clock } from '../ports/clock.ts';

const accountsMax = 1_000;
/** Maximum age of a guess. A slot that another environment released is tried again within this time. */
const trustedMs = 10_000;
/** How long the number of parts is trusted that was read in an image: as long as one that was read with a key. */
const partsTrustedMs = 30_000;
/** A need that was refused is refused again without a write within this time. */
const refusedMs = 1_000;
/** The balance of a guess. */
export const endlessBalance = 10n ** 30n;

interface Guess {
  seenMs: number;
  item: QuotaItem;
  /** When the counts of plan slots and the rate minutes were seen. */
  countsMs: number;
  /** What refused a call. */
  refused?: Refused | undefined;
}

interface Refused {
  seenMs: number;
  /** The sums of the account at that time. */
  item: QuotaItem;
  /** A place was missing, which is free in a moment; else money, or room in a minute. */
  passing: boolean;
  /** The next calls are refused by these sums. */
  holds: boolean;
}

/**
 * Remembers, for each account, the number of its parts and the last known plan slot counts and rate minute. A
 * guess never refuses a call or lowers a limit. Its balance is unlimited, because a balance read during other
 * calls is too low once they settle.
 */
export class QuotaGuesses {
  readonly #clock: Clock;
  readonly #guesses = new Map<string, Guess>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The account's sums. @param parts their number as read with the key */
  of(account: string, parts = 1): QuotaItem {
    const guess = this.#guesses.get(account);
    if (!guess || !this.#isYounger(guess.seenMs, partsTrustedMs)) return { ...guessed(account), parts };
    if (this.#isYounger(guess.countsMs, trustedMs)) return guess.item;
    return { ...guessed(account), parts: guess.item.parts };
  }

  /** The sums of an account that refused a call a moment ago. */
  refusalOf(account: string): QuotaItem | undefined {
    const refused = this.#guesses.get(account)?.refused;
    return refused?.holds && this.#isYounger(refused.seenMs, refusedMs) ? refused.item : undefined;
  }

  /** Remembers a part as the store returned it. The counts of one part of several tell nothing of the sums. */
  saw(item: QuotaItem): void {
    const { account, parts } = item;
    this.#forgetPoorer(item);
    if (parts === 1)
      return this.#keep({ ...guessed(account), plan: new Map(item.plan), rate: minutesOf(item) });
    const { plan, rate } = this.of(account);
    const countsMs = this.#guesses.get(account)?.countsMs ?? 0;
    this.#keep({ ...guessed(account), parts, plan, rate: new Map([...rate, ...minutesOf(item)]) }, countsMs);
  }

  /** Remembers the sums of an account with several parts. */
  sawSums(sums: QuotaItem, parts: number): void {
    this.#keep({ ...guessed(sums.account), parts, plan: new Map(sums.plan), rate: minutesOf(sums) });
  }

  /**
   * Remembers the sums that refused a call.
   * @param passing a place was missing. A client has its answer a moment before its place is free, so the first such
   * refusal says little; a second one within its time says that the account is at its limit.
   */
  sawRefusal(sums: QuotaItem, passing: boolean): void {
    const guess = this.#guesses.get(sums.account);
    if (!guess) return;
    const { refused } = guess;
    const isSecond = refused?.passing === true && this.#isYounger(refused.seenMs, refusedMs);
    guess.refused = { seenMs: this.#clock.now(), item: sums, passing, holds: !passing || isSecond };
  }

  /** Money came since a refusal. A part of several says nothing of the sums; a place is not bought with money. */
  #forgetPoorer({ account, parts, available }: QuotaItem): void {
    const guess = this.#guesses.get(account);
    const { refused } = guess ?? {};
    if (!guess || !refused || refused.passing || parts !== 1) return;
    if (available > refused.item.available) guess.refused = undefined;
  }

  /** Money and a place came back. Forgets the refusal, and the count of a slot that was released. */
  closed(account: string, releasedSlot: string): void {
    const guess = this.#guesses.get(account);
    if (!guess) return;
    guess.item.plan.delete(releasedSlot);
    guess.refused = undefined;
  }

  #isYounger(seenMs: number, ageMs: number): boolean {
    return this.#clock.now() - seenMs < ageMs;
  }

  #keep(item: QuotaItem, countsMs = this.#clock.now()): void {
    const refused = this.#guesses.get(item.account)?.refused;
    this.#guesses.delete(item.account);
    this.#guesses.set(item.account, { seenMs: this.#clock.now(), item, countsMs, refused });
    const oldest = this.#guesses.keys().next();
    if (this.#guesses.size > accountsMax && !oldest.done) this.#guesses.delete(oldest.value);
  }
}

/** The minutes that are counted. How many calls they count changes too fast to be guessed. */
const minutesOf = ({ rate }: QuotaItem): QuotaItem['rate'] =>
  new Map([...rate].map(([key, { minute }]) => [key, { minute, count: 0 }]));

const guessed = (account: string): QuotaItem => ({ ...emptyQuota(account), available: endlessBalance });
