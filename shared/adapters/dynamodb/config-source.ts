/**
 * The configuration that a function serves, the cooldowns of candidates and the learned facts, from the table `runtime`
 * in one read. A request must never wait long for a newer configuration while an older one is available.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { emptySnapshot, snapshotFormat, type Snapshot } from '../../config/snapshot.ts';
import type { Clock } from '../../relay/ports/host.ts';
import type { Log } from '../../relay/ports/telemetry.ts';
import { firstTryMsMax, StoreUnavailable } from '../../relay/ports/store-errors.ts';
import { type ConfigSource, type Pointer, SnapshotBroken } from '../../relay/ports/config-store.ts';
import { factsFreshMs } from '../../relay/ports/runtime-stores.ts';
import type { TableClient } from './table-client.ts';
import { learnedId } from './channel-health.ts';
import {
  cooldownsId,
  getItems,
  pointerId,
  pointerOf,
  neverRead,
  type ItemView,
  type RuntimeTable,
  snapshotPartIds,
  type RuntimeItem,
} from './runtime-items.ts';
import { physicalTableName } from '../../tables/table-names.ts';

/** Maximum age of a read. Together with the compile it makes an edit live within 10 s. */
const freshMs = factsFreshMs;
/** How long a request waits for a newer configuration when an older one is available. */
const waitMsMax = 300;
/** How long nothing is read anew after a failed read, while there is an older configuration. */
const retryAfterMs = 1000;
/** How long an answer waits that must not come from an old configuration: for two reads that take a second each. */
const renewMsMax = 2500;
/** How long a first request waits, which cannot be answered otherwise. */
const firstReadMsMax = 8000;
const firstPauseMs = 50;
const pauseMsMax = 400;

interface ConfigSourceParts {
  client: TableClient;
  clock: Clock;
  log: Log;
  stack: string;
}

/** `current` reads when the last read is 8 s old; this read also renews the cooldowns and the learned facts. */
interface DynamoConfigSource extends ConfigSource {
  /** The item `cooldowns` as last read. */
  readonly cooldowns: () => ItemView;
  /** The item `learned` as last read. */
  readonly learned: () => ItemView;
  /** Reads now, regardless of the last read's age; waits no longer than this, by default 300 ms. Never rejects. */
  refresh(msMax?: number): Promise<void>;
}

interface Held {
  snapshot: Snapshot;
  /** Absent: nothing has been published yet. */
  pointer?: Pointer;
  /** Epoch milliseconds at which the read began. */
  checkedAt: number;
}

interface Reading {
  startedAt: number;
  done: Promise<void>;
}

