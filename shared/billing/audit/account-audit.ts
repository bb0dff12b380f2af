/** Compares one account's item with its ledger rows and its grants. Reads nothing itself. */
import { formatYuan, parseYuan, type NanoYuan } from '../amount.ts';
import { imbalance, reservedOf, type QuotaItem } from '../quota-item.ts';
import { type LedgerRow, ledgerTimeMs } from '../ledger-row.ts';
import { grantLedgerId, type WrittenGrant } from '../grant.ts';
import { isoTime } from '../../wire/iso-time.ts';

/** All that was read of an account; the item was read at `readMs`, the rows after it. */
export interface AccountRecords {
  account: string;
  item: QuotaItem;
  readMs: number;
  rows: LedgerRow[];
  grants: WrittenGrant[];
}

/** The sweeper closes a reservation sooner than this after its end. */
const overdueMs = 10 * 60_000;
/** A call that began this shortly before the item was read, or later, may not be in the item. */
const doubtMs = 10_000;

/** What does not add up, each in one line; empty when everything does. */
export function auditAccount(records: AccountRecords): string[] {
  const { account, item } = records;
  return [
    ...balanceFindings(item),
    ...ledgerFindings(records),
    ...openFindings(records),
    ...countFindings(records),
    ...grantFindings(records),
  ].map((finding) => `${account}: ${finding}`);
}

function balanceFindings(item: QuotaItem): string[] {
  const difference = imbalance(item);
  if (difference === undefined) return [];
  const parts = `available ${formatYuan(item.available)} + reserved ${formatYuan(reservedOf(item))} + spent ${formatYuan(item.spent)}`;
  return [`${parts} is not the granted ${formatYuan(item.granted)}: ${formatYuan(difference)} too much`];
}

interface Sums {
  closes: number;
  charged: NanoYuan;
  granted: NanoYuan;
}

/** Rows that may or may not be in the item widen the tolerance; a quiet account has none. */
function ledgerFindings(records: AccountRecords): string[] {
  const { item } = records;
  const [sure, all] = [sumsOf(sureRows(records)), sumsOf(closedRows(records))];
  const findings: string[] = [];
  if (item.settled < sure.closes)
    findings.push(
      `${item.settled} reservations were closed, but the ledger has ${sure.closes} rows of closes`,
    );
  if (!isBetween(item.spent, sure.charged, all.charged))
    findings.push(
      `spent is ${formatYuan(item.spent)}, but the ledger's charges add up to ${formatYuan(all.charged)}`,
    );
  if (!isBetween(item.granted, sure.granted, all.granted))
    findings.push(
      `granted is ${formatYuan(item.granted)}, but the ledger's grants add up to ${formatYuan(all.granted)}`,
    );
  return findings;
}

/**
 * Closes without a ledger row of their own. No finding while the sums agree: an id with a tombstone closes twice, the
 * second time with a charge of 0.
 */
export function closesWithoutRow(records: AccountRecords): number {
  return Math.max(0, records.item.settled - sumsOf(closedRows(records)).closes);
}

/** Rows closed after the item was read are still open in it and left out; an id under a tombstone is closed. */
const closedRows = ({ item, rows }: AccountRecords): LedgerRow[] =>
  rows.filter((row) => item.open.get(row.id)?.tombstone ?? true);

const sureRows = (records: AccountRecords): LedgerRow[] =>
  closedRows(records).filter((row) => ledgerTimeMs(row) < records.readMs - doubtMs);

const isBetween = (value: NanoYuan, a: NanoYuan, b: NanoYuan): boolean =>
  a < b ? a <= value && value <= b : b <= value && value <= a;

function sumsOf(rows: LedgerRow[]): Sums {
  const sums: Sums = { closes: 0, charged: 0n, granted: 0n };
  for (const row of rows) {
    if (row.kind === 'grant') sums.granted += row.amount;
    else {
      sums.closes += 1;
      sums.charged += row.charge;
    }
  }
  return sums;
}

function openFindings({ item, readMs }: AccountRecords): string[] {
  return [...item.open]
    .filter(([, entry]) => entry.until * 1000 + overdueMs < readMs)
    .map(
      ([id, entry]) =>
        `request ${id} is open, though it ended by ${isoTime(entry.until * 1000)}: does the sweeper run?`,
    );
}

/** The item's counters, counted again from its open entries and from ledger rows. */
function countFindings(records: AccountRecords): string[] {
  const { item } = records;
  const findings: string[] = [];
  const entries = [...item.open.values()];
  for (const [key, count] of item.busy) {
    const open = entries.filter((entry) => entry.busy && entry.key === key).length;
    if (open !== count) findings.push(`key ${key} counts ${count} calls under way, but ${open} are open`);
  }
  for (const [slot, count] of item.plan) {
    const open = entries.filter((entry) => entry.slot === slot).length;
    const [sure, all] = [sureRows(records), closedRows(records)].map((rows) => open + countedOn(slot, rows));
    if (count < (sure ?? 0) || count > (all ?? 0))
      findings.push(`the plan counts ${count} calls of ${slot}, but the ledger and open calls show ${all}`);
  }
  return findings;
}

const countedOn = (slot: string, rows: LedgerRow[]): number =>
  rows.filter((row) => row.kind !== 'grant' && row.plan_slot === slot).length;

function grantFindings({ rows, grants }: AccountRecords): string[] {
  const booked = new Map(rows.flatMap((row) => (row.kind === 'grant' ? [[row.id, row.amount]] : [])));
  return grants.flatMap((grant) => {
    const amount = booked.get(grantLedgerId(grant.grantId));
    const name = `grant ${grant.grantId}`;
    if (amount === undefined) return [`${name} is not applied: ${grant.problem ?? 'no ledger row names it'}`];
    if (parseYuan(grant.amount) === amount) return [];
    return [
      `${name} says ${grant.amount}, but ${formatYuan(amount)} was applied: changing it afterwards does nothing`,
    ];
  });
}
