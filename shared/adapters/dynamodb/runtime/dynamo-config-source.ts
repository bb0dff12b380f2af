/**
 * The configuration that a function serves, the cooldowns of candidates and the learned facts, from the table `runtime`
 * in one read. A request must never wait long for a newer configuration while an older one is available.
 */
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { emptySnapshot, snapshotFormat, type Snapshot } from '../../../config/snapshot.ts';
import { type Clock } from '../../../relay/ports/clock.ts';
import type { Log } from '../../../relay/ports/telemetry.ts';
import { StoreUnavailable } from '../../../relay/ports/stores/store-errors.ts';
import type { ConfigSource, Pointer } from '../../../relay/ports/stores/config-store.ts';
import { factsFreshMs } from '../../../relay/ports/stores/learned-facts.ts';
import type { LearnedView } from './dynamo-learned-facts.ts';
import { learnedId } from './learned-item.ts';
import {
  cooldownsId,
  getItems,
  pointerId,
  pointerOf,
  type RuntimeItem,
  type RuntimeTable,
} from './runtime-items.ts';
import { readSnapshot } from './snapshot-reader.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

/** Maximum age of a read. Together with the compile it makes an edit live within 10 s. */
const freshMs = factsFreshMs;
/** How long a request waits for a newer configuration when an older one is available. */
const waitMsMax = 300;
/** How long requests are served without a new read after a failed read. */
const retryAfterMs = 1000;

export interface ConfigSourceParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  log: Log;
  stack: string;
}

/** `current` reads when the last read is 8 s old; this read also renews the cooldowns and the learned facts. */
export interface DynamoConfigSource extends ConfigSource {
  /** The item `cooldowns` as last read. Undefined: it did not exist. */
  readonly cooldowns: () => RuntimeItem | undefined;
  /** The item `learned` as last read. */
  readonly learned: () => LearnedView;
  /** Reads now, regardless of the last read's age; waits 300 ms at most. Never rejects. */
  refresh(): Promise<void>;
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
  let cooldowns: RuntimeItem | undefined;
  let learned: LearnedView = { item: undefined, readAtMs: -Infinity };
  let reading: Reading | undefined;
  let failedAt = -Infinity;

  const read = async (startedAt: number): Promise<void> => {
    const { pointer, ...items } = await readRuntime(parts);
    // A read that a freeze of the environment delayed must not overwrite the result of a later one.
    if (held && held.checkedAt > startedAt) return;
    cooldowns = items.cooldowns;
    learned = { item: items.learned, readAtMs: startedAt };
    const next = await follow(parts, { held, pointer, checkedAt: startedAt });
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

  const joinInTime = async (): Promise<void> => {
    const { startedAt, done } = join();
    const settled = done.catch((error: unknown) => {
      if (failedAt < startedAt) log.fault('config', error);
      failedAt = clock.now();
    });
    const leftMs = startedAt + waitMsMax - clock.now();
    // The read has already been pending for as long as a request may wait.
    if (leftMs <= 0) return;
    const waiting = new AbortController();
    await Promise.race([settled, clock.sleep(leftMs, waiting.signal)]);
    waiting.abort();
  };

  const readFirst = async (): Promise<Snapshot> => {
    try {
      await join().done;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      log.fault('config', error);
      throw new StoreUnavailable('The configuration cannot be read.', { cause: error });
    }
    if (!held) throw new StoreUnavailable('The configuration cannot be read.');
    return held.snapshot;
  };

  return {
    async current() {
      if (!held) return readFirst();
      const served = held;
      const now = clock.now();
      if (now - served.checkedAt >= freshMs && now - failedAt >= retryAfterMs) await joinInTime();
      return held.snapshot;
    },
    cooldowns: () => cooldowns,
    learned: () => learned,
    refresh: joinInTime,
  };
}

const tableOf = ({ client, stack }: ConfigSourceParts): RuntimeTable => ({
  client,
  name: physicalTableName(stack, 'runtime'),
});

async function readRuntime(parts: ConfigSourceParts) {
  const items = await getItems(tableOf(parts), [pointerId, cooldownsId, learnedId]);
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
  const snapshot = await readSnapshot(tableOf(parts), pointer);
  return { snapshot, pointer, checkedAt };
}
