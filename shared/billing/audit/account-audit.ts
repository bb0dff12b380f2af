/** Compares an account's item with its ledger rows and its grants, for `relay-ops audit`. Reads nothing itself. */
import { formatYuan, parseYuan, type NanoYuan } from '../money.ts';
import { findImbalances, type WholeAccount } from '../shards.ts';
import { findImbalance, sumReserved, type QuotaItem } from '../quota-item.ts';
import {
  formatGrantLedgerId,
  latePrefix,
  type WrittenGrant,
  type LedgerRow,
  findLedgerTimeMs,
} from '../ledger-row.ts';
import { isoTime } from '../../wire/iso-time.ts';

/** The item was read at `readMs`, the rows after it. */
interface AccountRecords {
  account: string;
  item: WholeAccount;
  readMs: number;
  ledger: LedgerSums;
  grants: WrittenGrant[];
}

/** The sweeper closes every expired reservation within this time after its end. */
const overdueMs = 10 * 60_000;

type Finding = string | false;

export function auditAccount(records: AccountRecords): string[] {
  const { account } = records;
  const findings = [checkBalance, checkLedger, checkOpenEntries, checkPlanCounts, checkGrants].flatMap(
    (find): Finding[] => find(records),
  );
  return findings.flatMap((finding) => (finding ? [`${account}: ${finding}`] : []));
}

function checkBalance({ item }: AccountRecords): Finding[] {
  const difference = findImbalance(item) ?? 0n;
  const sums = `available ${formatYuan(item.available)} + reserved ${formatYuan(sumReserved(item))} + spent ${formatYuan(item.spent)}`;
  return [
    difference !== 0n &&
      `${sums} is not the granted ${formatYuan(item.granted)}${item.metered === undefined ? '' : ` + metered ${formatYuan(item.metered)}`}: ${formatYuan(difference)} too much`,
    item.moved !== 0n && `its shards received ${formatYuan(item.moved)} yuan that no shard sent`,
    ...(item.shards ? findImbalances(item.shards) : []).map(
      (off) => `shard ${off.shard} is off by ${formatYuan(off.difference)} yuan`,
    ),
  ];
}

/** Recent rows may or may not be in the item, so they widen the tolerance. */
function checkLedger(records: AccountRecords): Finding[] {
  const { item } = records;
  const { sure, all } = records.ledger;
  return [
    item.settled < sure.closes &&
      `${item.settled} reservations were closed, but the ledger has ${sure.closes} rows of closes`,
    !isBetween(item.spent, sure.charged, all.charged) &&
      `spent is ${formatYuan(item.spent)}, but the ledger's charges add up to ${formatYuan(all.charged)}`,
    !isBetween(item.metered ?? 0n, sure.metered, all.metered) &&
      `metered is ${formatYuan(item.metered ?? 0n)}, but the ledger's metered charges add up to ${formatYuan(all.metered)}`,
    !isBetween(item.granted, sure.granted, all.granted) &&
      `granted is ${formatYuan(item.granted)}, but the ledger's grants add up to ${formatYuan(all.granted)}`,
  ];
}

/**
 * Closes without a row are not a finding if the sums agree: an id with a tombstone closes twice, the second time with a charge of 0.
 */
export function countClosesWithoutRow(records: AccountRecords): number {
  return Math.max(0, records.item.settled - records.ledger.all.closes);
}

const isBetween = (value: NanoYuan, a: NanoYuan, b: NanoYuan): boolean =>
  a < b ? a <= value && value <= b : b <= value && value <= a;

const checkOpenEntries = ({ item, readMs }: AccountRecords): Finding[] =>
  [...item.open].map(
    ([id, { until }]) =>
      until * 1000 + overdueMs < readMs &&
      `request ${id} is still open, though it expired at ${isoTime(until * 1000)}: check that the sweeper runs`,
  );

function checkPlanCounts(records: AccountRecords): Finding[] {
  const { item } = records;
  const entries = [...item.open.values()];
  return [...item.plan].map(([slot, count]) => {
    const open = entries.filter((entry) => entry.slot === slot).length;
    const sure = open + (records.ledger.sure.slots.get(slot) ?? 0);
    const all = open + (records.ledger.all.slots.get(slot) ?? 0);
    return (
      (count < sure || count > all) &&
      `the plan counts ${count} calls of ${slot}, but the ledger and open calls show ${all}`
    );
  });
}

function checkGrants({ ledger, grants }: AccountRecords): Finding[] {
  return grants.map(({ grantId, amount, problem }) => {
    const applied = ledger.grants.get(formatGrantLedgerId(grantId));
    if (applied === undefined)
      return `grant ${grantId} is not applied: ${problem ?? 'no ledger row names it'}`;
    return (
      parseYuan(amount) !== applied &&
      `grant ${grantId} has the amount ${amount}, but ${formatYuan(applied)} was applied: later edits have no effect`
    );
  });
}

/** The item may lack calls that started less than this before it was read. */
const doubtMs = 10_000;

interface Sums {
  closes: number;
  charged: NanoYuan;
  /** Charges that no balance paid, contained in `charged`. */
  metered: NanoYuan;
  /** Some calls drew a counter. */
  isSpread: boolean;
  granted: NanoYuan;
  /** Calls by plan slot. */
  slots: Map<string, number>;
}

const createSums = (): Sums => ({
  closes: 0,
  charged: 0n,
  metered: 0n,
  isSpread: false,
  granted: 0n,
  slots: new Map(),
});

/**
 * Adds up an account's ledger rows one by one, so that any number of them needs the same memory. Skips rows that closed after the item
 * was read, because the item still lists them as open; an id with a tombstone counts as closed.
 */
export class LedgerSums {
  /** Rows whose reservation is closed in the item. */
  readonly all = createSums();
  /** Without the rows that may or may not be in the item. */
  readonly sure = createSums();
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
    if (findLedgerTimeMs(row) < this.#readMs - doubtMs) addRow(this.sure, row);
  }
}

function addRow(sums: Sums, row: LedgerRow): void {
  if (row.kind === 'grant') {
    sums.granted += row.amount;
    return;
  }
  sums.closes += 1;
  sums.charged += row.charge;
  if (row.metered) sums.metered += row.charge;
  if (row.bucket !== undefined) sums.isSpread = true;
  // The row of the expiry counts the call of a late charge.
  if (row.plan_slot !== undefined && !row.id.startsWith(latePrefix))
    sums.slots.set(row.plan_slot, (sums.slots.get(row.plan_slot) ?? 0) + 1);
}
