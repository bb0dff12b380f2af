import type { CloseRecord, OpenEntry, QuotaItem } from './quota-item.ts';
import type { CloseWrite } from './quota-writes.ts';

/**
 * The writes that close an account's expired reservations: those whose invocation ended more than the grace
 * period ago without closing them. Reads only the item. The input is charged, because it was sent upstream; a
 * call that was counted on a plan stays counted. `nowSeconds`: Unix time.
 */
export function closeExpired(item: QuotaItem, nowSeconds: number, graceSeconds: number): CloseWrite[] {
  return [...item.open]
    .filter(([, entry]) => entry.until + graceSeconds < nowSeconds)
    .map(([id, entry]) => ({
      account: item.account,
      id,
      entry,
      releaseSlot: false,
      closeRecord: closeRecordOf(id, entry, nowSeconds),
    }));
}

function closeRecordOf(id: string, entry: OpenEntry, at: number): CloseRecord {
  if (entry.tombstone) return { id, kind: 'cancelled', charge: 0n, at };
  const costsNothing = entry.slot !== '' || entry.official;
  return { id, kind: 'expired', charge: costsNothing ? 0n : entry.input, at };
}