export function dynamoConfigSource(parts: ConfigSourceParts): DynamoConfigSource {
  const { clock, log } = parts;
  let held: Held | undefined;
  let cooldowns = neverRead;
  let learned = neverRead;
  let reading: Reading | undefined;
  let failedAt = -Infinity;
  const underWay = new PartsUnderWay(tableOf(parts));

  const read = async (startedAt: number): Promise<void> => {
    const { pointer, ...items } = await readRuntime(parts, held ? undefined : firstTryMsMax);
    // A read that a freeze of the environment delayed must not overwrite the result of a later one.
    if (held && held.checkedAt > startedAt) return;
    cooldowns = { item: items.cooldowns, readAtMs: startedAt };
    learned = { item: items.learned, readAtMs: startedAt };
    const next = await follow(parts, underWay, { held, pointer, checkedAt: startedAt });
    if (!held || held.checkedAt <= startedAt) held = next;
  };

  /**
   * Joins the pending read. Starts a new one when the pending read is 8 s old: a freeze interrupted it, so
   * its result is outdated.
   */
  const join = (): Reading => {
    const startedAt = clock.now();
    if (reading && startedAt - reading.startedAt < freshMs) return reading;
    const started: Reading = {
      startedAt,
      done: read(startedAt).finally(() => {
        if (reading === started) reading = undefined;
      }),
    };
    reading = started;
    return started;
  };

  /** Joins the pending read until the given time. Returns its error; undefined: it was read, or the time is up. */
  const joinUntil = async ({ startedAt, done }: Reading, untilMs: number): Promise<unknown> => {
    let failure: unknown;
    const settled = done.catch((error: unknown) => {
      if (failedAt < startedAt) log.fault('config', error);
      failedAt = clock.now();
      failure = error;
    });
    const leftMs = untilMs - clock.now();
    // The read has already been pending for as long as a request may wait.
    if (leftMs <= 0) return undefined;
    await inTime(clock, settled, leftMs);
    return failure;
  };

  const joinInTime = async (msMax = waitMsMax): Promise<void> => {
    const reading = join();
    await joinUntil(reading, reading.startedAt + msMax);
  };

  const renewed = async (ageMsMax: number): Promise<Snapshot> => {
    // Counted from here, so that a read that began later is new enough however long it takes.
    const sinceMs = clock.now() - ageMsMax;
    const untilMs = clock.now() + (held ? renewMsMax : firstReadMsMax);
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * 2)) {
      if (held && held.checkedAt > sinceMs) return held.snapshot;
      const cause = await joinUntil(join(), untilMs);
      if (held && held.checkedAt > sinceMs) return held.snapshot;
      const isTransient = cause === undefined || cause instanceof StoreUnavailable;
      // Callers with an older configuration begin again together, so that a store in trouble is asked once a second.
      const waitMs = Math.max(pauseMs, held ? failedAt + retryAfterMs - clock.now() : 0);
      if (!isTransient || clock.now() + waitMs >= untilMs)
        throw new StoreUnavailable('The configuration cannot be read.', { cause });
      if (cause !== undefined) await clock.sleep(waitMs);
    }
  };

  return {
    async current() {
      if (!held) return renewed(freshMs);
      const served = held;
      const now = clock.now();
      if (now - served.checkedAt >= freshMs && now - failedAt >= retryAfterMs) await joinInTime();
      return held.snapshot;
    },
    notOlderThan: renewed,
    cooldowns: () => cooldowns,
    learned: () => learned,
    refresh: joinInTime,
  };
}

async function inTime(clock: Clock, work: Promise<void>, leftMs: number): Promise<void> {
  const waiting = new AbortController();
  await Promise.race([work, clock.sleep(leftMs, waiting.signal)]);
  waiting.abort();
}

const tableOf = ({ client, stack }: ConfigSourceParts): RuntimeTable => ({
  client,
  name: physicalTableName(stack, 'runtime'),
});

async function readRuntime(parts: ConfigSourceParts, tryMsMax: number | undefined) {
  const items = await getItems(tableOf(parts), [pointerId, cooldownsId, learnedId], { tryMsMax });
  const pointer = items.get(pointerId);
  return {
    pointer: pointer && pointerOf(pointer),
    cooldowns: items.get(cooldownsId),
    learned: items.get(learnedId),
  };
}

/**
 * The configuration to hold after a read of the pointer. Reads a snapshot only when the pointer names another
 * one.
 */
async function follow(
  parts: ConfigSourceParts,
  underWay: PartsUnderWay,
  { held, pointer, checkedAt }: { held: Held | undefined; pointer: Pointer | undefined; checkedAt: number },
): Promise<Held> {
  const { clock, log } = parts;
  if (pointer === undefined) {
    return { ...(held ?? { snapshot: emptySnapshot(Math.floor(clock.now() / 1000)) }), checkedAt };
  }
  if (held?.pointer?.version === pointer.version && held.pointer.digest === pointer.digest) {
    return { ...held, checkedAt };
  }
  if (pointer.format !== snapshotFormat) {
    log.event('config_format_unknown', { version: pointer.version, format: pointer.format });
    if (!held) throw new StoreUnavailable('The configuration is in a form that this function does not know.');
    return { ...held, checkedAt };
  }
  const snapshot = await underWay.read(pointer);
  return { snapshot, pointer, checkedAt };
}

