/**
 * The store behind the reservations. Each call is one conditional write on one account's item. Contract: the suite in
 * `test/contract/quota-store.ts`, which the in-memory store and the DynamoDB adapter both pass.
 */
import type { CloseWrite, ReserveWrite } from '../../billing/quota-writes.ts';
import type { OpenEntry, QuotaItem } from '../../billing/quota-item.ts';

/** What a write that was done returns of the item, without a read of all of it. */
export interface ReturnedItem {
  available: bigint;
  /** The count of the write's own plan slot, when it has one. */
  slotCount?: number | undefined;
  /** The count of the write's own rate minute, when it has one. */
  rateCount?: number | undefined;
}

/** `item` is the item as it stood when the write was refused; undefined: the account has none. */
export type WriteReply<Done> = ({ done: true } & Done) | { done: false; item: QuotaItem | undefined };

export interface QuotaStore {
  reserve(write: ReserveWrite): Promise<WriteReply<{ returned: ReturnedItem }>>;
  close(write: CloseWrite): Promise<WriteReply<object>>;
  /** Puts an entry of amount 0 under an id that is not open, so that a late reserve of that id is refused. */
  tombstone(account: string, id: string, entry: OpenEntry): Promise<WriteReply<object>>;
  /** Puts an empty item if the account has none. */
  create(account: string): Promise<void>;
}

/** An item of the scan, not yet read. */
export interface ScannedQuota {
  account: string;
  /** Throws Poisoned. */
  read(): QuotaItem;
}

export interface QuotaScan {
  /** Every account's item that has open reservations, as it is now. Rejects when the store does not answer. */
  open(): AsyncIterable<ScannedQuota>;
}
