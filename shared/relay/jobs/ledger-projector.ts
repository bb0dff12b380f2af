/**
 * Converts writes on accounts' items to the ledger rows of the reservations that they closed, and counts the rows
 * in `daily`. Sums of minutes are added after the rows, and never hold them up.
 */
import type { QuotaChange, LedgerStore } from '../ports/money-stores.ts';
import { formatYuan } from '../../billing/money.ts';
import { sumMinutes } from '../../billing/daily-figures.ts';
import { findCloseRow, type CloseRow } from '../../billing/ledger-row.ts';
import { findImbalance } from '../../billing/quota-item.ts';
import type { Random } from '../ports/host.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { Metrics } from '../ports/telemetry.ts';
import { Poisoned, StoreBusy, StoreUnavailable } from '../ports/store-errors.ts';

export interface LedgerProjectorPorts extends Pick<ChatPorts, 'clock' | 'random' | 'log'> {
  ledger: LedgerStore;
  metrics: Metrics;
}

/** Half of the function's time: a batch that comes again pays once more for all of its rows, those that are there too. */
const putBudgetMs = 30_000;
/** A batch with more groups than a quiet relay has writes some at once. More at once would only meet each other. */
const groupsOfLane = 4;
const lanesMax = 6;
/** A transaction takes some 50 ms. */
const pauseMsMin = 80;
/** Sixteen shards that are behind and have rows of one account each: at shorter pauses their cancelled tries take its units. */
const pauseMsMax = 1_500;
const rowsOfHalvesMin = 4;

/** Why a change was not projected: Poisoned when it can never give a row, else it needs a retry. */
type Outcome = Error | undefined;

/**
 * Accepts changes in any order and repeatedly. Also checks that the items' amounts balance. Returns an outcome for
 * each change. Never rejects.
 */
export function createLedgerProjector(
  ports: LedgerProjectorPorts,
): (changes: readonly QuotaChange[]) => Promise<Outcome[]> {
  return async (changes) => {
    const results = changes.map((change) => {
      checkBalance(ports, change);
      return rowOf(ports, change);
    });
    const rows = results.flatMap((result) => (result && 'row' in result ? [result.row] : []));
    const { failures, put } = await putAll(ports, rows);
    await countMinutes(ports, put);
    return results.map((result) =>
      result && 'row' in result ? failures.get(nameOf(result.row)) : result?.refused,
    );
  };
}

/** Rows for one transaction, and from when on they may be put. */
interface Group {
  rows: readonly CloseRow[];
  fromMs: number;
  pauseMs: number;
}

/**
 * Some groups at once. One that met another transaction goes behind all others, in halves: a transaction that is cancelled costs
 * units of all its items, and a smaller one meets less. `failures`: why rows were not put, by name. `put`: those that were put
 * and counted now, not those that were there.
 */
async function putAll(ports: LedgerProjectorPorts, rows: readonly CloseRow[]) {
  const { clock, random, ledger } = ports;
  const failures = new Map<string, Error>();
  const put: CloseRow[] = [];
  const fromMs = clock.now();
  const untilMs = fromMs + putBudgetMs;
  const groups = ledger.groups(rows);
  const lanes = Math.min(lanesMax, Math.ceil(groups.length / groupsOfLane));
  const all = spreadGroups(groups, lanes, random);
  const waiting = all.map((own): Group => ({ rows: own, fromMs, pauseMs: pauseMsMin }));
  const fail = (group: Group, error: unknown): void => {
    for (const row of group.rows) failures.set(nameOf(row), toError(error));
  };
  const requeue = (group: Group, error: unknown): void => {
    // Never at once: what it met is at work for some time.
    const nextMs = clock.now() + (group.pauseMs * (1 + random.next())) / 2;
    if (nextMs >= untilMs) return fail(group, error);
    const pauseMs = Math.min(1.5 * group.pauseMs, pauseMsMax);
    const parts = error instanceof StoreBusy ? splitInHalves(group.rows) : [group.rows];
    waiting.push(...parts.map((part) => ({ rows: part, fromMs: nextMs, pauseMs })));
  };
  const putGroup = async (group: Group): Promise<void> => {
    const [row, ...others] = group.rows;
    try {
      put.push(...(await ledger.putCounted(group.rows)));
    } catch (error) {
      if (error instanceof StoreBusy || error instanceof StoreUnavailable) requeue(group, error);
      else if (!(error instanceof Poisoned)) fail(group, error);
      // A row that is refused for good must not block the others.
      else if (others.length > 0) waiting.push(...group.rows.map((one) => ({ ...group, rows: [one] })));
      else if (row) failures.set(nameOf(row), await putUncounted(ports, row));
    }
  };
  const putLane = async (): Promise<void> => {
    for (let group = waiting.shift(); group; group = waiting.shift()) {
      if (group.fromMs > clock.now()) await clock.sleep(group.fromMs - clock.now());
      if (clock.now() < untilMs) await putGroup(group);
      else fail(group, new StoreBusy('There was no time left.'));
    }
  };
  await Promise.all(Array.from({ length: lanes }, putLane));
  return { failures, put };
}

