import type { NanoYuan } from './amount.ts';
import type { CloseRecord, OpenEntry } from './quota-item.ts';

/** One conditional write that opens a reservation. It is done or refused as a whole. */
export interface ReserveWrite {
  account: string;
  id: string;
  entry: OpenEntry;
  /** The plan slot to count on; null limit: unlimited. */
  slot?: { key: string; staleKey: string; limit: number | null } | undefined;
  /** The key's concurrency limit. */
  busy?: { key: string; max: number } | undefined;
  /** The key's rate limit. `starts`: the write assumes that this call is the first of its minute. */
  rate?: { key: string; minute: number; max: number; starts: boolean } | undefined;
}

/** One conditional write that closes a reservation: undoes exactly what its entry names, and adds the charge to what was spent. */
export interface CloseWrite {
  account: string;
  id: string;
  entry: OpenEntry;
  /** Take the call back off its plan slot: the call failed without output. */
  releaseSlot: boolean;
  closeRecord: CloseRecord;
}

/** What a close returns to `available`: negative when the call cost more than was reserved. */
export const refundOf = (write: CloseWrite): NanoYuan => write.entry.amount - write.closeRecord.charge;
