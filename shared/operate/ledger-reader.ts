/** Port: what operators read of money: account items, ledger rows, grants. Writes nothing but a lost close. */
import type { WrittenGrant } from '../billing/grant.ts';
import type { LedgerRow } from '../billing/ledger-row.ts';
import type { QuotaItem } from '../billing/quota-item.ts';
import type { QuotaStore } from '../relay/ports/quota-store.ts';

/** A row of a table that functions write. One that cannot be read is a finding; the others are still read. */
export type Reading<Row> = { row: Row } | { key: string; problem: string };

export interface LedgerSelection {
  account?: string | undefined;
  /** Epoch milliseconds, inclusive: when the call began. */
  fromMs?: number | undefined;
  /** Epoch milliseconds, exclusive. */
  toMs?: number | undefined;
}

/** Reads are consistent, amounts exact. Every method throws a Failure. */
export interface LedgerReader {
  quota(account: string): Promise<Reading<QuotaItem> | undefined>;
  accounts(): AsyncIterable<string[]>;
  /** Page by page; of one account requests come first, by time, then grants. */
  ledger(selection: LedgerSelection): AsyncIterable<Reading<LedgerRow>[]>;
  /** The row of a request, whichever account it belongs to. */
  request(id: string): Promise<Reading<LedgerRow> | undefined>;
  grants(account?: string): AsyncIterable<WrittenGrant[]>;
  /** Closes a reservation by the same conditional write as the relay does. */
  close: QuotaStore['close'];
}
