/** Accounts, entries and writes for the contract of the quota store; a test names only the fields that matter. */
import {
  createQuotaItem,
  type CloseKind,
  type OpenEntry,
  type QuotaItem,
  type CloseWrite,
  type ReserveWrite,
} from '../../shared/billing/quota-item.ts';
import type { QuotaStore } from '../../shared/relay/ports/money-stores.ts';

/** A store under test, with direct access to put an item and to read the result. */
export interface OpenedStore {
  store: QuotaStore;
  put(item: QuotaItem): Promise<void>;
  read(account: string, part?: number): Promise<QuotaItem | undefined>;
  /** Returns the number of parts that is read together with a key. */
  partsWithKey(account: string): Promise<number | undefined>;
}

export const key = '0123456789ab';
export const minute = 29_000_000;
export const now = 1_763_700_000;

export const entryOf = (entry: Partial<OpenEntry> = {}): OpenEntry => ({
  until: now + 600,
  amount: 0n,
  input: 1n,
  key,
  model: 'm',
  price: '1:tokens:0.001:0.002',
  slot: '',
  official: false,
  tombstone: false,
  ...entry,
});

/** An item with balanced reservations: `granted` is derived from the rest unless it is given. */
export function itemOf(account: string, given: Partial<QuotaItem>): QuotaItem {
  const item = { ...createQuotaItem(account), ...given };
  let open = 0n;
  for (const { amount } of item.open.values()) open += amount;
  return { ...item, granted: given.granted ?? item.available + open + item.spent };
}

export type ReserveWish = Omit<Partial<ReserveWrite>, 'account'> & { amount?: bigint };

/** A reserve of `amount` under `id`; its entry names the slot of the write. */
export function reserveOf(account: string, { amount = 0n, ...wish }: ReserveWish): ReserveWrite {
  const entry = entryOf({ amount, slot: wish.slot?.key ?? '' });
  return { account, id: 'call', entry, ...wish };
}

export interface CloseWish {
  id?: string;
  entry: OpenEntry;
  charge?: bigint;
  kind?: CloseKind;
  releaseSlot?: boolean;
}

export function closeOf(account: string, wish: CloseWish): CloseWrite {
  const { id = 'call', entry, charge = 0n, kind = 'settled', releaseSlot = false } = wish;
  return { account, id, entry, releaseSlot, closeRecord: { id, kind, charge, at: now } };
}

export const slot = (limit: number | null, itemId = 'plan') => ({
  key: `${itemId}@2026-11-01`,
  staleKey: `${itemId}@2026-09-01`,
  limit,
});