// Joins the parts of a snapshot, or of the rows it was compiled from.

/**
 * Reads the snapshot that the pointer names; the caller checks its format. Throws SnapshotBroken.
 * @param found parts that an earlier read of the same pointer has read; takes those of this one
 */
export async function readSnapshot(
  table: RuntimeTable,
  pointer: Pointer,
  found?: Map<string, RuntimeItem>,
): Promise<Snapshot> {
  const { version, publishedAt } = pointer;
  // The cast is safe: rows are validated before they are published, and only functions write snapshots.
  const content = (await readParts(table, snapshotPartIds(pointer), found)) as Snapshot;
  // A snapshot published by an earlier version of this code lacks newer settings; use their defaults.
  const { settings: defaults } = emptySnapshot(publishedAt);
  const limits = { ...defaults.limits, ...content.settings.limits };
  const settings = { ...defaults, ...content.settings, limits };
  return { ...content, settings, version, publishedAt };
}

/** Throws SnapshotBroken. Parts never change, so only one that an eventually consistent read misses is read consistently. */
export async function readParts(
  table: RuntimeTable,
  ids: string[],
  items = new Map<string, RuntimeItem>(),
): Promise<unknown> {
  const missing = (): string[] => ids.filter((id) => !items.has(id));
  await getItems(table, missing(), { mayBeOld: true, found: items });
  await getItems(table, missing(), { found: items });
  const parts = ids.map((id) => {
    const bytes = items.get(id)?.['body'];
    if (!(bytes instanceof Uint8Array)) throw new SnapshotBroken(`${id} is missing`);
    return bytes;
  });
  try {
    return fromParts(parts);
  } catch (error) {
    throw new SnapshotBroken(`${ids[0]} is not readable`, { cause: error });
  }
}

/** Reads snapshots, and keeps the parts of one whose read failed half-way, so that the next try reads the others alone. */
class PartsUnderWay {
  readonly #table: RuntimeTable;
  #pointer: Pick<Pointer, 'version' | 'digest'> | undefined;
  #found = new Map<string, RuntimeItem>();

  constructor(table: RuntimeTable) {
    this.#table = table;
  }

  /** Throws SnapshotBroken, StoreUnavailable. */
  async read(pointer: Pointer): Promise<Snapshot> {
    const { version, digest } = pointer;
    if (this.#pointer?.version !== version || this.#pointer.digest !== digest) {
      this.#pointer = { version, digest };
      this.#found = new Map();
    }
    const found = this.#found;
    try {
      return await readSnapshot(this.#table, pointer, found);
    } catch (error) {
      // A part that could not be read is not read from memory again.
      if (error instanceof SnapshotBroken) found.clear();
      throw error;
    } finally {
      if (this.#found === found && found.size === pointer.parts) this.#found = new Map();
    }
  }
}

// Splits a snapshot's bytes into items and joins them again.

/**
 * An item is read 3,000 units a second at most. After an edit, 1,000 environments read each part once within 8 s: 1,600
 * units a second at this size.
 */
const partBytesMax = 100_000;
/** Far above any real configuration, and far below what would exhaust a function's memory. */
const contentBytesMax = 64_000_000;

/** Compressed JSON in parts that each fit into an item; at least one part. */
export function toParts(content: unknown): Uint8Array[] {
  const bytes = gzipSync(JSON.stringify(content));
  const count = Math.ceil(bytes.length / partBytesMax);
  return Array.from({ length: count }, (_, index) =>
    bytes.subarray(index * partBytesMax, (index + 1) * partBytesMax),
  );
}

/** The inverse of `toParts`. Throws when bytes are missing. */
const fromParts = (parts: Uint8Array[]): unknown =>
  JSON.parse(gunzipSync(Buffer.concat(parts), { maxOutputLength: contentBytesMax }).toString());
