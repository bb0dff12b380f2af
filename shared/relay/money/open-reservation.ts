/** What a call asks of the reservations, and what it gets. */
import type { NanoYuan } from '../../billing/amount.ts';
import { type OpenEntry, type QuotaItem, emptyQuota } from '../../billing/quota-item.ts';
import type { CallPayment, ReserveNeed, ReserveRefusal } from '../../billing/reservation.ts';
import type { Refusal } from '../http/refusal.ts';
import type { Clock, Random } from '../ports/host.ts';
import type { BudgetCounter, KeyCounters } from '../ports/runtime-stores.ts';
import type { QuotaStore } from '../ports/money-stores.ts';
import type { Log } from '../ports/telemetry.ts';
import type { Backoff } from './backoff.ts';

export interface ReservationsPorts {
  clock: Clock;
  random: Random;
  quotas: QuotaStore;
  counters: KeyCounters;
  log: Log;
}

/** A key's budget in the period of a call. */
export interface CallBudget {
  counter: BudgetCounter;
  /** The request's id. */
  call: string;
  most: NanoYuan;
  resetsAtMs: number;
}

/** What a call reserves: the need, and the other fields of its open entry. */
export interface ReservationRequest {
  account: string;
  /** The number of parts that the account had when its key was read. Absent: one. */
  parts?: number | undefined;
  /** When the call must end, in epoch milliseconds. */
  deadlineMs: number;
  need: ReserveNeed;
  /** The key's limit of calls a minute. */
  rpm?: number | undefined;
  /** Which call of the key's minute it is. Absent: the key has no limit, or the call is not admitted yet. */
  rateCount?: number | undefined;
  budget?: CallBudget | undefined;
  entry: Pick<OpenEntry, 'input' | 'key' | 'model' | 'price' | 'official' | 'queued'>;
  /** The refusal that the caller gets. `item`: the sums of the account at that time. */
  refused(reason: ReserveRefusal, item: QuotaItem): Promise<Refusal>;
}

/** An open reservation, held by the call that made it. */
export interface Reservation {
  account: string;
  /** The part of the account that has the entry. The id names it for life. */
  part: number;
  id: string;
  entry: OpenEntry;
  payment: CallPayment;
  /** The account has a limit of tokens a minute, so the close adds the output. */
  countsTokens: boolean;
  /** Calls of the key in this minute, if it has a limit. */
  rateCount?: number | undefined;
  /** The part after the reserve. Undefined: the reply was lost, and a repeat found the entry. */
  item: QuotaItem | undefined;
  /**
   * Number of tries of this reserve that may still be in flight. They must not reopen the id after the call.
   */
  triesInFlight: number;
  /** When the host ends the call, in epoch milliseconds: until then the close is repeated. */
  hostDeadlineMs: number;
  /** Work on the account that must end within the invocation, but for which the call does not wait. */
  besides?: Promise<void> | undefined;
}

/** A reserve under way, as seen by the code that only few of them need. */
export interface ReserveUnderWay {
  readonly ports: ReservationsPorts;
  readonly guesses: QuotaGuesses;
  readonly request: ReservationRequest;
  /** The part of the last try. */
  readonly part: number;
  /** A try may still be applied to `part`, so the next ones stay there. */
  readonly isPinned: boolean;
  /** One more write is made at most. */
  readonly isLast: boolean;
  /** Repeats what leaves nothing behind that would have to be guarded. */
  readonly reads: Backoff;
  /** The sums of the account, if one part refused the call. */
  whole: QuotaItem | undefined;
  /** Money was moved for this call. */
  hasGathered: boolean;
  /** When the way to another part must end, in epoch milliseconds. */
  quickEndMs: number | undefined;
  /** A guess of one of the account's parts. */
  guessOn(): QuotaItem;
  /** The need without plan slots that are full in the sum of the parts. */
  roomyNeed(item: Pick<QuotaItem, 'parts'>): ReserveNeed;
  /** The refusal of the sums of the account, which is remembered unless it is the key's own. */
  refusal(refusal: ReserveRefusal, whole: QuotaItem): Promise<Refusal>;
}

// Caches the last known state of accounts to choose the first try of a reserve. Must never decide a refusal,
// but for a second after one.

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
      return this.#keep({ ...guessed(account), plan: new Map(item.plan), rate: minuteOf(item) });
    const { plan, rate } = this.of(account);
    const countsMs = this.#guesses.get(account)?.countsMs ?? 0;
    this.#keep({ ...guessed(account), parts, plan, rate: minuteOf(item) ?? rate }, countsMs);
  }

  /** Remembers the sums of an account with several parts. */
  sawSums(sums: QuotaItem, parts: number): void {
    this.#keep({ ...guessed(sums.account), parts, plan: new Map(sums.plan), rate: minuteOf(sums) });
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

/** The minute that is counted. How many calls it counts changes too fast to be guessed. */
const minuteOf = ({ rate }: QuotaItem): QuotaItem['rate'] => rate && { minute: rate.minute, count: 0 };

const guessed = (account: string): QuotaItem => ({ ...emptyQuota(account), available: endlessBalance });
