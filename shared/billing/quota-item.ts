import { firstCounts, laterCounts, type PartCount } from '../wire/chat-response.ts';
import type { NanoYuan } from './price.ts';

/**
 * An account's money and counters, in one item, so that every change is one conditional write. A busy account
 * has several such items, its parts, because one item takes only so many writes. Invariant of each part:
 * available + sum of open amounts + spent = granted + moved + metered. The amount of a metered entry is the key's budget's alone.
 */
export interface QuotaItem {
  account: string;
  /** 0: the account's first item, which has all its money until it is split. */
  shard: number;
  /** The number of parts that calls use, as of the last split or join of this account. */
  shardCount: number;
  /** Part 0 only: the highest number of parts ever. Parts are not deleted: readers of sums read all of these. */
  highestShardCount: number;
  available: NanoYuan;
  spent: NanoYuan;
  granted: NanoYuan;
  /** Received from other parts of the account, less what was given. Sums to zero over the parts. */
  moved: NanoYuan;
  /** Part 0 only: that there are so many counters of metered calls, some of which no call has used yet. Absent: none. */
  counters?: number | undefined;
  /** What metered calls cost, for which no balance pays: a part of `spent`. Absent: nothing. */
  metered?: NanoYuan | undefined;
  /**
   * A part may be below zero, so no part alone tells what the account has: the balance pays for a call only once the sum
   * was read. All parts in use say it, or none does: it is written with the write that overdraws one of several parts.
   */
  overdraft?: boolean | undefined;
  /** The number of closed reservations. The ledger has one row for each. */
  settled: number;
  open: Map<string, OpenEntry>;
  /** Calls counted on plan slots: `<item>@<first day>` -> calls. */
  plan: Map<string, number>;
  /** Calls in flight of keys with a concurrency limit: key -> request ids. */
  permits: Map<string, ReadonlySet<string>>;
  /** The latest minute of the account, if it has a limit. */
  rate?: RateCount | undefined;
  /** The last close. The ledger row of that write is built from it. */
  last: CloseRecord | undefined;
}

export interface RateCount {
  /** Minutes since the epoch. */
  minute: number;
  count: number;
  /** Input tokens of calls that began in it, and output tokens of calls that ended in it. */
  tokens?: number | undefined;
}

/** An open reservation, with everything that is needed to close it. */
export interface OpenEntry {
  /** Unix seconds: the end of the lease. The call renews it while it runs. */
  until: number;
  /** The amount taken from `available`. */
  amount: NanoYuan;
  /** The cost of the input: charged when the reservation expires. */
  input: NanoYuan;
  /** The price of the call's web search, charged when the reservation expires. Absent: no search, or a free one. */
  searchPrice?: NanoYuan | undefined;
  /** First 12 hex digits of the key's hash. */
  key: string;
  /** Of a call to an alias: its first model, whose input is charged when the reservation expires. */
  model: string;
  /** In the format of `formatPrice`. */
  price: string;
  /** The prices that the call may be charged at, in the format of `formatTariff`. Absent: an earlier version reserved. */
  tariff?: string | undefined;
  /** The plan slot that counts this call; empty: none. */
  slot: string;
  /** The period of the key's budget that holds the amount too; absent: none. */
  budget?: string | undefined;
  official: boolean;
  /** The entry only occupies the id, so that a late reserve with the same id fails. */
  tombstone: boolean;
  /** The account is metered: the call is counted, and takes nothing from the balance. */
  metered?: boolean | undefined;
  /**
   * Of a background call that a version before decision 93 accepted, and reserved for: its expiry charges nothing, and gives the
   * plan's call back.
   */
  queued?: boolean | undefined;
}

export type CloseKind = 'settled' | 'released' | 'expired' | 'cancelled';

/**
 * What a close says of its call, in the order in which an item keeps it, named as the ledger names it. Any may be missing.
 * What comes later goes to the end.
 */
export const closeFields = {
  endpoint: 'text',
  prompt_tokens: 'count',
  completion_tokens: 'count',
  /** How the answer ended: `completed`, `failed`, `client_gone`. */
  end: 'text',
  /** The upstream reported no usage or impossible usage, so the token counts come from the relay. */
  estimated: 'flag',
  /** Official calls: what the call would have cost. */
  cost: 'amount',
  ...countsOf(firstCounts),
  channel: 'text',
  /** The channel's name of the model; missing: the model's own. */
  upstream_model: 'text',
  /** Time from the request's arrival to the first content. */
  first_content_ms: 'count',
  /** What the call cost the operator; missing: unknown. */
  bought: 'amount',
  flag: 'text',
  /** The price that was charged, in the format of `formatPrice`; missing: the entry's. */
  price: 'text',
  /** The model that answered; missing: the entry's. */
  model: 'text',
  /** The alias that was asked for; missing: a model was. */
  alias: 'text',
  ...countsOf(laterCounts),
  /** The end user and the tags that the client named. They are here alone, so that an open entry does not grow. */
  end_user: 'text',
  tags: 'tags',
  /** That the call was charged by; missing: the standard one. */
  service_tier: 'text',
  /** What the web search of the call costs: a part of the charge, or of `cost`; missing: none was made. */
  search_price: 'amount',
  /** The operator's cost of the search; missing: unknown. */
  search_bought: 'amount',
} as const;

function countsOf(names: readonly PartCount[]): Record<PartCount, 'count'> {
  return Object.fromEntries(names.map((name) => [name, 'count'])) as Record<PartCount, 'count'>;
}

interface CloseForms {
  text: string;
  count: number;
  amount: NanoYuan;
  flag: boolean;
  tags: Readonly<Record<string, string>>;
}

