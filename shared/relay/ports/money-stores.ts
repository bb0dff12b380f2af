/**
 * The store of reservations. Each call but `move` and `chargeLate` is one conditional write on one shard of one
 * account. The suite in `test/contract/quota-store.ts` defines the contract; the in-memory store and the
 * DynamoDB adapter both pass it.
 */
import type {
  CloseWrite,
  AccountShard,
  RenewWrite,
  ReserveWrite,
  TombstoneWrite,
  CloseKind,
  QuotaItem,
} from '../../billing/quota-item.ts';
import type { NanoYuan } from '../../billing/money.ts';
import type { CloseRow, GrantLedgerRow } from '../../billing/ledger-row.ts';
import type { ShardsWrite, WholeAccount } from '../../billing/shards.ts';
import type { DailySum } from '../../billing/daily-figures.ts';
import type { Payment, PaymentChange, SeenAccount } from '../../billing/payments.ts';

/** The charge of a call that its close came too late for: the difference to what its expiry charged. */
export interface LateCharge {
  difference: NanoYuan;
  row: CloseRow;
}

/** `item`: the shard when the write was refused. */
export type WriteReply<Done = object> =
  | ({ done: true } & Done)
  | { done: false; item: QuotaItem | undefined };

export interface QuotaStore {
  /** `item`: the shard after the write. */
  reserve(write: ReserveWrite): Promise<WriteReply<{ item: QuotaItem }>>;
  close(write: CloseWrite): Promise<WriteReply>;
  /** Puts an entry of amount 0 under an id that is not open, so that a late reserve with that id is refused. */
  tombstone(write: TombstoneWrite): Promise<WriteReply>;
  renew(write: RenewWrite): Promise<WriteReply>;
  /** Creates an empty item if there is none. `shard`: a counter; the account's first item then records that counters exist. */
  create(account: string, shard?: number): Promise<void>;
  /** Reads the existing shards below `shardCount`, in order. `exact`: all as of one moment; else each may be a second old. */
  read(account: string, shardCount: number, exact: boolean): Promise<QuotaItem[]>;
  /** Returns whether every condition held. */
  move(write: ShardsWrite): Promise<boolean>;
  /** Charges a difference and puts its ledger row, once: a row that is there already changes nothing. */
  chargeLate(charge: LateCharge): Promise<void>;
  /** How the ledger says that a request was closed; undefined: it has no row yet. */
  closedAs(account: string, id: string, shard: number | undefined): Promise<CloseKind | undefined>;
}

/** An item of the scan, not yet parsed. `item`: its key. */
export interface ScannedQuota extends AccountShard {
  item: string;
  /** Throws Poisoned. */
  read(): QuotaItem;
}

/** Reads current items. Rejects when the store does not answer. */
export interface QuotaScan {
  /** These items, without those that do not exist. */
  read(items: readonly string[]): AsyncIterable<ScannedQuota>;
  /**
   * The items with open reservations on the page of the table after this key. `next`: the key after which the next page begins;
   * undefined: this is the last one.
   */
  open(after: string | undefined): Promise<{ quotas: ScannedQuota[]; next: string | undefined }>;
}

/** The key of an item to look at, and when the first of its reservations should have ended, in Unix seconds. */
export interface Lookup {
  item: string;
  atSeconds: number;
}

/** How far sweeps came. */
export interface SweepProgress {
  /** Everything that was registered for earlier was looked at. */
  toSeconds: number;
  /** When the latest pass over the whole table began. */
  passBeganSeconds: number;
  /** The key of the item after which that pass goes on; undefined: it ended. */
  passAfter?: string | undefined;
}

/**
 * Remembers which items of `quotas` have open reservations and when somebody must look at them, so that a sweep
 * reads these and not the table. Every method throws the store's error.
 */
export interface OpenRegistry {
  /** Safe to repeat. */
  register(lookups: readonly Lookup[]): Promise<void>;
  /** The keys of items that are registered for this time, first and last second included. May repeat a key. */
  due(fromSeconds: number, toSeconds: number): AsyncIterable<string[]>;
  progress(): Promise<SweepProgress | undefined>;
  keepProgress(progress: SweepProgress): Promise<void>;
}

// The ledger store that the projector writes, and the changes that it projects.

export interface LedgerStore {
  /** Rows in the groups that one `putCounted` takes, in order. */
  groups(rows: readonly CloseRow[]): CloseRow[][];
  /**
   * Puts the rows whose ids have none yet, or one of kind `cancelled`, and counts exactly these in `daily`, in one
   * transaction. Safe to repeat and in any order. Throws Poisoned when the rows together are refused for good,
   * otherwise the store's error: a retry may then succeed. Resolves with the rows that it put.
   */
  putCounted(rows: readonly CloseRow[]): Promise<readonly CloseRow[]>;
  /** Puts a row that `daily` does not take, without counting it. Throws like `putCounted`. */
  putUncounted(row: CloseRow): Promise<void>;
  /** Adds to the sums of minutes, at most once or twice and not for long. */
  addToMinutes(sums: readonly DailySum[]): Promise<void>;
}

