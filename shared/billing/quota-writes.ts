import type { NanoYuan } from './amount.ts';
import type { CloseRecord, OpenEntry, QuotaItem } from './quota-item.ts';

/** The item that a write changes. */
export interface PartOfAccount {
  account: string;
  /** Absent: 0, the only part of most accounts. */
  part?: number | undefined;
}

/** One conditional write that opens a reservation. It takes effect completely or not at all. */
export interface ReserveWrite extends PartOfAccount {
  id: string;
  entry: OpenEntry;
  /** The balance that the write needs, if that is more than it takes. */
  atLeast?: NanoYuan | undefined;
  /** The limits below are shares over so many parts; refused if the account has another number by now. */
  parts?: number | undefined;
  /** The account's limit of open entries in this part. */
  openMax?: number | undefined;
  /** The plan slot that counts the call; `limit` null: unlimited. */
  slot?: { key: string; staleKey: string; limit: number | null } | undefined;
  /** The key's concurrency limit in this part. */
  place?: { key: string; max: number } | undefined;
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
export interface CloseWrite extends PartOfAccount {
  id: string;
  entry: OpenEntry;
  /** Remove the call from its plan slot's count, because it failed without output. */
  releaseSlot: boolean;
  closeRecord: CloseRecord;
  /** Tokens of the call's output, for an account with a limit of tokens a minute. */
  rateTokens?: number | undefined;
  /** Refused if the lease was renewed since the entry was read: the call still runs. */
  ifNotRenewed?: boolean | undefined;
}

/** One conditional write that puts an entry of amount 0 under an id that is not open. */
export interface TombstoneWrite extends PartOfAccount {
  id: string;
  entry: OpenEntry;
}

/** One conditional write that prolongs the lease of an open entry. */
export interface RenewWrite extends PartOfAccount {
  id: string;
  entry: OpenEntry;
  /** Unix seconds. */
  until: number;
  /** The run of a queued call takes the entry over, which is then as that of any call. */
  begins?: boolean | undefined;
}

/** One conditional write that frees places of a key whose calls no longer run. */
export interface FreePlacesWrite extends PartOfAccount {
  key: string;
  /** Request ids, with the end of their lease as read; undefined: nothing was open under the id. */
  lapsed: ReadonlyMap<string, number | undefined>;
}

/** The amount that a close returns to `available`; negative if the call cost more than was reserved. */
export const refundOf = (write: CloseWrite): NanoYuan => write.entry.amount - write.closeRecord.charge;

/**
 * Whether taking so much from a part needs the mark of an overdraft on all of them, because others could then spend what
 * this one owes. The only part of an account owes what the account does.
 */
export const overdraws = ({ part, parts, available, overdraft }: QuotaItem, taken: NanoYuan): boolean =>
  !overdraft && (part > 0 || parts > 1) && taken > 0n && available < taken;

/** No lease is renewed after a tombstone, so only clocks that differ have to be waited for. */
const tombstoneGraceSeconds = 30;

/**
 * The writes that close an account's expired reservations: those whose lease ended more than the grace period
 * ago. Reads only the item. The input is charged, because it was sent upstream; a call that was counted on a
 * plan stays counted. Of a background call that never began, neither is. A call that renews its lease meanwhile wins.
 * `nowSeconds`: Unix time.
 */
export function closeExpired(item: QuotaItem, nowSeconds: number, graceSeconds: number): CloseWrite[] {
  const graceOf = ({ tombstone }: OpenEntry): number =>
    tombstone ? Math.min(graceSeconds, tombstoneGraceSeconds) : graceSeconds;
  return [...item.open]
    .filter(([, entry]) => entry.until + graceOf(entry) < nowSeconds)
    .map(([id, entry]) => ({
      account: item.account,
      part: item.part,
      id,
      entry,
      releaseSlot: entry.queued === true,
      closeRecord: closeRecordOf(id, entry, nowSeconds),
      ifNotRenewed: true,
    }));
}

function closeRecordOf(id: string, entry: OpenEntry, at: number): CloseRecord {
  if (entry.tombstone) return { id, kind: 'cancelled', charge: 0n, at };
  if (entry.queued) return { id, kind: 'released', charge: 0n, at };
  return { id, kind: 'expired', charge: expiryCharge(entry), at };
}

/** What a call costs that never said how it ended: its input, which was sent upstream. */
export const expiryCharge = (entry: OpenEntry): bigint =>
  entry.slot !== '' || entry.official ? 0n : entry.input;
