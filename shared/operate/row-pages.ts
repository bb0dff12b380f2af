/**
 * Port: reads parts of tables that are too large to read whole. Each call is a few requests at most, however large the
 * table is. Every method may throw a Failure.
 */
import type { DailySum } from '../billing/daily/daily-sums.ts';
import type { WrittenGrant } from '../billing/grant.ts';
import type { LedgerRow } from '../billing/ledger-row.ts';
import type { HealthEntry } from '../relay/ports/stores/channel-health.ts';
import type { Reading } from './sum-reader.ts';
import type { RawRow } from './row-tables.ts';

/** Tables of which a page shows a part. */
export type PagedTable = 'accounts' | 'keys';

export interface RowsWanted {
  table: PagedTable;
  /** The key of the row before the first. Absent: from the start of the table. */
  after?: string | undefined;
  /** Only rows whose attribute contains the text, or is it. */
  where?: { attribute: string; contains: string } | { attribute: string; is: string } | undefined;
  /** Rows to return at most. */
  limit: number;
}

export interface RowsFound {
  rows: RawRow[];
  /** Where the table goes on. Undefined: this was its end, so all rows that fit were seen. */
  next: string | undefined;
}

export interface LedgerPart {
  rows: Reading<LedgerRow>[];
  next: string | undefined;
}

export interface RowPages {
  /** Goes through some 2 MB of the table at most. A consistent read where it looks for an attribute that is a text. */
  rows(wanted: RowsWanted): Promise<RowsFound>;
  /** Rows by key; an absent one is left out. */
  rowsOf(table: PagedTable, keys: readonly string[]): Promise<RawRow[]>;
  /** The last ids first. A consistent read. */
  grants(account: string, limit: number): Promise<{ grants: WrittenGrant[]; isAll: boolean }>;
  /** Sums of an account's days by model, from this UTC day on, the newest first. A consistent read. */
  days(account: string, from: string, limit: number): Promise<{ days: Reading<DailySum>[]; isAll: boolean }>;
  /** Requests of an account, newest first. `before`: the id of the last one on the page before. */
  requests(account: string, before: string | undefined, limit: number): Promise<LedgerPart>;
  /** What is known against channels, by the key of the relay. */
  health(): Promise<ReadonlyMap<number, HealthEntry>>;
}
