import type { CloseRow } from '../../shared/billing/ledger-row.ts';
import { groupIntoTransactions } from '../../shared/billing/daily-figures.ts';
import { createLedgerProjector } from '../../shared/relay/jobs/ledger-projector.ts';
import type { QuotaChange } from '../../shared/relay/ports/money-stores.ts';
import type { Metrics, Log } from '../../shared/relay/ports/telemetry.ts';
import type { Environment } from './environment.ts';
import type { Mutant } from './mutant.ts';
import type { Network } from './networked-store.ts';
import type { SeededRandom } from './seeded-random.ts';

const shardCount = 2;
const batchMax = 10;

interface Shard {
  records: QuotaChange[];
  /** Records before this one were processed. */
  position: number;
  /** True while a batch is running. */
  busy: boolean;
}

/** The ledger as a table: rows are put and never changed, except that a tombstone's row gives way to the call's own. */
export class StoredLedger {
  readonly rows = new Map<string, CloseRow>();
  /** Sum of charges by account, as a reader of the table would compute it. */
  readonly sums = new Map<string, bigint>();
  readonly #mutant: Mutant | undefined;
  readonly #tell: (row: CloseRow) => void;

  /** `tell` receives each row that is put, in its transaction. */
  constructor(mutant: Mutant | undefined, tell: (row: CloseRow) => void) {
    this.#mutant = mutant;
    this.#tell = tell;
  }

  /** One transaction. */
  putCounted(rows: readonly CloseRow[]): Promise<CloseRow[]> {
    return Promise.resolve(rows.filter((row) => this.#putIfAbsent(row)));
  }

  #putIfAbsent(row: CloseRow): boolean {
    const key = `${row.account} ${row.id}`;
    const taken = this.rows.has(key) && this.rows.get(key)?.kind !== 'cancelled';
    if (taken && this.#mutant !== 'ledger_put_not_idempotent') return false;
    this.rows.set(key, row);
    this.sums.set(row.account, (this.sums.get(row.account) ?? 0n) + row.charge);
    this.#tell(row);
    return true;
  }
}

/**
 * The stream of the quotas table and its function: each shard in order, in batches, at least once. A failed batch is
 * delivered again from the failed record, and a successful one may be repeated too.
 */
export class LedgerStream {
  readonly #shards: Shard[] = Array.from({ length: shardCount }, () => ({
    records: [],
    position: 0,
    busy: false,
  }));
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  add(change: QuotaChange): void {
    this.#shards[Number(change.account.slice(-1)) % shardCount]?.records.push(change);
  }

  get drained(): boolean {
    return this.#shards.every(({ records, position, busy }) => position === records.length && !busy);
  }

  /** One batch of one shard, in an environment that may die in the middle of it. */
  async takeBatch(
    environment: Environment,
    network: Network,
    ledger: StoredLedger,
    log: Log,
    metrics: Metrics,
  ): Promise<void> {
    const shard = this.#random.pick(this.#shards as [Shard, ...Shard[]]);
    if (shard.busy) return;
    shard.busy = true;
    // The host notices the death, and delivers the batch to another environment.
    environment.died = () => {
      shard.busy = false;
    };
    if (this.#random.chance(0.2)) shard.position = Math.max(0, shard.position - this.#random.integer(1, 8));
    const keep = createLedgerProjector({
      clock: environment,
      random: { next: () => this.#random.next() },
      ledger: {
        groups: (rows) => groupIntoTransactions(rows, this.#random.integer(5, 30)),
        putCounted: (rows) => network.send(() => ledger.putCounted(rows)),
        putUncounted: () => Promise.reject(new Error('no row is refused')),
        addToMinutes: () => Promise.resolve(),
      },
      metrics,
      log,
    });
    const batch = shard.records.slice(shard.position, shard.position + this.#random.integer(1, batchMax));
    const outcomes = await keep(batch);
    // Delivered again from the failed record.
    const failed = outcomes.findIndex((outcome) => outcome !== undefined);
    shard.position += failed < 0 ? batch.length : failed;
    shard.busy = false;
  }
}
