import type { NanoYuan } from './amount.ts';
import type { CloseRecord, OpenEntry } from './quota-item.ts';

/** One conditional write that opens a reservation. It takes effect completely or not at all. */
export interface ReserveWrite {
  account: string;
  id: string;
  entry: OpenEntry;
  /** The write is refused if less is available. At least the entry's amount; absent: the amount. */
  atLeast?: NanoYuan | undefined;
  /** The plan slot that counts the call; `limit` null: unlimited. */
  slot?: { key: string; staleKey: string; limit: number | null } | undefined;
  /** The key's concurrency limit. */
  busy?: { key: string; max: number } | undefined;
  /** The key's rate limit. `starts`: the write assumes that this call is the first of its minute. */
  rate?: { key: string; minute: number; max: number; starts: boolean } | undefined;
}

/**
 * One conditional write that closes a reservation. It reverses exactly what the entry lists, and adds the
 * charge to `spent`.
 */
export interface CloseWrite {
  account: string;
  id: string;
  entry: OpenEntry;
  /** Remove the call from its plan slot's count, because it failed without output. */
  releaseSlot: boolean;
  closeRecord: CloseRecord;
}

/** The amount that a close returns to `available`; negative if the call cost more than was reserved. */
export const refundOf = (write: CloseWrite): NanoYuan => write.entry.amount - write.closeRecord.charge;