/** One write on an account's item, as the table stream of `quotas` reports it. `item`: its key. */
export interface QuotaChange {
  item: string;
  account: string;
  before: QuotaItem | undefined;
  after: QuotaItem | undefined;
  /** When the table took the write, in seconds, by its clock. */
  writtenAt?: number | undefined;
}

// Grants, and the one transaction that applies each.

/** A row of `grants` with its marks. Numbers are text, so that none is rounded. */
export interface GrantImage {
  account: string;
  grant_id: string;
  [attribute: string]: unknown;
}

export interface AppliedGrant {
  amount: NanoYuan;
  at: string;
}

/** An undefined `applied` leaves its mark unchanged, an undefined `problem` or `warning` removes its mark. */
export interface GrantMarks {
  applied?: string | undefined;
  problem?: string | undefined;
  warning?: string | undefined;
}

/** Every method rejects with the store's error. A retry may succeed unless the error is Poisoned. */
export interface GrantStore {
  find(account: string, grantId: string): Promise<AppliedGrant | undefined>;
  hasAccount(account: string): Promise<boolean>;
  /**
   * Writes ledger row and balance in one transaction. Writes nothing if the ledger already has the row.
   * Returns the applied grant. Throws StoreBusy, or Poisoned when the account's item can never accept the
   * grant.
   */
  apply(row: GrantLedgerRow): Promise<AppliedGrant>;
  /** Writes marks on the grant if it still exists. */
  mark(account: string, grantId: string, marks: GrantMarks): Promise<void>;
  /** The grants whose writer marked them as not applied, until they are. */
  unapplied(): AsyncIterable<GrantImage>;
  /** The grants without a mark as applied, of one of so many equal parts of the table. */
  unmarked(share: { part: number; of: number }): AsyncIterable<GrantImage>;
}

// Payments, and the one transaction that writes a payment with the grants that follow from it.

/**
 * `outdated`: the payment was changed since it was read; nothing was written. `taken`: rows of `grants` with these ids
 * exist already, written by somebody else; nothing was written.
 */
export type PaymentWrite = 'written' | 'outdated' | { taken: string[] };

/** Every method rejects with the store's error. */
export interface PaymentStore {
  /** A consistent read. */
  find(id: string): Promise<Payment | undefined>;
  /** Writes the payment and its new rows of `grants` in one transaction, or nothing. Throws StoreBusy. */
  write(change: PaymentChange): Promise<PaymentWrite>;
  /** Undefined if the table `accounts` has no row of this name. */
  account(name: string): Promise<SeenAccount | undefined>;
  /** Every payment, in any order. `problem` says why a row can't be read. */
  all(): AsyncIterable<({ row: Payment } | { key: string; problem: string })[]>;
}

// The reads of the account endpoints: an account's item, its ledger rows, and their sums by day.

export interface AccountReader {
  /**
   * The sums over the account's shards. An account without an item has no money and no counts. Throws
   * StoreUnavailable, or an Error if a shard cannot be read.
   */
  quota(account: string): Promise<WholeAccount | undefined>;
  /** At most `limit` closed requests with ids below `beforeId`, newest first. Throws StoreUnavailable. */
  requests(account: string, beforeId: string, limit: number): Promise<CloseRow[]>;
  /** All grants of the account, unordered. Throws StoreUnavailable. */
  grants(account: string): Promise<GrantLedgerRow[]>;
  /** All charges that came after their reservation expired, unordered. Throws StoreUnavailable. */
  late(account: string): Promise<CloseRow[]>;
  /** At most `limit` sums of the account's days by model, from this UTC day on, before `to`, newest first. Throws StoreUnavailable. */
  days(account: string, from: string, limit: number, to?: string): Promise<DailySum[]>;
  /** The sums of these months that there are, unordered. Throws StoreUnavailable. */
  months(account: string, months: readonly string[]): Promise<DailySum[]>;
}

/** How many calls of an account were refused or failed. For people: a count may be lost. */
export interface HourOfRefusals {
  account: string;
  /** `2026-11-22T09`, UTC. */
  hour: string;
  /** By code, such as `insufficient_quota`. */
  counts: Readonly<Record<string, number>>;
}

/** Counts attempts of calls without a reservation. A failed write loses a minute of them. */
export interface FreeAttempts {
  count(
    call: Pick<CloseRow, 'id' | 'model'> &
      Pick<
        Partial<CloseRow>,
        'end' | 'prompt_tokens' | 'completion_tokens' | 'channel' | 'first_content_ms' | 'tried' | 'bought'
      >,
  ): Promise<void>;
}

export interface RefusalCounts {
  /** Adds to the counts of the hour. May be counted twice when the reply is lost. */
  add(hour: HourOfRefusals): Promise<void>;
  /** The hours from this one on, oldest first. Throws StoreUnavailable. */
  since(account: string, hour: string): Promise<HourOfRefusals[]>;
}
