import { type ShardChange, type ShardsWrite, mergeShards } from '../../shared/billing/shards.ts';
import { countersMax } from '../../shared/billing/shares.ts';
import {
  createQuotaItem,
  type CloseKind,
  type QuotaItem,
  overdraws,
  refundOf,
  type CloseWrite,
  type AccountShard,
  type RenewWrite,
  type ReserveWrite,
  type TombstoneWrite,
} from '../../shared/billing/quota-item.ts';
import type { LateCharge, QuotaStore, WriteReply } from '../../shared/relay/ports/money-stores.ts';
import { afterChange, afterLateCharge, mayChange } from './parts-rules.ts';
import { afterClose, afterRenew, afterReserve, mayClose, mayRenew, mayReserve } from './quota-rules.ts';

/** The name of a part in `items`: part 0 has the account's own name. */
export const nameOf = ({ account, shard: part = 0 }: AccountShard): string =>
  part === 0 ? account : `${account}#${part}`;

/** The quota store in memory; it passes the same contract as the DynamoDB adapter. */
export class MemoryQuotaStore implements QuotaStore {
  readonly items = new Map<string, QuotaItem>();
  /** Operations so far, by name. */
  readonly calls: string[] = [];
  /** The numbers of parts that are read with keys. */
  readonly parts = new Map<string, number>();
  /** The ledger's rows, as far as the store reads them. */
  readonly closed = new Map<string, CloseKind>();
  readonly late = new Map<string, LateCharge>();

  grant(account: string, amount: bigint): void {
    const item = this.items.get(account) ?? createQuotaItem(account);
    this.items.set(account, { ...item, available: item.available + amount, granted: item.granted + amount });
  }

  async reserve(write: ReserveWrite): ReturnType<QuotaStore['reserve']> {
    this.calls.push('reserve');
    const item = this.items.get(nameOf(write));
    if (!item || !mayReserve(item, write)) return { done: false, item };
    const next = afterReserve(item, write);
    this.items.set(nameOf(write), next);
    return { done: true, item: next };
  }

  async close(write: CloseWrite): ReturnType<QuotaStore['close']> {
    this.calls.push('close');
    const item = this.items.get(nameOf(write));
    if (item && mayClose(item, write)) this.markOverdraft(item, -refundOf(write));
    const reply = this.#write(write, mayClose, afterClose);
    if (reply.done) this.closed.set(`${write.account} ${write.id}`, write.closeRecord.kind);
    return reply;
  }

  async tombstone(write: TombstoneWrite): ReturnType<QuotaStore['tombstone']> {
    this.calls.push('tombstone');
    const isFree = (item: QuotaItem): boolean => !item.open.has(write.id);
    return this.#write(write, isFree, (item) => ({
      ...item,
      open: new Map([...item.open, [write.id, write.entry]]),
    }));
  }

  async renew(write: RenewWrite): ReturnType<QuotaStore['renew']> {
    this.calls.push('renew');
    return this.#write(write, mayRenew, afterRenew);
  }

  async create(account: string, part = 0): Promise<void> {
    this.calls.push('create');
    const first = this.items.get(account) ?? createQuotaItem(account);
    this.items.set(account, part > 0 ? { ...first, counters: countersMax } : first);
    const name = nameOf({ account, shard: part });
    if (!this.items.has(name)) this.items.set(name, createQuotaItem(account, part));
  }

  /** The account as if it had one part. Undefined for an unknown account. */
  whole(account: string): QuotaItem | undefined {
    const parts = [...this.items.values()].filter((item) => item.account === account);
    const [first, ...others] = parts.toSorted((a, b) => a.shard - b.shard);
    return first && mergeShards([first, ...others]);
  }

  async read(account: string, parts: number): Promise<QuotaItem[]> {
    this.calls.push('read');
    return Array.from({ length: parts }, (_, part) =>
      this.items.get(nameOf({ account, shard: part })),
    ).filter((item) => item !== undefined);
  }

  async move(write: ShardsWrite): Promise<boolean> {
    this.calls.push('move');
    const { account, changes } = write;
    const before = (change: ShardChange) => this.items.get(nameOf({ account, shard: change.shard }));
    if (!changes.every((change) => mayChange(before(change), change, write))) return false;
    for (const change of changes)
      this.items.set(nameOf({ account, shard: change.shard }), afterChange(before(change), change, write));
    if (write.shardCount !== undefined) this.parts.set(account, write.shardCount);
    return true;
  }

  async chargeLate(charge: LateCharge): Promise<void> {
    this.calls.push('chargeLate');
    const { account, id } = charge.row;
    const item = this.items.get(account);
    if (!item || this.late.has(`${account} ${id}`)) return;
    this.late.set(`${account} ${id}`, charge);
    if (!charge.row.metered) this.markOverdraft(item, charge.difference);
    this.items.set(account, afterLateCharge(this.items.get(account) ?? item, charge));
  }

  async closedAs(account: string, id: string): Promise<CloseKind | undefined> {
    this.calls.push('closedAs');
    return this.closed.get(`${account} ${id}`);
  }

  /** Called as part of the write that takes this amount from a part. */
  protected markOverdraft(from: QuotaItem, taken: bigint): void {
    if (!overdraws(from, taken)) return;
    for (const [name, item] of this.items)
      if (item.account === from.account && (item.shard < from.shardCount || item.shard === from.shard))
        this.items.set(name, { ...item, overdraft: true });
  }

  #write<Write extends AccountShard>(
    write: Write,
    may: (item: QuotaItem, write: Write) => boolean,
    after: (item: QuotaItem, write: Write) => QuotaItem,
  ): WriteReply {
    const item = this.items.get(nameOf(write));
    if (!item || !may(item, write)) return { done: false, item };
    this.items.set(nameOf(write), after(item, write));
    return { done: true };
  }
}
