/**
 * The item of an account: its money, its counters and its open reservations, and the writes that change it. All of it is in one item
 * so that every change is one conditional write.
 */
import { firstCounts, laterCounts, type PartCount } from '../wire/chat-response.ts';
import type { NanoYuan } from './money.ts';

/**
 * A busy account has several items, its shards, because one item takes only so many writes. Each keeps the invariant
 * available + open amounts + spent = granted + moved + metered, without the amounts of metered entries.
 */
export interface QuotaItem {
  account: string;
  /** Shard 0 has all the money until the account is split. */
  shard: number;
  /** Calls use so many shards, as of the last split or join. */
  shardCount: number;
  /** Only in shard 0. Shards are not deleted, so readers of sums read all of these. */
  highestShardCount: number;
  available: NanoYuan;
  spent: NanoYuan;
  granted: NanoYuan;
  /** Received from other shards, less what was given. Adds up to zero over the shards. */
  moved: NanoYuan;
  /** Only in shard 0: the number of counters of metered calls. Some may not have an item yet. */
  counters?: number | undefined;
  /** The charges of metered calls, which `spent` contains and no balance paid. */
  metered?: NanoYuan | undefined;
  /**
   * A shard may be below zero, so the balance pays for a call only after the sum was read. The write that overdraws one of several
   * shards sets it on all that are in use.
   */
  overdraft?: boolean | undefined;
  /** Counts closed reservations. The ledger has one row for each. */
  settled: number;
  open: Map<string, OpenEntry>;
  /** Calls counted on plan slots: `<item>@<first day>` -> calls. */
  plan: Map<string, number>;
  /** Concurrency permits of keys with a limit: key -> ids of running calls. */
  permits: Map<string, ReadonlySet<string>>;
  /** The latest minute of the account, if it has a limit. */
  rate?: RateCount | undefined;
  /** The last close. Its ledger row is built from it. */
  last: CloseRecord | undefined;
}

export interface RateCount {
  /** Minutes since the epoch. */
  minute: number;
  count: number;
  /** Input tokens of calls that began in it, and output tokens of calls that ended in it. */
  tokens?: number | undefined;
}

/** A reservation as it stands in the item, with everything that is needed to close it. */
export interface OpenEntry {
  /** The end of the lease, in Unix seconds. The call renews it while it runs. */
  until: number;
  amount: NanoYuan;
  /** Charged when the reservation expires. */
  input: NanoYuan;
  /** The price of the call's web search, charged when the reservation expires. */
  searchPrice?: NanoYuan | undefined;
  /** First 12 hex digits of the key's hash. */
  key: string;
  /** For an alias, its first model, whose input is charged when the reservation expires. */
  model: string;
  /** In the format of `formatPrice`. */
  price: string;
  /** In the format of `formatTariff`. Earlier versions did not write it. */
  tariff?: string | undefined;
  /** Empty if no plan slot counts the call. */
  slot: string;
  /** The period of the key's budget that reserves the amount too. */
  budget?: string | undefined;
  official: boolean;
  /** Occupies the id, so that a late reserve with the same id fails. */
  tombstone: boolean;
  metered?: boolean | undefined;
  /** Reserved for a background call by a version before decision 93. Its expiry charges nothing, and gives the plan's call back. */
  queued?: boolean | undefined;
}

export type CloseKind = 'settled' | 'released' | 'expired' | 'cancelled';

/**
 * Facts of a closed call, named as in the ledger and in the order in which an item keeps them. Any may be missing. Add new ones at the
 * end.
 */
