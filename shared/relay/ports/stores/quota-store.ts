/**
 * The store of reservations. Each call but `move` and `chargeLate` is one conditional write on one part of one
 * account. The suite in `test/contract/quota-store.ts` defines the contract; the in-memory store and the
 * DynamoDB adapter both pass it.
 */
import type {
  CloseWrite,
  FreePlacesWrite,
  PartOfAccount,
  RenewWrite,
  ReserveWrite,
  TombstoneWrite,
} from '../../../billing/quota-writes.ts';
import type { QuotaItem } from '../../../billing/quota-item.ts';

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
  /** Puts an empty item if the account has none. */
  create(account: string): Promise<void>;
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
