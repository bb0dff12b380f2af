import type { CloseRecord, OpenEntry, QuotaItem } from './quota-item.ts';
import type { CloseWrite } from './quota-writes.ts';

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
