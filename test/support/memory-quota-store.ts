import { emptyQuota, type OpenEntry, type QuotaItem } from '../../shared/billing/quota-item.ts';
import { type CloseWrite, type ReserveWrite } from '../../shared/billing/quota-writes.ts';
import { afterClose, afterReserve, mayClose, mayReserve } from './quota-rules.ts';
import type { QuotaStore } from '../../shared/relay/ports/stores/quota-store.ts';

/** The quota store in memory: passes the same contract suite as the DynamoDB adapter. */
export class MemoryQuotaStore implements QuotaStore {
  readonly items = new Map<string, QuotaItem>();
  /** Operations so far, by name. */
  readonly calls: string[] = [];

  grant(account: string, amount: bigint): void {
    const item = this.items.get(account) ?? emptyQuota(account);
    this.items.set(account, { ...item, available: item.available + amount, granted: item.granted + amount });
  }

  async reserve(write: ReserveWrite): ReturnType<QuotaStore['reserve']> {
    this.calls.push('reserve');
    const item = this.items.get(write.account);
    if (!item || !mayReserve(item, write)) return { done: false, item };
    const next = afterReserve(item, write);
    this.items.set(write.account, next);
    const slotCount = write.slot && next.plan.get(write.slot.key);
    const rateCount = write.rate && next.rate.get(write.rate.key)?.count;
    return { done: true, returned: { available: next.available, slotCount, rateCount } };
  }

  async close(write: CloseWrite): ReturnType<QuotaStore['close']> {
    this.calls.push('close');
    const item = this.items.get(write.account);
    if (!item || !mayClose(item, write)) return { done: false, item };
    this.items.set(write.account, afterClose(item, write));
    return { done: true };
  }

  async tombstone(account: string, id: string, entry: OpenEntry): ReturnType<QuotaStore['tombstone']> {
    this.calls.push('tombstone');
    const item = this.items.get(account);
    if (!item || item.open.has(id)) return { done: false, item };
    this.items.set(account, { ...item, open: new Map([...item.open, [id, entry]]) });
    return { done: true };
  }

  async create(account: string): Promise<void> {
    this.calls.push('create');
    if (!this.items.has(account)) this.items.set(account, emptyQuota(account));
  }
}