/**
 * In the order in which so many lanes take them: neighbours count in the same items, so no two are put at once. From any of them
 * on: other shards have rows of the same accounts, and would come to them at the same time.
 */
function spreadGroups(groups: readonly CloseRow[][], lanes: number, random: Random): CloseRow[][] {
  const first = Math.floor(random.next() * groups.length);
  const turned = [...groups.slice(first), ...groups.slice(0, first)];
  const ofLane = Math.max(1, Math.ceil(groups.length / lanes));
  const order = [...turned.keys()].toSorted((a, b) => (a % ofLane) - (b % ofLane));
  return order.map((at) => turned[at] ?? []);
}

/** Between two accounts: rows of one are counted in the same items. */
function splitInHalves(rows: readonly CloseRow[]): (readonly CloseRow[])[] {
  const starts = [...rows.keys()].filter((at) => at > 0 && rows[at]?.account !== rows[at - 1]?.account);
  const half = starts.find((at) => 2 * at >= rows.length) ?? starts.at(-1);
  return half === undefined || rows.length < rowsOfHalvesMin
    ? [rows]
    : [rows.slice(0, half), rows.slice(half)];
}

/** For plots alone: a failure is said, and fails no row. */
async function countMinutes({ ledger, log }: LedgerProjectorPorts, rows: readonly CloseRow[]): Promise<void> {
  const sums = sumMinutes(rows);
  if (sums.length === 0) return;
  try {
    await ledger.addToMinutes(sums);
  } catch (error) {
    log.event('minutes_not_counted', { rows: rows.length, why: toError(error).name });
  }
}

/** Poisoned once it is done, so that somebody looks: the row is missing, or missing in `daily`. */
async function putUncounted({ ledger }: LedgerProjectorPorts, row: CloseRow): Promise<Error> {
  try {
    await ledger.putUncounted(row);
    return new Poisoned('daily: the sums do not take the row, which is in the ledger');
  } catch (error) {
    return toError(error);
  }
}

const nameOf = ({ account, id }: CloseRow): string => `${account}\u0000${id}`;

const toError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

/**
 * Rows are permanent, so a row whose charge differs from the deducted amount is refused at first: this version may be wrong, and a
 * rollback may correct it. After this time the row is written unchanged: then the item is wrong, and the shard must go on.
 */
const refusedSecondsMax = 15 * 60;

function rowOf(
  ports: LedgerProjectorPorts,
  { before, after, writtenAt = 0 }: QuotaChange,
): { row: CloseRow } | { refused: Error } | undefined {
  try {
    const row = findCloseRow(before, after);
    if (!row || !before || !after) return undefined;
    const taken = after.spent - before.spent;
    if (row.charge === taken) return { row };
    const why = `the row charges ${formatYuan(row.charge)} yuan, and ${formatYuan(taken)} were taken`;
    reportImbalance(ports, { account: row.account, last_id: row.id, why });
    // By the stream's clock: a bad version may write any time into the item.
    const isNew = ports.clock.now() / 1000 < writtenAt + refusedSecondsMax;
    return isNew ? { refused: new Error(`ledger: ${why}`) } : { row };
  } catch (error) {
    return { refused: new Poisoned(toError(error).message, { cause: error }) };
  }
}

function checkBalance(ports: LedgerProjectorPorts, { account, after }: QuotaChange): void {
  const difference = after && findImbalance(after);
  if (after && difference === undefined) return;
  const why = difference === undefined ? 'the item was removed' : `off by ${formatYuan(difference)} yuan`;
  reportImbalance(ports, { account, last_id: after?.last?.id, why });
}

function reportImbalance(
  { metrics, log }: LedgerProjectorPorts,
  found: { account: string; last_id: string | undefined; why: string },
): void {
  metrics.count('ConservationBroken');
  log.event('conservation_broken', found);
}
