/**
 * The store of reservations. Each call is one conditional write on one account's item. The suite in
 * `test/contract/quota-store.ts` defines the contract; the in-memory store and the DynamoDB adapter both pass
 * it.
 */
import type { CloseWrite, ReserveWrite } from '../../../billing/quota-writes.ts';
import type { OpenEntry, QuotaItem } from '../../../billing/quota-item.ts';

/** The parts of the item that an applied write returns. */
export interface ReturnedItem {
  available: bigint;
  /** The count of the write's plan slot, if it has one. */
  slotCount?: number | undefined;
  /** The count of the write's rate minute, if it has one. */
  rateCount?: number | undefined;
}

/** `item`: the item when the write was refused. Undefined: the account has none. */
export type WriteReply<Done> = ({ done: true } & Done) | { done: false; item: QuotaItem | undefined };

export interface QuotaStore {
  reserve(write: ReserveWrite): Promise<WriteReply<{ returned: ReturnedItem }>>;
  close(write: CloseWrite): Promise<WriteReply<object>>;
  /**
   * Puts an entry of amount 0 under an id that is not open, so that a late reserve with that id is refused.
   */
  tombstone(account: string, id: string, entry: OpenEntry): Promise<WriteReply<object>>;
  /** Puts an empty item if the account has none. */
  create(account: string): Promise<void>;
}

/** An item of the scan, not yet parsed. */
export interface ScannedQuota {
  account: string;
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
