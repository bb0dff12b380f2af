import { type ShardsWrite } from '../../shared/billing/shards.ts';
import { divideEvenly } from '../../shared/billing/shares.ts';
import type {
  QuotaItem,
  CloseWrite,
  RenewWrite,
  ReserveWrite,
  TombstoneWrite,
} from '../../shared/billing/quota-item.ts';
import { afterClose, afterReserve, mayReserve } from '../support/quota-rules.ts';
import type { LateCharge, QuotaStore } from '../../shared/relay/ports/money-stores.ts';
import { MemoryQuotaStore, nameOf } from '../support/memory-quota-store.ts';
import type { Mutant } from './mutant.ts';

/** One write on a part of an account, with its request. */
export interface Change {
  account: string;
  before: QuotaItem | undefined;
  after: QuotaItem;
  /** All parts of the account after the write. */
  parts: readonly QuotaItem[];
  reserve?: ReserveWrite | undefined;
  close?: CloseWrite | undefined;
  late?: LateCharge | undefined;
  move?: ShardsWrite | undefined;
  renew?: RenewWrite | undefined;
  /** The amount of a grant. */
  amount?: bigint | undefined;
}

/** The in-memory store, which reports each write as the table's stream would. */
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
      if (item && this.#mutant === 'no_reserve') return Promise.resolve({ done: true, item });
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

  override renew(write: RenewWrite): ReturnType<QuotaStore['renew']> {
    return this.#recorded({ account: write.account, renew: write }, () => super.renew(write));
  }

  override chargeLate(late: LateCharge): Promise<void> {
    const { account, id } = late.row;
    if (this.#mutant === 'late_twice') this.late.delete(`${account} ${id}`);
    return this.#recorded({ account, late }, () => super.chargeLate(late));
  }

  override move(write: ShardsWrite): Promise<boolean> {
    return this.#recorded({ account: write.account, move: write }, () => {
      const reply = super.move(write);
      if (this.#mutant === 'split_with_open' && write.shardCount !== undefined)
        this.#moveEntries(write.account);
      return reply;
    });
  }

  /** Moves the open entries of part 0 to part 1, with their amounts, so the sums still balance. */
  #moveEntries(account: string): void {
    const [from, to] = this.partsOf(account);
    if (!from || !to) return;
    const amount = [...from.open.values()].reduce((sum, entry) => sum + entry.amount, 0n);
    this.items.set(nameOf(from), { ...from, open: new Map(), moved: from.moved - amount });
    const open = new Map([...to.open, ...from.open]);
    this.items.set(nameOf(to), { ...to, open, moved: to.moved + amount });
  }

  protected override markOverdraft(from: QuotaItem, taken: bigint): void {
    if (this.#mutant !== 'no_overdraft') super.markOverdraft(from, taken);
  }

  override create(account: string, part = 0): Promise<void> {
    return this.#recorded({ account }, () => super.create(account, part));
  }

  /** In one transaction on the parts in use, like the grants' store. */
  override grant(account: string, amount: bigint): void {
    this.#recorded({ account, amount }, () => {
      const all = this.partsOf(account);
      const used = all.filter(({ shard: part }) => part < (all[0]?.shardCount ?? 1));
      const marks = used.length > 1 && amount < 0n && this.#mutant !== 'no_overdraft';
      for (const [part, share] of divideEvenly(amount, Math.max(1, used.length)).entries()) {
        const name = nameOf({ account, shard: part });
        super.grant(name, share);
        const item = this.items.get(name);
        if (item && marks) this.items.set(name, { ...item, overdraft: true });
      }
    });
  }

  /** All parts, starting with part 0. */
  partsOf(account: string): QuotaItem[] {
    const parts: QuotaItem[] = [];
    for (const item of this.items.values()) if (item.account === account) parts.push(item);
    return parts.toSorted((a, b) => a.shard - b.shard);
  }

  /** The item as a store without a condition would see it. */
  #loosened(item: QuotaItem, { id, slot }: ReserveWrite): QuotaItem {
    if (this.#mutant === 'no_balance_check') return { ...item, available: 10n ** 30n };
    if (this.#mutant === 'overdraft_served') return { ...item, overdraft: undefined };
    if (this.#mutant === 'no_duplicate_guard')
      return { ...item, open: new Map([...item.open].filter(([other]) => other !== id)) };
    if (this.#mutant === 'no_slot_limit')
      return { ...item, plan: new Map([...item.plan].filter(([key]) => key !== slot?.key)) };
    return item;
  }

  /** Every write of the base class is done before it first waits. A transaction changes several parts. */
  #recorded<T>(change: Omit<Change, 'before' | 'after' | 'parts'>, write: () => T): T {
    const before = new Map(this.items);
    const reply = write();
    const parts = this.partsOf(change.account);
    const { account, close, late } = change;
    const own = close?.shard ?? 0;
    // The charge that overdraws its part is reported first; the other parts get only the mark.
    for (const after of parts.toSorted((a, b) => Number(b.shard === own) - Number(a.shard === own))) {
      const earlier = before.get(nameOf(after));
      if (after === earlier) continue;
      const told = (close || late) && after.shard !== own ? { account } : change;
      this.#tell({ ...told, before: earlier, after, parts });
    }
    return reply;
  }
}
