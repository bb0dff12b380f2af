/** Closes reservations of invocations that were killed, crashed or timed out. */
import type { SweepResult, Metrics } from '../ports/telemetry.ts';
import { formatYuan } from '../../billing/money.ts';
import { closeExpired, type CloseWrite, type OpenEntry, type QuotaItem } from '../../billing/quota-item.ts';
import { Poisoned } from '../ports/store-errors.ts';
import { Backoff } from '../retry.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type {
  Lookup,
  OpenRegistry,
  QuotaScan,
  QuotaStore,
  ScannedQuota,
  SweepProgress,
  QuotaChange,
} from '../ports/money-stores.ts';

interface SweeperPorts extends Pick<ChatPorts, 'clock' | 'random' | 'log'> {
  registry: OpenRegistry;
  scan: QuotaScan;
  quotas: Pick<QuotaStore, 'close'>;
  metrics: Metrics;
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
export function createSweeper(ports: SweeperPorts, graceSeconds: number): () => Promise<SweepResult> {
  const { clock, registry, scan } = ports;
  const nowSeconds = (): number => Math.floor(clock.now() / 1000);
  return async () => {
    /** Reservations that stay open, by item. */
    const open = new Map<string, OpenEntry[]>();
    let expired = 0;
    const expire = async (scanned: ScannedQuota): Promise<void> => {
      const closed = await closeDue(ports, scanned, { nowSeconds: nowSeconds(), graceSeconds });
      open.set(scanned.item, closed.open);
      expired += closed.expired;
    };
    const beganSeconds = nowSeconds();
    const dueSeconds = beganSeconds - graceSeconds;
    const toSeconds = dueSeconds - overlapSeconds;
    const before = await registry.progress();
    // The sweep before may have run by a clock that was ahead.
    const fromSeconds = before && Math.min(before.toSeconds, toSeconds);
    if (fromSeconds !== undefined)
      for await (const items of registry.due(fromSeconds, dueSeconds)) {
        const unseen = [...new Set(items)].filter((item) => !open.has(item));
        for await (const scanned of scan.read(unseen)) await expire(scanned);
      }
    const pass = planNextPass(before, beganSeconds);
    let { passAfter } = pass;
    for (let pages = 0; pass.due && pages < passPagesMax; pages += 1) {
      const page = await scan.open(passAfter);
      for (const scanned of page.quotas) await expire(scanned);
      passAfter = page.next;
      if (passAfter === undefined) break;
    }
    const lookedSeconds = nowSeconds() - graceSeconds;
    await registry.register([...open].flatMap(([item, left]) => lookupOf(item, left, lookedSeconds)));
    await registry.keepProgress({ toSeconds, passBeganSeconds: pass.passBeganSeconds, passAfter });
    return { open: [...open.values()].flat().length, expired };
  };
}

/** `due`: pages are left, or it is time for another pass. */
function planNextPass(
  before: SweepProgress | undefined,
  nowSeconds: number,
): Pick<SweepProgress, 'passBeganSeconds' | 'passAfter'> & { due: boolean } {
  if (before?.passAfter !== undefined) return { ...before, due: true };
  const due = before === undefined || before.passBeganSeconds + passEverySeconds <= nowSeconds;
  return { passBeganSeconds: due ? nowSeconds : before.passBeganSeconds, due };
}

/** Closes what is due in an item. What stays open in it, and how much had crashed. */
async function closeDue(
  ports: SweeperPorts,
  scanned: ScannedQuota,
  { nowSeconds, graceSeconds }: { nowSeconds: number; graceSeconds: number },
): Promise<{ open: OpenEntry[]; expired: number }> {
  const item = readItem(ports, scanned);
  const open = new Map(item?.open);
  let expired = 0;
  for (const write of item ? closeExpired(item, nowSeconds, graceSeconds) : []) {
    const closed = await close(ports, write);
    // A background call that never began was cancelled or deleted, or its event came to nothing: nothing crashed.
    if (closed === 'closed' && !write.entry.queued) expired += 1;
    if (closed !== 'failed') open.delete(write.id);
    if (typeof closed === 'object' && closed.left) open.set(write.id, closed.left);
  }
  return { open: [...open.values()], expired };
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
  { clock, registry }: Pick<SweeperPorts, 'clock'> & { registry: Pick<OpenRegistry, 'register'> },
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
