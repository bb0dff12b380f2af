import type { QuotaItem } from '../../shared/billing/quota-item.ts';
import {
  type CloseWrite,
  type ReserveWrite,
  type TombstoneWrite,
} from '../../shared/billing/quota-writes.ts';
import { afterClose, afterReserve, mayReserve } from '../support/quota-rules.ts';
import type { QuotaStore } from '../../shared/relay/ports/stores/quota-store.ts';
import { MemoryQuotaStore } from '../support/memory-quota-store.ts';
import type { Mutant } from './mutant.ts';

/** One write on an account's item, and what was asked for. */
export interface Change {
  account: string;
  before: QuotaItem | undefined;
  after: QuotaItem;
  reserve?: ReserveWrite | undefined;
  close?: CloseWrite | undefined;
}

/** The store in memory, which tells of each write that it does, as the table's stream would. */
export class StoredQuotas extends MemoryQuotaStore {
  readonly #mutant: Mutant | undefined;
  readonly #tell: (change: Change) => void;

  constructor(mutant: Mutant | undefined, tell: (change: Change) => void) {
    super();
    this.#mutant = mutant;
    this.#tell = tell;
  }

  override reserve(write: ReserveWrite): ReturnType<QuotaStore['reserve']> {
    return this.#recorded({ account: write.account, reserve: write }, () => {
      const item = this.items.get(write.account);
      if (item && mayReserve(this.#loosened(item, write), write) && !mayReserve(item, write)) {
        const next = afterReserve(item, write);
        this.items.set(write.account, next);
        return Promise.resolve({ done: true, item: next });
      }
      return super.reserve(write);
    });
  }

  override close(write: CloseWrite): ReturnType<QuotaStore['close']> {
    return this.#recorded({ account: write.account, close: write }, () => {
      const item = this.items.get(write.account);
      const open = item?.open.has(write.id) ?? false;
      if (item && (this.#mutant === 'no_settle_condition' || (this.#mutant === 'no_entry_check' && open))) {
        this.items.set(write.account, afterClose(item, write));
        return Promise.resolve({ done: true });
      }
      if (this.#mutant === 'slot_not_released') return super.close({ ...write, releaseSlot: false });
      if (this.#mutant === 'no_place_freed')
        return super.close({ ...write, entry: { ...write.entry, key: 'another' } });
      return super.close(write);
    });
  }

  override tombstone(write: TombstoneWrite): ReturnType<QuotaStore['tombstone']> {
    if (this.#mutant === 'no_tombstone') return Promise.resolve({ done: true });
    return this.#recorded({ account: write.account }, () => super.tombstone(write));
  }

  override create(account: string): Promise<void> {
    return this.#recorded({ account }, () => super.create(account));
  }

  override grant(account: string, amount: bigint): void {
    this.#recorded({ account }, () => super.grant(account, amount));
  }

  /** The item as a store that lacks a condition would see it. */
  #loosened(item: QuotaItem, { id, slot }: ReserveWrite): QuotaItem {
    if (this.#mutant === 'no_balance_check') return { ...item, available: 10n ** 30n };
    if (this.#mutant === 'no_duplicate_guard')
      return { ...item, open: new Map([...item.open].filter(([other]) => other !== id)) };
    if (this.#mutant === 'no_slot_limit')
      return { ...item, plan: new Map([...item.plan].filter(([key]) => key !== slot?.key)) };
    return item;
  }

  /** Every write of the base class is done before it first waits. */
  #recorded<T>(change: Omit<Change, 'before' | 'after'>, write: () => T): T {
    const before = this.items.get(change.account);
    const reply = write();
    const after = this.items.get(change.account);
    if (after && after !== before) this.#tell({ ...change, before, after });
    return reply;
  }
}
