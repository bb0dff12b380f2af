/** Closes reservations of invocations that were killed, crashed or timed out. */
import type { SweepResult, Log, Metrics } from '../ports/telemetry.ts';
import { formatYuan } from '../../billing/amount.ts';
import { closeExpired, type CloseWrite } from '../../billing/quota-writes.ts';
import type { OpenEntry, QuotaItem } from '../../billing/quota-item.ts';
import { Poisoned } from '../ports/store-errors.ts';
import { Backoff } from '../money/backoff.ts';
import type { Clock, Random } from '../ports/host.ts';
import type {
  Lookup,
  OpenRegistry,
  QuotaScan,
  QuotaStore,
  ScannedQuota,
  SweepProgress,
  QuotaChange,
} from '../ports/money-stores.ts';

interface SweeperPorts {
  clock: Clock;
  random: Random;
  registry: OpenRegistry;
  scan: QuotaScan;
  quotas: Pick<QuotaStore, 'close'>;
  metrics: Metrics;
  log: Log;
}

const closeBudgetMs = 2_000;

/** The whole table is read this often, in case that a registration was lost. */
const passEverySeconds = 60 * 60;
/** Pages of one sweep, so that the sweep of a large table ends within its time. */
const passPagesMax = 20;
/**
 * How far a sweep reads back behind the one before. A sweeper whose clock was two minutes ahead has taken registrations before
 * their time, while others still count on them; and some are made while a sweep runs.
 */
const overlapSeconds = 130;

/**
 * Returns a function that runs one sweep: of what is registered, and of some pages of the table while a pass over
 * it is due. A failed close is retried by the next sweep. An unreadable item is skipped. Rejects when the store
 * does not answer; the next sweep then begins where this one did.
 * @param graceSeconds how long after the end of its lease a reservation stays open
 */
export function sweeper(ports: SweeperPorts, graceSeconds: number): () => Promise<SweepResult> {
  return async () => {
    const nowSeconds = Math.floor(ports.clock.now() / 1000);
    const sweep = new Sweep(ports, graceSeconds);
    const dueSeconds = nowSeconds - graceSeconds;
    const before = await ports.registry.progress();
    const toSeconds = dueSeconds - overlapSeconds;
    if (before) {
      // The sweep before may have run by a clock that was ahead.
      const fromSeconds = Math.min(before.toSeconds, toSeconds);
      for await (const items of ports.registry.due(fromSeconds, dueSeconds)) await sweep.lookAt(items);
    }
    const pass = await sweep.pass(nextPass(before, nowSeconds));
    await ports.registry.register(sweep.lookups());
    await ports.registry.keepProgress({ toSeconds, ...pass });
    return sweep.result();
  };
}

type Pass = Pick<SweepProgress, 'passBeganSeconds' | 'passAfter'>;

/** `due`: pages are left, or it is time for another pass. */
function nextPass(before: SweepProgress | undefined, nowSeconds: number): Pass & { due: boolean } {
  if (before?.passAfter !== undefined) return { ...before, due: true };
  const due = before === undefined || before.passBeganSeconds + passEverySeconds <= nowSeconds;
  return { passBeganSeconds: due ? nowSeconds : before.passBeganSeconds, due };
}

/** One run of the sweeper. */
class Sweep {
  readonly #ports: SweeperPorts;
  readonly #graceSeconds: number;
  /** What stays open, by item. */
  readonly #open = new Map<string, OpenEntry[]>();
  #expired = 0;

  constructor(ports: SweeperPorts, graceSeconds: number) {
    this.#ports = ports;
    this.#graceSeconds = graceSeconds;
  }

