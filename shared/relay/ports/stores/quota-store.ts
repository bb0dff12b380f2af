/**
 * The store of reservations. Each call but `move` and `chargeLate` is one conditional write on one part of one
 * account. The suite in `test/contract/quota-store.ts` defines the contract; the in-memory store and the
 * DynamoDB adapter both pass it.
 */
import type {
  CloseWrite,
  DropCountsWrite,
  FreePlacesWrite,
  PartOfAccount,
  RenewWrite,
  ReserveWrite,
  TombstoneWrite,
} from '../../../billing/quota-writes.ts';
import type { NanoYuan } from '../../../billing/amount.ts';
import type { CloseRow } from '../../../billing/ledger-row.ts';
import type { PartsWrite } from '../../../billing/parts/parts-write.ts';
import type { CloseKind, QuotaItem } from '../../../billing/quota-item.ts';

/** The charge of a call that its close came too late for: the difference to what its expiry charged. */
export interface LateCharge {
  difference: NanoYuan;
  row: CloseRow;
}

/** `item`: the part when the write was refused. Undefined: it does not exist. */
export type WriteReply<Done = object> =
  | ({ done: true } & Done)
  | { done: false; item: QuotaItem | undefined };

export interface QuotaStore {
  /** `item`: the part after the write. */
  reserve(write: ReserveWrite): Promise<WriteReply<{ item: QuotaItem }>>;
  close(write: CloseWrite): Promise<WriteReply>;
  /**
   * Puts an entry of amount 0 under an id that is not open, so that a late reserve with that id is refused.
   */
  tombstone(write: TombstoneWrite): Promise<WriteReply>;
  renew(write: RenewWrite): Promise<WriteReply>;
  freePlaces(write: FreePlacesWrite): Promise<WriteReply>;
  dropCounts(write: DropCountsWrite): Promise<WriteReply>;
  /** Puts an empty item if the account has none. */
  create(account: string): Promise<void>;
  /**
   * The parts of an account that exist, of those below `parts`, from part 0 on. `exact`: as of one moment;
   * else each may be a second old.
   */
  read(account: string, parts: number, exact: boolean): Promise<QuotaItem[]>;
  /** Returns whether every condition held. */
  move(write: PartsWrite): Promise<boolean>;
  /** Charges a difference and puts its ledger row, once: a row that is there already changes nothing. */
  chargeLate(charge: LateCharge): Promise<void>;
  /** How the ledger says that a request was closed; undefined: it has no row yet. */
  closedAs(account: string, id: string): Promise<CloseKind | undefined>;
}

/** An item of the scan, not yet parsed. */
export interface ScannedQuota extends PartOfAccount {
  /** The key of the item. */
  item: string;
  /** Throws Poisoned. */
  read(): QuotaItem;
}

/** Reads current items. Rejects when the store does not answer. */
export interface QuotaScan {
  /** These items, without those that do not exist. */
  read(items: readonly string[]): AsyncIterable<ScannedQuota>;
  /** The items with open reservations on the page of the table after this key. */
  open(after: string | undefined): Promise<QuotaPage>;
}

export interface QuotaPage {
  quotas: ScannedQuota[];
  /** The key after which the next page begins; undefined: this is the last one. */
  next: string | undefined;
}

/** An item to look at. `atSeconds`: when the first of its reservations should have ended, in Unix seconds. */
export interface Lookup {
  /** The key of the item. */
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
  /** Undefined: no sweep has ended yet. */
  progress(): Promise<SweepProgress | undefined>;
  keepProgress(progress: SweepProgress): Promise<void>;
}
