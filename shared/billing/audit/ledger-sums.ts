import type { NanoYuan } from '../amount.ts';
import { type LedgerRow, ledgerTimeMs } from '../ledger-row.ts';
import type { QuotaItem } from '../quota-item.ts';

/** The item may lack calls that began within this time before it was read, or later. */
const doubtMs = 10_000;

/** What rows add up to. `slots`: calls counted on plan slots. */
interface Sums {
  closes: number;
  charged: NanoYuan;
  granted: NanoYuan;
  slots: Map<string, number>;
}

const nothing = (): Sums => ({ closes: 0, charged: 0n, granted: 0n, slots: new Map() });

/**
 * What an account's ledger rows add up to, row by row, so that any number of them needs the same memory. Rows that
 * were closed after the item was read are left out, because the item still lists them as open; an id with a
 * tombstone counts as closed.
 */
export class LedgerSums {
  /** Rows whose reservation is closed in the item. */
  readonly all = nothing();
  /** Those without the rows that may or may not be in the item. */
  readonly sure = nothing();
  /** Applied grants, by ledger id. */
  readonly grants = new Map<string, NanoYuan>();
  rows = 0;
  readonly #item: QuotaItem;
  readonly #readMs: number;

  constructor(item: QuotaItem, readMs: number) {
    this.#item = item;
    this.#readMs = readMs;
  }

  add(row: LedgerRow): void {
    this.rows += 1;
    if (row.kind === 'grant') this.grants.set(row.id, row.amount);
    const isClosed = this.#item.open.get(row.id)?.tombstone ?? true;
    if (!isClosed) return;
    addRow(this.all, row);
    if (ledgerTimeMs(row) < this.#readMs - doubtMs) addRow(this.sure, row);
  }
}

function addRow(sums: Sums, row: LedgerRow): void {
  if (row.kind === 'grant') {
    sums.granted += row.amount;
    return;
  }
  sums.closes += 1;
  sums.charged += row.charge;
  if (row.plan_slot !== undefined) sums.slots.set(row.plan_slot, (sums.slots.get(row.plan_slot) ?? 0) + 1);
}
