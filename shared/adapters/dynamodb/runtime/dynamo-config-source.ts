/**
 * The configuration that a function serves, and the cooldowns of candidates, both from the table `runtime` in one read.
 * A request must never wait long for a newer configuration while there is an older one.
 */
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { emptySnapshot, snapshotFormat, type Snapshot } from '../../../config/snapshot.ts';
import { type Clock } from '../../../relay/ports/clock.ts';
import type { Log } from '../../../relay/ports/telemetry.ts';
import { StoreUnavailable } from '../../../relay/ports/store-errors.ts';
import type { ConfigSource, Pointer } from '../../../relay/ports/config-store.ts';
import { cooldownsId } from '../dynamo-channel-health.ts';
import { getItems, pointerId, pointerOf, type RuntimeItem, type RuntimeTable } from './runtime-items.ts';
import { readSnapshot } from './snapshot-reader.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

/** An edit is live within 10 s: this, and the compile. */
const freshMs = 8000;
/** How long a request waits for a newer configuration when there is an older one to serve it with. */
const waitMsMax = 300;
/** After a read that failed, requests are served without a new read for so long. */
const retryAfterMs = 1000;

export interface ConfigSourceParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  log: Log;
  stack: string;
}

/** `current` reads when the last read is 8 s old, which also renews the cooldowns. */
export interface DynamoConfigSource extends ConfigSource {
  /** The item `cooldowns` as last read; undefined: there was none. */
  readonly cooldowns: () => RuntimeItem | undefined;
  /** Reads now, whatever the age; waits 300 ms at most. Never rejects. */
  refresh(): Promise<void>;
}

interface Held {
  snapshot: Snapshot;
  /** Absent: nothing was ever published. */
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
  let reading: Reading | undefined;
  let failedAt = -Infinity;

  const read = async (startedAt: number): Promise<void> => {
    const { pointer, cooldowns: newCooldowns } = await readRuntime(parts);
    // A read that was delayed by a freeze of the environment must not undo a later one.
    if (held && held.checkedAt > startedAt) return;
    cooldowns = newCooldowns;
    const next = await follow(parts, { held, pointer, checkedAt: startedAt });
    if (!held || held.checkedAt <= startedAt) held = next;
  };

  /** The read under way, or a new one when that one began before a freeze: it says nothing about now. */
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
    // Earlier requests have waited for this read as long as a request may.
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
    refresh: joinInTime,
  };
}

const tableOf = ({ client, stack }: ConfigSourceParts): RuntimeTable => ({
  client,
  name: physicalTableName(stack, 'runtime'),
});

async function readRuntime(parts: ConfigSourceParts) {
  const items = await getItems(tableOf(parts), [pointerId, cooldownsId]);
  const pointer = items.get(pointerId);
  return { pointer: pointer && pointerOf(pointer), cooldowns: items.get(cooldownsId) };
}

/** What is held after the pointer was read; a snapshot is read only when the pointer names another one. */
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
