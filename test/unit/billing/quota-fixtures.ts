import {
  createQuotaItem,
  type OpenEntry,
  type QuotaItem,
  type CloseWrite,
  type ReserveWrite,
} from '../../../shared/billing/quota-item.ts';

export const entry = (more: Partial<OpenEntry> = {}): OpenEntry => ({
  until: 1_795_219_800,
  amount: 0n,
  input: 0n,
  key: 'key1',
  model: 'm',
  price: '1:call:1',
  slot: '',
  official: false,
  tombstone: false,
  ...more,
});

/** An account's item with a balance. */
export const quota = (available: bigint, more: Partial<QuotaItem> = {}): QuotaItem => ({
  ...createQuotaItem('acme'),
  available,
  granted: available,
  ...more,
});

export const reserveWrite = (amount: bigint, more: Partial<ReserveWrite> = {}): ReserveWrite => ({
  account: 'acme',
  id: 'call1',
  entry: entry({ amount, slot: more.slot?.key ?? '' }),
  ...more,
});

export const closeWrite = (reserve: ReserveWrite, charge: bigint, releaseSlot = false): CloseWrite => ({
  account: reserve.account,
  id: reserve.id,
  entry: reserve.entry,
  releaseSlot,
  closeRecord: { id: reserve.id, kind: releaseSlot ? 'released' : 'settled', charge, at: 1 },
});
