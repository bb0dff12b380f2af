import type { PartsWrite } from '../../shared/billing/parts/parts-write.ts';
import type { QuotaItem } from '../../shared/billing/quota-item.ts';
import {
  type CloseWrite,
  type ReserveWrite,
  type TombstoneWrite,
} from '../../shared/billing/quota-writes.ts';
import { afterClose, afterReserve, mayReserve } from '../support/quota-rules.ts';
import type { LateCharge, QuotaStore } from '../../shared/relay/ports/stores/quota-store.ts';
import { MemoryQuotaStore, nameOf } from '../support/memory-quota-store.ts';
import type { Mutant } from './mutant.ts';

/** One write on a part of an account, and what was asked for. */
export interface Change {
  account: string;
  before: QuotaItem | undefined;
  after: QuotaItem;
  /** The account after the write as if it had one part. */
  whole: QuotaItem;
  reserve?: ReserveWrite | undefined;
  close?: CloseWrite | undefined;
  late?: LateCharge | undefined;
  move?: PartsWrite | undefined;
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
      const item = this.items.get(nameOf(write));
      if (item && mayReserve(this.#loosened(item, write), write) && !mayReserve(item, write)) {
        const next = afterReserve(item, write);
        this.items.set(nameOf(write), next);
        return Promise.resolve({ done: true, item: next });
      }
      return super.reserve(write);
    });
  }

  override close(write: CloseWrite): ReturnType<QuotaStore['close']> {
    return this.#recorded({ account: write.account, close: write }, () => {
      const item = this.items.get(nameOf(write));
      const open = item?.open.has(write.id) ?? false;
      if (item && (this.#mutant === 'no_settle_condition' || (this.#mutant === 'no_entry_check' && open))) {
        this.items.set(nameOf(write), afterClose(item, write));
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

  override chargeLate(late: LateCharge): Promise<void> {
    return this.#recorded({ account: late.row.account, late }, () => super.chargeLate(late));
  }

  override move(write: PartsWrite): Promise<boolean> {
    return this.#recorded({ account: write.account, move: write }, () => super.move(write));
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

  /** Every write of the base class is done before it first waits. A transaction changes several parts. */
  #recorded<T>(change: Omit<Change, 'before' | 'after' | 'whole'>, write: () => T): T {
    const before = new Map(this.items);
    const reply = write();
    const whole = this.whole(change.account);
    for (const [name, after] of this.items)
      if (whole && after !== before.get(name))
        this.#tell({ ...change, before: before.get(name), after, whole });
    return reply;
  }
}