export type CloseRecord = {
  id: string;
  kind: CloseKind;
  charge: NanoYuan;
  /** Unix seconds. */
  at: number;
} & { -readonly [Name in keyof typeof closeFields]?: CloseForms[(typeof closeFields)[Name]] | undefined };

export const createQuotaItem = (account: string, shard = 0): QuotaItem => ({
  account,
  shard,
  shardCount: 1,
  highestShardCount: 1,
  available: 0n,
  spent: 0n,
  granted: 0n,
  moved: 0n,
  settled: 0,
  open: new Map(),
  plan: new Map(),
  permits: new Map(),
  last: undefined,
});

export const sumReserved = ({ open }: QuotaItem): NanoYuan =>
  [...open.values()].reduce((sum, { amount, metered }) => (metered ? sum : sum + amount), 0n);

/** The difference from the invariant of `QuotaItem`; undefined: the item is balanced. */
export function findImbalance(item: QuotaItem): NanoYuan | undefined {
  const { available, spent, granted, moved, metered = 0n } = item;
  const difference = available + sumReserved(item) + spent - granted - moved - metered;
  return difference === 0n ? undefined : difference;
}

export interface AccountShard {
  account: string;
  /** Absent: 0, the only part of most accounts. */
  shard?: number | undefined;
}

interface EntryWrite extends AccountShard {
  id: string;
  entry: OpenEntry;
}

/** One conditional write that opens a reservation. It takes effect completely or not at all. */
export interface ReserveWrite extends EntryWrite {
  /** The balance that the write needs, if that is more than it takes. */
  balanceNeeded?: NanoYuan | undefined;
  /** The limits below are shares over so many parts; refused if the account has another number by now. */
  shardCount?: number | undefined;
  /** Crashed calls by which the limits of calls at once below are higher. Refused unless each is open with this end of its lease. */
  expiredLeases?: ReadonlyMap<string, number> | undefined;
  /** The account's limit of open entries in this part. */
  openMax?: number | undefined;
  /** The plan slot that counts the call; `limit` null: unlimited. */
  slot?: { key: string; staleKey: string; limit: number | null } | undefined;
  /** The key's concurrency limit in this part. */
  permit?: { key: string; max: number } | undefined;
  /** The account's limits of calls and tokens a minute in this part. */
  rate?: RateWrite | undefined;
}

export interface RateWrite {
  minute: number;
  /** Absent: no limit. */
  max?: number | undefined;
  tokensMax?: number | undefined;
  /** Tokens of the call's input. */
  tokens: number;
  /** The write assumes that this call is the first of its minute. */
  starts: boolean;
}

/**
 * One conditional write that closes a reservation. It reverses exactly what the entry lists, and adds the
 * charge to `spent`.
 */
export interface CloseWrite extends EntryWrite {
  /** Remove the call from its plan slot's count, because it failed without output. */
  releaseSlot: boolean;
  closeRecord: CloseRecord;
  /** Tokens of the call's output, for an account with a limit of tokens a minute. */
  rateTokens?: number | undefined;
  /** Refused if the lease was renewed since the entry was read: the call still runs. */
  ifNotRenewed?: boolean | undefined;
}

/** One conditional write that puts an entry of amount 0 under an id that is not open. */
export type TombstoneWrite = EntryWrite;

/** One conditional write that prolongs the lease of an open entry. */
export interface RenewWrite extends EntryWrite {
  /** Unix seconds. */
  until: number;
}

/** The amount that a close returns to `available`; negative if the call cost more than was reserved. */
export const refundOf = ({ entry, closeRecord }: CloseWrite): NanoYuan =>
  entry.metered ? 0n : entry.amount - closeRecord.charge;

/**
 * Whether taking so much from a part needs the mark of an overdraft on all of them, because others could then spend what
 * this one owes. The only part of an account owes what the account does.
 */
export const overdraws = ({ shard, shardCount, available, overdraft }: QuotaItem, taken: NanoYuan): boolean =>
  !overdraft && (shard > 0 || shardCount > 1) && taken > 0n && available < taken;

/** No lease is renewed after a tombstone, so only clocks that differ have to be waited for. */
const tombstoneGraceSeconds = 30;

/**
 * The writes that close an account's expired reservations: those whose lease ended more than the grace period
 * ago. Reads only the item. Search and input are charged, because they were sent; a call that was counted on a
 * plan stays counted. Of a background call that never began, neither is. A call that renews its lease meanwhile wins.
 * `secondsOf`: Unix time.
 */
export function closeExpired(item: QuotaItem, nowSeconds: number, graceSeconds: number): CloseWrite[] {
  const graceOf = ({ tombstone }: OpenEntry): number =>
    tombstone ? Math.min(graceSeconds, tombstoneGraceSeconds) : graceSeconds;
  return [...item.open]
    .filter(([, entry]) => entry.until + graceOf(entry) < nowSeconds)
    .map(([id, entry]) => ({
      account: item.account,
      shard: item.shard,
      id,
      entry,
      releaseSlot: entry.queued === true,
      closeRecord: buildCloseRecord(id, entry, nowSeconds),
      ifNotRenewed: true,
    }));
}

function buildCloseRecord(id: string, entry: OpenEntry, at: number): CloseRecord {
  if (entry.tombstone) return { id, kind: 'cancelled', charge: 0n, at };
  if (entry.queued) return { id, kind: 'released', charge: 0n, at };
  return { id, kind: 'expired', charge: computeExpiryCharge(entry), at, search_price: entry.searchPrice };
}

/** The charge for a call whose end is unknown: its input, which was sent upstream, and its search, which comes before that. */
export const computeExpiryCharge = ({ slot, official, input, searchPrice = 0n }: OpenEntry): bigint =>
  official ? 0n : (slot === '' ? input : 0n) + searchPrice;
