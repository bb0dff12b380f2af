/**
 * What the conditional writes of reservations do to an account's item, in plain code: what the memory store runs on and
 * what DynamoDB's expressions are compared with.
 */
import { openEntriesMax, type QuotaItem } from '../../shared/billing/quota-item.ts';
import { refundOf, type CloseWrite, type ReserveWrite } from '../../shared/billing/quota-writes.ts';

/** Whether each condition of a reserve holds; the store's condition expression says the same. */
export function mayReserve(item: QuotaItem, write: ReserveWrite): boolean {
  const { slot, busy, rate } = write;
  if (item.open.has(write.id) || item.open.size >= openEntriesMax) return false;
  const atLeast = write.atLeast ?? write.entry.amount;
  if (atLeast > 0n && item.available < atLeast) return false;
  if (slot && slot.limit !== null && (item.plan.get(slot.key) ?? 0) >= slot.limit) return false;
  if (busy && (item.busy.get(busy.key) ?? 0) >= busy.max) return false;
  if (!rate) return true;
  const counted = item.rate.get(rate.key);
  if (rate.starts) return counted === undefined || counted.minute < rate.minute;
  return counted?.minute === rate.minute && counted.count < rate.max;
}

/** The item after a reserve that `mayReserve` allows. */
export function afterReserve(item: QuotaItem, write: ReserveWrite): QuotaItem {
  const { slot, busy, rate } = write;
  const next = copy(item);
  next.available -= write.entry.amount;
  next.open.set(write.id, write.entry);
  if (slot) {
    next.plan.delete(slot.staleKey);
    next.plan.set(slot.key, (next.plan.get(slot.key) ?? 0) + 1);
  }
  if (busy) next.busy.set(busy.key, (next.busy.get(busy.key) ?? 0) + 1);
  if (rate)
    next.rate.set(rate.key, {
      minute: rate.minute,
      count: rate.starts ? 1 : (next.rate.get(rate.key)?.count ?? 0) + 1,
    });
  return next;
}

/** Whether what is open under the id is what this close is about: a tombstone may have taken its place. */
export const mayClose = (item: QuotaItem, write: CloseWrite): boolean =>
  item.open.get(write.id)?.tombstone === write.entry.tombstone;

/** The item after a close that `mayClose` allows. */
export function afterClose(item: QuotaItem, write: CloseWrite): QuotaItem {
  const { entry, closeRecord } = write;
  const next = copy(item);
  next.open.delete(write.id);
  next.available += refundOf(write);
  next.spent += closeRecord.charge;
  next.settled += 1;
  next.last = closeRecord;
  if (write.releaseSlot && entry.slot !== '') next.plan.set(entry.slot, (next.plan.get(entry.slot) ?? 0) - 1);
  if (entry.busy) next.busy.set(entry.key, (next.busy.get(entry.key) ?? 0) - 1);
  return next;
}

const copy = (item: QuotaItem): QuotaItem => ({
  ...item,
  open: new Map(item.open),
  plan: new Map(item.plan),
  busy: new Map(item.busy),
  rate: new Map(item.rate),
});