  async lookAt(items: readonly string[]): Promise<void> {
    const unseen = [...new Set(items)].filter((item) => !this.#open.has(item));
    for await (const scanned of this.#ports.scan.read(unseen)) await this.#expire(scanned);
  }

  async pass({ due, ...pass }: Pass & { due: boolean }): Promise<Pass> {
    let after = pass.passAfter;
    const pagesMax = due ? passPagesMax : 0;
    for (let pages = 0; pages < pagesMax; pages += 1) {
      const page = await this.#ports.scan.open(after);
      for (const scanned of page.quotas) await this.#expire(scanned);
      after = page.next;
      if (after === undefined) break;
    }
    return { passBeganSeconds: pass.passBeganSeconds, passAfter: after };
  }

  /** When to look at the items again in which something stays open. */
  lookups(): Lookup[] {
    const nowSeconds = Math.floor(this.#ports.clock.now() / 1000);
    return [...this.#open].flatMap(([item, entries]) =>
      lookupOf(item, entries, nowSeconds - this.#graceSeconds),
    );
  }

  result(): SweepResult {
    const open = [...this.#open.values()].reduce((sum, entries) => sum + entries.length, 0);
    return { open, expired: this.#expired };
  }

  async #expire(scanned: ScannedQuota): Promise<void> {
    const item = readItem(this.#ports, scanned);
    const open = new Map(item?.open);
    const nowSeconds = Math.floor(this.#ports.clock.now() / 1000);
    for (const write of item ? closeExpired(item, nowSeconds, this.#graceSeconds) : []) {
      const closed = await close(this.#ports, write);
      // A background call that never began was cancelled or deleted, or its event came to nothing: nothing crashed.
      if (closed === 'closed' && !write.entry.queued) this.#expired += 1;
      if (closed !== 'failed') open.delete(write.id);
      if (typeof closed === 'object' && closed.left) open.set(write.id, closed.left);
    }
    this.#open.set(scanned.item, [...open.values()]);
  }
}

function readItem(ports: SweeperPorts, scanned: ScannedQuota): QuotaItem | undefined {
  try {
    return scanned.read();
  } catch (error) {
    if (!(error instanceof Poisoned)) throw error;
    ports.metrics.count('ReservationPoisoned');
    ports.log.event('reservation_poisoned', { account: scanned.account, problem: error.message });
    return undefined;
  }
}

/** `left`: the entry as it is now, because the call renewed its lease after it was read; undefined: it was closed. */
async function close(
  ports: SweeperPorts,
  write: CloseWrite,
): Promise<'closed' | 'failed' | { left: OpenEntry | undefined }> {
  const { account, id, closeRecord } = write;
  try {
    const reply = await new Backoff(ports, closeBudgetMs).until(() => ports.quotas.close(write));
    if (!reply.done) return { left: reply.item?.open.get(id) };
    const charge = formatYuan(closeRecord.charge);
    ports.log.event('reservation_expired', { request_id: id, account, kind: closeRecord.kind, charge });
    return 'closed';
  } catch (error) {
    ports.log.event('sweep_failed', { request_id: id, account });
    ports.log.fault(id, error);
    return 'failed';
  }
}

// Registers the items of `quotas` whose images have open reservations, so that the sweeper looks at them when these
// should have ended. An item needs one registration at a time: whoever looks at it registers what is still open.

/** A registration is made at least so long before the sweep that reads it. */
const aheadSeconds = 5;
const rememberedMax = 20_000;

/**
 * The lookup of an item with these open entries, if there are any. `dueSeconds`: what is registered for then is
 * looked at now. Reservations that ended long ago are looked at soon, not in the past, where no sweep reads.
 */
function lookupOf(item: string, entries: readonly OpenEntry[], dueSeconds: number): Lookup[] {
  if (entries.length === 0) return [];
  const first = entries.reduce((least, { until }) => Math.min(least, until), Infinity);
  return [{ item, atSeconds: Math.max(first, dueSeconds + aheadSeconds) }];
}

/**
 * Returns a function that takes changes in any order and repeatedly. Rejects with the store's error: the changes
 * then need a retry.
 * @param graceSeconds how long after a registered time the sweeper looks at the item
 */
export function openWatch(
  { clock, registry }: { clock: Clock; registry: Pick<OpenRegistry, 'register'> },
  graceSeconds: number,
): (changes: readonly QuotaChange[]) => Promise<void> {
  /** The registered lookups of this environment. Forgetting one costs one write. */
  const remembered = new Map<string, number>();

  return async (changes) => {
    const dueSeconds = Math.floor(clock.now() / 1000) - graceSeconds;
    const isRegistered = ({ item, atSeconds }: Lookup): boolean => {
      const known = remembered.get(item);
      return known !== undefined && known <= atSeconds && known > dueSeconds + aheadSeconds;
    };
    const latest = new Map(changes.map((change) => [change.item, change]));
    const lookups = [...latest].flatMap(([item, { after }]) =>
      lookupOf(item, [...(after?.open.values() ?? [])], dueSeconds).filter((lookup) => !isRegistered(lookup)),
    );
    if (lookups.length === 0) return;
    await registry.register(lookups);
    for (const { item, atSeconds } of lookups) {
      remembered.delete(item);
      remembered.set(item, atSeconds);
    }
    for (const item of remembered.keys()) {
      if (remembered.size <= rememberedMax) break;
      remembered.delete(item);
    }
  };
}
