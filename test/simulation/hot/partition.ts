import { findCloseRow, type CloseRow } from '../../../shared/billing/ledger-row.ts';
import type { QuotaItem, AccountShard } from '../../../shared/billing/quota-item.ts';
import type { Clock } from '../../../shared/relay/ports/host.ts';
import type { QuotaStore } from '../../../shared/relay/ports/money-stores.ts';
import { nameOf, type MemoryQuotaStore } from '../../support/memory-quota-store.ts';
import { hash53 } from '../../../shared/wire/ids.ts';
import { Bucket, writeUnitsPerSecond } from './bucket.ts';

const readUnitsPerSecond = 3_000;
const unitBytes = 1_024;
const readUnitBytes = 4_096;
/** Bytes as DynamoDB counts them: names, values, one byte per list element, three per list or map. */
const itemBytes = 240;
const entryBytes = 112;
const placeBytes = 29;

/** The size of an item with ids, keys and prices of the usual lengths. */
export function sizeOf({ open, permits: places, plan }: QuotaItem): number {
  let bytes = itemBytes + entryBytes * open.size + 24 * plan.size;
  for (const ids of places.values()) bytes += 22 + placeBytes * ids.size;
  return bytes;
}

/**
 * One DynamoDB partition that holds all parts of an account and never gets faster; or the partitions of a table, over
 * which parts are spread by their keys. A write costs the larger size of the item before and after it; a rejected write
 * costs the same, a throttled one nothing, and a transaction double.
 */
export class Partition implements QuotaStore {
  readonly #inner: MemoryQuotaStore;
  readonly #clock: Clock;
  readonly #random: () => number;
  /** The write bucket of the first partition. */
  readonly writes: Bucket;
  readonly spread: readonly Bucket[];
  readonly reads: Bucket;
  transactions = 0;
  /** Called with each ledger row that results from a write. */
  onRow: (row: CloseRow) => void = () => {};

  constructor(inner: MemoryQuotaStore, clock: Clock, random: () => number, partitions = 1) {
    this.#inner = inner;
    this.#clock = clock;
    this.#random = random;
    this.spread = Array.from({ length: partitions }, () => new Bucket(clock, writeUnitsPerSecond));
    [this.writes = new Bucket(clock, writeUnitsPerSecond)] = this.spread;
    this.reads = new Bucket(clock, readUnitsPerSecond);
  }

  reserve: QuotaStore['reserve'] = (write) => this.#write([write], 1, () => this.#inner.reserve(write));
  close: QuotaStore['close'] = (write) =>
    this.#write([write], 1, () => {
      const item = (): QuotaItem | undefined => this.#inner.items.get(nameOf(write));
      const before = item();
      const reply = this.#inner.close(write);
      const row = findCloseRow(before, item());
      if (row) this.onRow(row);
      return reply;
    });
  renew: QuotaStore['renew'] = (write) => this.#write([write], 1, () => this.#inner.renew(write));
  tombstone: QuotaStore['tombstone'] = (write) => this.#write([write], 1, () => this.#inner.tombstone(write));
  create: QuotaStore['create'] = async (account, part = 0) => {
    if (part > 0) await this.#write([{ account }], 1, async () => undefined);
    await this.#write([{ account, shard: part }], 1, () => this.#inner.create(account, part));
  };
  closedAs: QuotaStore['closedAs'] = (account, id) => this.#inner.closedAs(account, id);

  move: QuotaStore['move'] = (write) => {
    const parts = write.changes.map(({ shard }) => ({ account: write.account, shard }));
    this.transactions += 1;
    return this.#write(parts, 2, () => this.#inner.move(write));
  };

  chargeLate: QuotaStore['chargeLate'] = async (charge) => {
    await this.#write([{ account: charge.row.account }], 2, () => this.#inner.chargeLate(charge));
    this.onRow(charge.row);
  };

  read: QuotaStore['read'] = async (account, parts, exact) => {
    await this.#clock.sleep(5 + 6 * this.#random());
    const images = await this.#inner.read(account, parts);
    const units = images.reduce((sum, item) => sum + Math.ceil(sizeOf(item) / readUnitBytes), 0);
    this.reads.take(units * (exact ? 2 : 0.5));
    return images;
  };

  async #write<T>(parts: AccountShard[], factor: number, act: () => Promise<T>): Promise<T> {
    await this.#clock.sleep((2 + 4 * this.#random()) * factor);
    // An empty bucket rejects before anything is written.
    for (const part of parts) this.#bucketOf(part).take(0);
    const before = parts.map((part) => this.#units(part));
    const reply = await act();
    const taken = new Map<Bucket, number>();
    for (const [at, part] of parts.entries()) {
      const bucket = this.#bucketOf(part);
      const units = factor * Math.max(before[at] ?? 0, this.#units(part));
      taken.set(bucket, (taken.get(bucket) ?? 0) + units);
    }
    for (const [bucket, units] of taken) bucket.take(units);
    return reply;
  }

  #bucketOf(part: AccountShard): Bucket {
    return this.spread[hash53(nameOf(part)) % this.spread.length] ?? this.writes;
  }

  #units(part: AccountShard): number {
    const item = this.#inner.items.get(nameOf(part));
    return item ? Math.ceil(sizeOf(item) / unitBytes) : 1;
  }
}
