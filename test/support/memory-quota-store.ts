import { emptyQuota, type QuotaItem } from '../../shared/billing/quota-item.ts';
import type {
  CloseWrite,
  FreePlacesWrite,
  PartOfAccount,
  RenewWrite,
  ReserveWrite,
  TombstoneWrite,
} from '../../shared/billing/quota-writes.ts';
import type { QuotaStore, WriteReply } from '../../shared/relay/ports/stores/quota-store.ts';
import {
  afterClose,
  afterFreePlaces,
  afterRenew,
  afterReserve,
  mayClose,
  mayFreePlaces,
  mayRenew,
  mayReserve,
} from './quota-rules.ts';

/** The name of a part in `items`: part 0 has the account's own. */
export const nameOf = ({ account, part = 0 }: PartOfAccount): string =>
  part === 0 ? account : `${account}#${part}`;

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
    const item = this.items.get(nameOf(write));
    if (!item || !mayReserve(item, write)) return { done: false, item };
    const next = afterReserve(item, write);
    this.items.set(nameOf(write), next);
    return { done: true, item: next };
  }

  async close(write: CloseWrite): ReturnType<QuotaStore['close']> {
    this.calls.push('close');
    return this.#write(write, mayClose, afterClose);
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

  async freePlaces(write: FreePlacesWrite): ReturnType<QuotaStore['freePlaces']> {
    this.calls.push('freePlaces');
    return this.#write(write, mayFreePlaces, afterFreePlaces);
  }

  async create(account: string): Promise<void> {
    this.calls.push('create');
    if (!this.items.has(account)) this.items.set(account, emptyQuota(account));
  }

  #write<Write extends PartOfAccount>(
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