export const closeFields = {
  endpoint: 'text',
  prompt_tokens: 'count',
  completion_tokens: 'count',
  /** `completed`, `failed` or `client_gone`. */
  end: 'text',
  /** The relay counted input, output or both, because the upstream's usage was missing or implausible. */
  estimated: 'flag',
  /** The price of an official call, which is not charged. */
  cost: 'amount',
  ...countsOf(firstCounts),
  channel: 'text',
  upstream_model: 'text',
  /** Time from the request's arrival to the first content. */
  first_content_ms: 'count',
  /** The operator's cost of the call. */
  bought: 'amount',
  flag: 'text',
  /** The price that was charged, in the format of `formatPrice`, if it is not the entry's. */
  price: 'text',
  /** The model that answered, if it is not the entry's. */
  model: 'text',
  /** The alias that was asked for. */
  alias: 'text',
  ...countsOf(laterCounts),
  /** Open entries do not keep end user and tags, so that they stay small. */
  end_user: 'text',
  tags: 'tags',
  /** The tier whose price was charged, if it is not the standard one. */
  service_tier: 'text',
  /** The price of the web search that was made, contained in the charge or in `cost`. */
  search_price: 'amount',
  /** The operator's cost of the search. */
  search_bought: 'amount',
  /** In the format of `formatAttempts`. */
  tried: 'text',
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

/** Returns the difference from the invariant of `QuotaItem`, if there is one. */
export function findImbalance(item: QuotaItem): NanoYuan | undefined {
  const { available, spent, granted, moved, metered = 0n } = item;
  const difference = available + sumReserved(item) + spent - granted - moved - metered;
  return difference === 0n ? undefined : difference;
}

export interface AccountShard {
  account: string;
  /** 0 if absent: most accounts have one shard. */
  shard?: number | undefined;
}

interface EntryWrite extends AccountShard {
  id: string;
  entry: OpenEntry;
}

/** One conditional write that opens a reservation. */
export interface ReserveWrite extends EntryWrite {
  /** If the write needs more balance than it takes. */
  balanceNeeded?: NanoYuan | undefined;
  /** The limits below are shares among so many shards. The write is refused if the account has another number by now. */
  shardCount?: number | undefined;
  /** Crashed and waiting calls that limits do not count. The write is refused unless each is still open with this end of its lease. */
  uncountedLeases?: ReadonlyMap<string, number> | undefined;
  /** The account's limit of open entries in this shard. */
  openMax?: number | undefined;
  slot?: { key: string; staleKey: string; limit: number | null } | undefined;
  /** The key's concurrency limit in this shard. */
  permit?: { key: string; max: number } | undefined;
  /** The account's limits of calls and tokens a minute in this shard. */
  rate?: RateWrite | undefined;
}

export interface RateWrite {
  minute: number;
  max?: number | undefined;
  tokensMax?: number | undefined;
  /** Tokens of the call's input. */
  tokens: number;
  /** The write assumes that this call is the first of its minute. */
  starts: boolean;
}

/** One conditional write that closes a reservation: it reverses exactly what the entry lists, and adds the charge to `spent`. */
export interface CloseWrite extends EntryWrite {
  /** Takes the call from its plan slot's count, because it failed without output. */
  releaseSlot: boolean;
  closeRecord: CloseRecord;
  /** The call's output tokens, for an account with a limit of tokens a minute. */
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

/** Negative if the call cost more than was reserved. */
export const refundOf = ({ entry, closeRecord }: CloseWrite): NanoYuan =>
  entry.metered ? 0n : entry.amount - closeRecord.charge;

/** An overdraft of one of several shards must be written to all of them, because the others could spend what it owes. */
export const overdraws = ({ shard, shardCount, available, overdraft }: QuotaItem, taken: NanoYuan): boolean =>
  !overdraft && (shard > 0 || shardCount > 1) && taken > 0n && available < taken;

/** A tombstone's lease is not renewed, so only differing clocks need a grace period. */
const tombstoneGraceSeconds = 30;

/**
 * Plans to close reservations whose lease ended more than the grace period ago. Search and input are charged, because they were sent,
 * and a plan's call stays counted, except for a background call that never started. A call that renews its lease meanwhile wins.
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

/** The end of the call is unknown, but its search and its input were sent. */
export const computeExpiryCharge = ({ slot, official, input, searchPrice = 0n }: OpenEntry): bigint =>
  official ? 0n : (slot === '' ? input : 0n) + searchPrice;
