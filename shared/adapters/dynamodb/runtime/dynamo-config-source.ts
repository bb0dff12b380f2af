/** What a function knows of the table `runtime`: the configuration it serves, and the cooldowns of channels. */
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { emptySnapshot, snapshotFormat, type Snapshot } from '../../../config/snapshot.ts';
import { type Clock } from '../../../relay/ports/clock.ts';
import type { Log } from '../../../relay/ports/telemetry.ts';
import { StoreUnavailable } from '../../../relay/ports/store-errors.ts';
import type { ConfigSource } from '../../../relay/ports/config-store.ts';
import { cooldownsId } from '../dynamo-channel-health.ts';
import type { Attributes } from '../quotas/quota-attributes.ts';
import { getItems, pointerId, pointerOf, type Pointer } from './runtime-items.ts';
import { readSnapshot } from './snapshot-reader.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

/** An edit is live within 10 s: this, and the compile. */
const freshMs = 8000;
/** How long a request waits for a newer configuration when there is an older one to serve it with. */
const patienceMs = 300;
/** After a read that failed, requests are served without trying again for so long. */
const retryAfterMs = 1000;

export interface RuntimeViewParts {
  client: DynamoDBDocumentClient;
  clock: Clock;
  log: Log;
  stack: string;
}

export interface RuntimeView {
  /** The configuration; read when it was last looked for 8 s ago, which also renews the cooldowns. */
  config: ConfigSource;
  /** The item `cooldowns` as last read; undefined: there was none. */
  cooldowns(): Attributes | undefined;
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

export function runtimeView(parts: RuntimeViewParts): RuntimeView {
  const { clock, log } = parts;
  let held: Held | undefined;
  let cooldowns: Attributes | undefined;
  let reading: Reading | undefined;
  let failedAt = -Infinity;

  const read = async (startedAt: number): Promise<void> => {
    const { pointer, cooldowns: newCooldowns } = await readRuntime(parts);
    // A read that a freeze of the environment held up must not undo a later one.
    if (held && held.checkedAt > startedAt) return;
    cooldowns = newCooldowns;
    const next = await follow(parts, held, pointer, startedAt);
    if (!held || held.checkedAt <= startedAt) held = next;
  };

  /** The read under way, or a new one; one that began before a freeze tells nothing about now. */
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
    const leftMs = startedAt + patienceMs - clock.now();
    // Others have waited long enough for this one.
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
    config: {
      async current() {
        if (!held) return readFirst();
        const served = held;
        const now = clock.now();
        if (now - served.checkedAt >= freshMs && now - failedAt >= retryAfterMs) await joinInTime();
        return held.snapshot;
      },
    },
    cooldowns: () => cooldowns,
    refresh: joinInTime,
  };
}

async function readRuntime({ client, stack }: RuntimeViewParts) {
  const items = await getItems(client, physicalTableName(stack, 'runtime'), [pointerId, cooldownsId]);
  const pointer = items.get(pointerId);
  return { pointer: pointer && pointerOf(pointer), cooldowns: items.get(cooldownsId) };
}

/** What is held after the pointer was seen; a snapshot is read only when the pointer names another one. */
async function follow(
  { client, clock, log, stack }: RuntimeViewParts,
  held: Held | undefined,
  pointer: Pointer | undefined,
  checkedAt: number,
): Promise<Held> {
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
  const snapshot = await readSnapshot(client, physicalTableName(stack, 'runtime'), pointer);
  return { snapshot, pointer, checkedAt };
}
