/**
 * The effect of the reservations' conditional writes on a part of an account, in plain code. The memory store runs on
 * it, and DynamoDB's expressions are compared with it.
 */
import {
  type QuotaItem,
  type RateCount,
  refundOf,
  type CloseWrite,
  type RateWrite,
  type RenewWrite,
  type ReserveWrite,
} from '../../shared/billing/quota-item.ts';

/** Whether each condition of a reserve holds, like the store's condition expression. */
export function mayReserve(item: QuotaItem, write: ReserveWrite): boolean {
  const { slot, permit: place, rate, entry, balanceNeeded: atLeast = entry.amount } = write;
  if (item.open.has(write.id)) return false;
  if ([...(write.uncountedLeases ?? [])].some(([id, until]) => item.open.get(id)?.until !== until))
    return false;
  if (write.openMax !== undefined && item.open.size >= write.openMax) return false;
  if (write.shardCount !== undefined && item.shardCount !== write.shardCount) return false;
  if (!entry.metered && entry.amount > 0n && (item.available < atLeast || item.overdraft)) return false;
  if (slot && slot.limit !== null && (item.plan.get(slot.key) ?? 0) >= slot.limit) return false;
  if (place && (item.permits.get(place.key)?.size ?? 0) >= place.max) return false;
  if (!rate) return true;
  const { max = Infinity, tokensMax = Infinity } = rate;
  const counted = item.rate;
  if (rate.starts)
    return (counted === undefined || counted.minute < rate.minute) && Math.min(max, tokensMax) > 0;
  return counted?.minute === rate.minute && counted.count < max && (counted.tokens ?? 0) < tokensMax;
}

/** The item after a reserve that `mayReserve` allows. */
export function afterReserve(item: QuotaItem, write: ReserveWrite): QuotaItem {
  const { slot, permit: place, rate } = write;
  const next = copy(item);
  if (!write.entry.metered) next.available -= write.entry.amount;
  next.open.set(write.id, write.entry);
  if (slot) {
    next.plan.delete(slot.staleKey);
    next.plan.set(slot.key, (next.plan.get(slot.key) ?? 0) + 1);
  }
  if (place) next.permits.set(place.key, new Set([...(next.permits.get(place.key) ?? []), write.id]));
  if (rate) next.rate = counted(rate, next);
  return next;
}

function counted({ minute, tokens, starts }: RateWrite, item: QuotaItem): RateCount {
  const before = starts ? undefined : item.rate;
  return { minute, count: (before?.count ?? 0) + 1, tokens: (before?.tokens ?? 0) + tokens };
}

/** Whether the open entry under the id is the one to close: a tombstone may have taken its place. */
export function mayClose(item: QuotaItem, { id, entry, ifNotRenewed }: CloseWrite): boolean {
  const open = item.open.get(id);
  return isOpenAs(item, id, entry) && (!ifNotRenewed || open?.until === entry.until);
}

/** The item after a close that `mayClose` allows. */
export function afterClose(item: QuotaItem, write: CloseWrite): QuotaItem {
  const { entry, closeRecord } = write;
  const next = copy(item);
  next.open.delete(write.id);
  next.available += refundOf(write);
  next.spent += closeRecord.charge;
  if (entry.metered) next.metered = (next.metered ?? 0n) + closeRecord.charge;
  next.settled += 1;
  next.last = closeRecord;
  if (write.releaseSlot && entry.slot !== '') next.plan.set(entry.slot, (next.plan.get(entry.slot) ?? 0) - 1);
  const minute = next.rate;
  if (write.rateTokens !== undefined && minute)
    next.rate = { ...minute, tokens: (minute.tokens ?? 0) + write.rateTokens };
  dropPlaces(next, entry.key, [write.id]);
  return next;
}

export const mayRenew = (item: QuotaItem, { id, entry }: RenewWrite): boolean => isOpenAs(item, id, entry);

export function afterRenew(item: QuotaItem, { id, until }: RenewWrite): QuotaItem {
  const next = copy(item);
  const entry = next.open.get(id);
  if (entry) next.open.set(id, { ...entry, until });
  return next;
}

/** Whether an entry with the same flags is open, which a close and a renewal require. */
function isOpenAs(
  item: QuotaItem,
  id: string,
  { tombstone, official, metered = false, queued = false }: ReserveWrite['entry'],
): boolean {
  const open = item.open.get(id);
  if (open?.tombstone !== tombstone || open.official !== official) return false;
  return (open.metered ?? false) === metered && (open.queued ?? false) === queued;
}

/** An empty set is removed, as in DynamoDB. */
function dropPlaces(item: QuotaItem, key: string, ids: string[]): void {
  const left = [...(item.permits.get(key) ?? [])].filter((id) => !ids.includes(id));
  if (left.length > 0) item.permits.set(key, new Set(left));
  else item.permits.delete(key);
}

export const copy = (item: QuotaItem): QuotaItem => ({
  ...item,
  open: new Map(item.open),
  plan: new Map(item.plan),
  permits: new Map(item.permits),
});
