/**
 * Caches the last known state of accounts for the first try of a reserve: the number of shards, counts of plan slots and the rate
 * minute. A cached balance must never refuse a call or lower a limit, except for a second after a refusal.
 */
import { createQuotaItem, type QuotaItem } from '../../billing/quota-item.ts';
import { firstCounter } from '../../billing/shares.ts';
import { endlessBalance } from '../../billing/reservation.ts';
import { keepNewest } from '../../wire/keep-newest.ts';
import type { Clock } from '../ports/host.ts';

const accountsMax = 1_000;
/** Maximum age of a cached balance. A slot that another environment released is tried again within this time. */
const trustedMs = 10_000;
/** Maximum age of a shard count that was read from an image: the same as of one that was read with a key. */
const shardCountTrustedMs = 30_000;
/** A need that was refused is refused again without a write within this time. */
const refusedMs = 1_000;

interface CachedBalance {
  seenMs: number;
  item: QuotaItem;
  /** When the counts of plan slots and the rate minutes were seen. */
  countsMs: number;
  /**
   * The sums at a refusal. `passing`: a place was missing, which is free in a moment; else money, or room in a minute.
   * `holds`: the next calls are refused by them.
   */
  refused?: { seenMs: number; item: QuotaItem; passing: boolean; holds: boolean } | undefined;
  /** A shard, or the sums, as the store had them, without the calls under way. */
  stored?: QuotaItem | undefined;
}

export class CachedBalances {
  readonly #clock: Clock;
  readonly #balances = new Map<string, CachedBalance>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The account's sums. @param shardCount the number of shards as read with the key */
  estimateSums(account: string, shardCount = 1): QuotaItem {
    const cached = this.#balances.get(account);
    if (!cached || !this.#isYounger(cached.seenMs, shardCountTrustedMs))
      return { ...createUnknownQuota(account), shardCount };
    if (this.#isYounger(cached.countsMs, trustedMs)) return cached.item;
    return { ...createUnknownQuota(account), shardCount: cached.item.shardCount };
  }

  /** The sums of an account that refused a call a moment ago. */
  refusalOf(account: string): QuotaItem | undefined {
    const refused = this.#balances.get(account)?.refused;
    return refused?.holds && this.#isYounger(refused.seenMs, refusedMs) ? refused.item : undefined;
  }

  /** The account's recent balance, to tell that a call can be paid. It never refuses one. */
  findStored(account: string): QuotaItem | undefined {
    const cached = this.#balances.get(account);
    return cached && this.#isYounger(cached.seenMs, trustedMs) ? cached.stored : undefined;
  }

  /** Remembers a shard as the store returned it. The counts of one shard of several tell nothing of the sums. */
  keepShard(item: QuotaItem): void {
    // A counter says nothing of the others, and calls that draw one ask nothing of them.
    if (item.shard >= firstCounter) return;
    const { account, shardCount, available } = item;
    const cached = this.#balances.get(account);
    if (shardCount > 1) {
      const { plan, rate } = this.estimateSums(account);
      const estimate = { ...createUnknownQuota(account), shardCount, plan, rate: minuteOf(item) ?? rate };
      return this.#keep(estimate, item, cached?.countsMs ?? 0);
    }
    const { refused } = cached ?? {};
    // Money came since the refusal. A place is not bought with money.
    if (cached && refused && !refused.passing && available > refused.item.available)
      cached.refused = undefined;
    this.storeSums(item, 1);
  }

  storeSums(sums: QuotaItem, shardCount: number): void {
    this.#keep(
      {
        ...createUnknownQuota(sums.account),
        shardCount,
        plan: new Map(sums.plan),
        rate: minuteOf(sums),
      },
      sums,
    );
  }

  /**
   * @param passing a place was missing. A client has its answer a moment before its place is free, so the first such
   * refusal says little; a second one within its time says that the account is at its limit.
   */
  keepRefusal(sums: QuotaItem, passing: boolean): void {
    // An account without a grant has no item.
    if (!this.#balances.has(sums.account)) this.storeSums(sums, sums.shardCount);
    const cached = this.#balances.get(sums.account);
    if (!cached) return;
    const { refused } = cached;
    const isSecond = refused?.passing === true && this.#isYounger(refused.seenMs, refusedMs);
    cached.refused = { seenMs: this.#clock.now(), item: sums, passing, holds: !passing || isSecond };
  }

  /** Money and a place came back. Forgets the refusal, and the count of a slot that was released. */
  noteClose(account: string, releasedSlot: string): void {
    const cached = this.#balances.get(account);
    if (!cached) return;
    cached.item.plan.delete(releasedSlot);
    cached.refused = undefined;
  }

  #isYounger(seenMs: number, ageMs: number): boolean {
    return this.#clock.now() - seenMs < ageMs;
  }

  #keep(item: QuotaItem, stored: QuotaItem, countsMs = this.#clock.now()): void {
    const refused = this.#balances.get(item.account)?.refused;
    const idle = { ...stored, open: new Map(), permits: new Map() };
    const balance = { seenMs: this.#clock.now(), item, countsMs, refused, stored: idle };
    keepNewest(this.#balances, accountsMax, item.account, balance);
  }
}

/** The minute that is counted. How many calls it counts changes too fast to be unseen. */
const minuteOf = ({ rate }: QuotaItem): QuotaItem['rate'] => rate && { minute: rate.minute, count: 0 };

const createUnknownQuota = (account: string): QuotaItem => ({
  ...createQuotaItem(account),
  available: endlessBalance,
});
