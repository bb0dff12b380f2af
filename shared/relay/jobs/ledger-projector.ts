/**
 * Converts writes on accounts' items to the ledger rows of the reservations that they closed, and counts the rows
 * in `daily`. Sums of minutes are added after the rows, and never hold them up.
 */
import type { QuotaChange, LedgerStore } from '../ports/money-stores.ts';
import { formatYuan } from '../../billing/price.ts';
import { minuteSums } from '../../billing/daily-figures.ts';
import { closeRowBetween, type CloseRow } from '../../billing/ledger-row.ts';
import { imbalance } from '../../billing/quota-item.ts';
import { Backoff } from '../money/backoff.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { Metrics } from '../ports/telemetry.ts';
import { Poisoned } from '../ports/store-errors.ts';

export interface LedgerProjectorPorts extends Pick<ChatPorts, 'clock' | 'random' | 'log'> {
  ledger: LedgerStore;
  metrics: Metrics;
}

/** Transactions of other shards of the stream may count in the same items. */
const putBudgetMs = 5_000;
/** Of more groups than a quiet relay has in a batch some are put at once; more at once would only meet each other. */
const groupsOfLane = 4;
const lanesMax = 4;

/** Why a change was not projected: Poisoned when it can never give a row, else it needs a retry. */
type Outcome = Error | undefined;

/**
 * Accepts changes in any order and repeatedly. Also checks that the items' amounts balance. Returns an outcome for
 * each change. Never rejects.
 */
export function ledgerProjector(
  ports: LedgerProjectorPorts,
): (changes: readonly QuotaChange[]) => Promise<Outcome[]> {
  return async (changes) => {
    const results = changes.map((change) => {
      checkBalance(ports, change);
      return rowOf(change);
    });
    const rows = results.flatMap((result) => (result && 'row' in result ? [result.row] : []));
    const { failures, put } = await putAll(ports, rows);
    await countMinutes(ports, put);
    return results.map((result) =>
      result && 'row' in result ? failures.get(nameOf(result.row)) : result?.poisoned,
    );
  };
}

/**
 * Begins no group once one needs a retry: the batch comes again from its first row. `failures`: why rows were not put, by name.
 * `put`: those that were put and counted now, not those that were there.
 */
async function putAll(ports: LedgerProjectorPorts, rows: readonly CloseRow[]) {
  const failures = new Map<string, Error>();
  const put: CloseRow[] = [];
  let stopped: Error | undefined;
  const groups = ports.ledger.groups(rows);
  // Other shards have rows of the same accounts, and would come to them at the same time.
  const first = Math.floor(ports.random.next() * groups.length);
  const waiting = [...groups.slice(first), ...groups.slice(0, first)];
  const size = Math.max(groupsOfLane, Math.ceil(groups.length / lanesMax));
  const putLane = async (lane: number): Promise<void> => {
    // Neighbours count in the same items, so one waits for the other.
    for (const group of waiting.slice(lane * size, (lane + 1) * size)) {
      let failed = stopped;
      try {
        if (!failed) put.push(...(await putGroup(ports, group, failures)));
      } catch (error) {
        failed = stopped = asError(error);
      }
      if (failed) for (const row of group) failures.set(nameOf(row), failed);
    }
  };
  await Promise.all(Array.from({ length: lanesMax }, (_, lane) => putLane(lane)));
  return { failures, put };
}

/** A row that is refused for good must not block the others. */
async function putGroup(
  ports: LedgerProjectorPorts,
  rows: readonly CloseRow[],
  failures: Map<string, Error>,
): Promise<readonly CloseRow[]> {
  try {
    return await new Backoff(ports, putBudgetMs).until(() => ports.ledger.putCounted(rows));
  } catch (error) {
    if (!(error instanceof Poisoned)) throw error;
    const [row, ...others] = rows;
    const put: CloseRow[] = [];
    if (others.length > 0) for (const one of rows) put.push(...(await putGroup(ports, [one], failures)));
    else if (row) failures.set(nameOf(row), await putUncounted(ports, row));
    return put;
  }
}

/** For plots alone: a failure is said, and fails no row. */
async function countMinutes({ ledger, log }: LedgerProjectorPorts, rows: readonly CloseRow[]): Promise<void> {
  const sums = minuteSums(rows);
  if (sums.length === 0) return;
  try {
    await ledger.addToMinutes(sums);
  } catch (error) {
    log.event('minutes_not_counted', { rows: rows.length, why: asError(error).name });
  }
}

/** Always poisoned, so that somebody looks: the row is missing, or missing in `daily`. */
async function putUncounted({ ledger }: LedgerProjectorPorts, row: CloseRow): Promise<Poisoned> {
  try {
    await ledger.putUncounted(row);
    return new Poisoned('daily: the sums do not take the row, which is in the ledger');
  } catch (error) {
    if (error instanceof Poisoned) return error;
    throw error;
  }
}

const nameOf = ({ account, id }: CloseRow): string => `${account}\u0000${id}`;

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)));

function rowOf({ before, after }: QuotaChange): { row: CloseRow } | { poisoned: Poisoned } | undefined {
  try {
    const row = closeRowBetween(before, after);
    return row && { row };
  } catch (error) {
    return { poisoned: new Poisoned(asError(error).message, { cause: error }) };
  }
}

function checkBalance({ metrics, log }: LedgerProjectorPorts, { account, after }: QuotaChange): void {
  const difference = after && imbalance(after);
  if (after && difference === undefined) return;
  metrics.count('ConservationBroken');
  const why = difference === undefined ? 'the item was removed' : `off by ${formatYuan(difference)} yuan`;
  log.event('conservation_broken', { account, last_id: after?.last?.id, why });
}
