import { type NanoYuan } from './amount.ts';

/**
 * An account's money and counters: one item, so that every change is one conditional write. Always
 * available + the sum of open amounts + spent = granted.
 */
export interface QuotaItem {
  account: string;
  available: NanoYuan;
  spent: NanoYuan;
  granted: NanoYuan;
  /** The number of closed reservations. The ledger has one row for each. */
  settled: number;
  open: Map<string, OpenEntry>;
  /** Calls counted on plan slots: `<item>@<first day>` -> calls. */
  plan: Map<string, number>;
  /** Calls in flight of keys with a concurrency limit: key -> calls. */
  busy: Map<string, number>;
  /** Calls of this minute of keys with a rate limit. */
  rate: Map<string, RateCount>;
  /** The last close, from which the ledger row of that write is made. */
  last: CloseRecord | undefined;
}

export interface RateCount {
  /** Minutes since the epoch. */
  minute: number;
  count: number;
}

/** An open reservation, with everything that is needed to close it. */
export interface OpenEntry {
  /** Unix seconds: the end of the invocation that holds it. */
  until: number;
  /** What was taken from `available`. */
  amount: NanoYuan;
  /** The cost of the input: charged when the reservation expires. */
  input: NanoYuan;
  /** First 12 hex digits of the key's hash. */
  key: string;
  model: string;
  /** As `formatPrice` writes it. */
  price: string;
  /** The plan slot that this call is counted on; empty: none. */
  slot: string;
  /** The key has a concurrency limit: a close decrements its count. */
  busy: boolean;
  official: boolean;
  /** Holds the id only, so that a late reserve under it fails. */
  tombstone: boolean;
}

export type CloseKind = 'settled' | 'released' | 'expired' | 'cancelled';

/** How a reservation was closed. */
export interface CloseRecord {
  id: string;
  kind: CloseKind;
  charge: NanoYuan;
  /** Unix seconds. */
  at: number;
  endpoint?: string | undefined;
  promptTokens?: number | undefined;
  completionTokens?: number | undefined;
  /** The upstream reported no usage, or an impossible one: token counts are the relay's own. */
  estimated?: boolean | undefined;
  /** How the answer ended: `completed`, `failed`, `client_gone`. */
  end?: string | undefined;
  /** Official calls: what the call would have cost. */
  cost?: NanoYuan | undefined;
}

export const openEntriesMax = 100;

export const emptyQuota = (account: string): QuotaItem => ({
  account,
  available: 0n,
  spent: 0n,
  granted: 0n,
  settled: 0,
  open: new Map(),
  plan: new Map(),
  busy: new Map(),
  rate: new Map(),
  last: undefined,
});

/** The amount that is held for calls in flight. */
export const reservedOf = ({ open }: QuotaItem): NanoYuan =>
  [...open.values()].reduce((sum, { amount }) => sum + amount, 0n);

/** By how much the item is out of balance; undefined: it is balanced. */
export function imbalance(item: QuotaItem): NanoYuan | undefined {
  const difference = item.available + reservedOf(item) + item.spent - item.granted;
  return difference === 0n ? undefined : difference;
}
