/** What the account endpoints and the operators' tool read of the books: the port, and a ledger row's shape. */
import type { NanoYuan } from '../billing/amount.ts';
import type { CloseKind, QuotaItem } from '../billing/quota-item.ts';
import { requestTimeMs } from './request-time.ts';

/** A row of the table `ledger`: one close of a reservation, or one grant. */
export interface LedgerRow {
  account: string;
  /** The request id; `grant#<grant id>` for a grant. */
  id: string;
  /** When it was booked, in epoch milliseconds. */
  at: number;
  kind: CloseKind | 'grant';
  endpoint?: string | undefined;
  model?: string | undefined;
  /** First 12 hex digits of the key's hash. */
  key?: string | undefined;
  charge: NanoYuan;
  reserved: NanoYuan;
  promptTokens?: number | undefined;
  completionTokens?: number | undefined;
  estimated: boolean;
  end?: string | undefined;
  /** As `formatPrice` writes it. */
  price?: string | undefined;
  planSlot?: string | undefined;
  official: boolean;
  /** Official calls: what the call would have cost. */
  cost?: NanoYuan | undefined;
  /** Grants alone. */
  amount?: NanoYuan | undefined;
  reason?: string | undefined;
}

export interface AccountReader {
  /** Undefined: the account has no item yet, so it has neither money nor counts. Throws StoreUnavailable. */
  quota(account: string): Promise<QuotaItem | undefined>;
  /** Closes with ids below `beforeId`, newest first, at most `limit`. Throws StoreUnavailable. */
  requests(account: string, beforeId: string, limit: number): Promise<LedgerRow[]>;
  /** All grants of the account, in no order. Throws StoreUnavailable. */
  grants(account: string): Promise<LedgerRow[]>;
}

/** Grants sort after all requests: their ids begin with this. */
export const grantPrefix = 'grant#';

/** What rows are ordered by: when the call began, for it is in the id; a grant has only the time it was booked. */
export const ledgerTimeMs = (row: Pick<LedgerRow, 'id' | 'at'>): number => requestTimeMs(row.id) ?? row.at;
