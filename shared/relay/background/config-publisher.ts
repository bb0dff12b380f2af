/** Keeps the published configuration up with the tables, and tells their rows what became of them. */
import { createHash } from 'node:crypto';
import { canonicalContent } from '../../config/compile/canonical-content.ts';
import {
  compileSnapshot,
  type Compiled,
  type CompileOptions,
} from '../../config/compile/compile-snapshot.ts';
import type { ConfigRows } from '../../config/config-rows.ts';
import { unpricedModels } from '../../config/compile/cross-checks.ts';
import { secretsOf } from '../../config/compile/read-channel.ts';
import { snapshotFormat } from '../../config/snapshot.ts';
import type { Clock } from '../ports/clock.ts';
import type { Log } from '../ports/telemetry.ts';
import type { Random } from '../ports/ids.ts';
import type { ConfigMetrics } from '../../adapters/telemetry/config-metrics.ts';
import type { Pointer } from '../../adapters/dynamodb/runtime/runtime-items.ts';
import { SnapshotBroken } from '../../adapters/dynamodb/runtime/snapshot-reader.ts';
import type { SnapshotStore } from '../../adapters/dynamodb/runtime/dynamo-config-store.ts';
import type { ValidatedRow } from '../../adapters/dynamodb/dynamo-row-marks.ts';

export interface ConfigPublisherParts {
  clock: Clock;
  random: Random;
  log: Log;
  metrics: ConfigMetrics;
  /** true on the local stack: loopback endpoints and `env:` secrets are allowed. */
  local: boolean;
  snapshots: SnapshotStore;
  scan(): Promise<ConfigRows>;
  mark(rows: ValidatedRow[]): Promise<void>;
  /** Which of these secret references certainly cannot be read, each with why. */
  unreadable(references: string[]): Promise<ReadonlyMap<string, string>>;
}

const attemptsMax = 10;
const pauseMs = 100;

/**
 * Compiles the tables and publishes what is new. Safe to run as often and as many at once as may be: the pointer
 * moves only from the snapshot that a compile began with, so never back.
 */
export function configPublisher(parts: ConfigPublisherParts): () => Promise<Pointer> {
  return async () => {
    try {
      const { pointer, compiled, raw, options } = await publishNew(parts);
      await markRows(parts, compiled, raw, options);
      return pointer;
    } catch (error) {
      parts.metrics.failed();
      throw error;
    }
  };
}

interface Outcome {
  pointer: Pointer;
  compiled: Compiled;
  raw: ConfigRows;
  options: CompileOptions;
}

async function publishNew(parts: ConfigPublisherParts): Promise<Outcome> {
  const { clock, random, snapshots } = parts;
  let numbersTaken = 0;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const newest = await snapshots.newest();
    const before = newest && (await readNewest(parts, newest));
    const raw = await parts.scan();
    const publishedAt = Math.floor(clock.now() / 1000);
    const options = { local: parts.local, publishedAt, ...(before?.rows && { earlier: before.rows }) };
    const compiled = compileSnapshot(raw, options);
    const digest = digestOf(compiled);
    if (newest && before?.intact && newest.digest === digest) {
      return { pointer: newest, compiled, raw, options };
    }
    // A number that is taken although the pointer never came to it was left behind by a compile that died.
    const step = Math.floor(2 ** numbersTaken * (numbersTaken > 0 ? 1 + random.next() : 1));
    const version = (newest?.version ?? 0) + step;
    const publication = await snapshots.publish(newest, version, { ...compiled, digest });
    if (publication === 'published') {
      const pointer = await snapshots.newest();
      if (pointer === undefined) throw new Error('the pointer is gone');
      await snapshots.expireOld(pointer);
      return { pointer, compiled, raw, options };
    }
    numbersTaken = publication === 'taken' ? numbersTaken + 1 : 0;
    await clock.sleep(pauseMs * (1 + random.next()));
  }
  throw new Error(`no snapshot could be published in ${attemptsMax} attempts`);
}

/**
 * A newest snapshot with missing parts is published again, and without its rows a bad row has nothing to fall back to. Only
 * when they are truly missing: a store that does not answer ends this compile instead.
 */
async function readNewest(
  { snapshots, log }: ConfigPublisherParts,
  newest: Pointer,
): Promise<{ rows: ConfigRows | undefined; intact: boolean }> {
  const unlessBroken = (error: unknown): undefined => {
    if (!(error instanceof SnapshotBroken)) throw error;
    log.fault('config', error);
  };
  const [rows, snapshot] = await Promise.all([
    snapshots.rows(newest).catch(unlessBroken),
    newest.format === snapshotFormat ? snapshots.snapshot(newest).catch(unlessBroken) : undefined,
  ]);
  return { rows, intact: rows !== undefined && snapshot !== undefined };
}

const digestOf = ({ snapshot, rows }: Compiled): string =>
  createHash('sha256').update(canonicalContent(snapshot, rows)).digest('hex');

/** After publishing, so that no edit waits for a secret store. */
async function markRows(
  parts: ConfigPublisherParts,
  compiled: Compiled,
  raw: ConfigRows,
  options: CompileOptions,
): Promise<void> {
  const references = new Set(compiled.snapshot.channels.flatMap(secretsOf));
  const unreadable = await parts.unreadable([...references]);
  const { results } =
    unreadable.size > 0 ? compileSnapshot(raw, { ...options, unreadableSecrets: unreadable }) : compiled;
  parts.metrics.compiled({
    badRows: results.filter(({ problem }) => problem !== undefined).length,
    warnedRows: results.filter(({ warning }) => warning !== undefined).length,
    unpricedModels: unpricedModels(compiled.snapshot).length,
  });
  const rows = [...raw.channels, ...raw.charges, ...raw.plans, ...raw.settings];
  await parts.mark(
    results.map(({ table, key, ...result }, index) => ({ table, key, raw: rows[index], result })),
  );
}
