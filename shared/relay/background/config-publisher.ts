/**
 * Compiles the configuration tables, publishes a changed snapshot, and marks each row with its validation
 * result.
 */
import { canonicalContent } from '../../config/compile/canonical-content.ts';
import {
  compileSnapshot,
  type Compiled,
  type CompileOptions,
} from '../../config/compile/compile-snapshot.ts';
import type { ConfigRows } from '../../config/config-rows.ts';
import { authorsOf } from '../../config/compile/row-authors.ts';
import { unpricedModels } from '../../config/compile/unpriced-models.ts';
import { secretsOf } from '../../config/compile/read-channel.ts';
import { snapshotFormat } from '../../config/snapshot.ts';
import type { Clock } from '../ports/clock.ts';
import {
  SnapshotBroken,
  type ConfigTables,
  type Pointer,
  type SnapshotStore,
  type RowMarks,
} from '../ports/stores/config-store.ts';
import type { LearnedFactsReader } from '../ports/stores/learned-facts.ts';
import type { Random } from '../ports/ids.ts';
import type { SecretCheck } from '../ports/stores/secret-store.ts';
import type { ConfigMetrics, Log } from '../ports/telemetry.ts';

export interface ConfigPublisherPorts {
  clock: Clock;
  random: Random;
  log: Log;
  metrics: ConfigMetrics;
  tables: ConfigTables;
  snapshots: SnapshotStore;
  learned: LearnedFactsReader;
  secretCheck: SecretCheck;
  marks: RowMarks;
  /** true on the local stack: loopback endpoints and `env:` secrets are allowed. */
  local: boolean;
  /** The variables that these secrets may be. */
  envSecrets: CompileOptions['envSecrets'];
  /** The relay's public host. Undefined: it is not known before a request comes in. */
  ownHost?: string | undefined;
  /** Of the deployment, while the setting has no row. */
  defaultLimits?: CompileOptions['defaultLimits'];
}

const attemptsMax = 10;
const pauseMs = 100;

/**
 * Publishes once per call. Safe to repeat and to run concurrently: the pointer moves only when it still names
 * the snapshot that the compile started from, so it never moves back.
 */
export function configPublisher(ports: ConfigPublisherPorts): () => Promise<Pointer> {
  return async () => {
    try {
      const published = await publishNew(ports);
      // Marks are written after publishing, so that no edit waits for a secret store.
      await markRows(ports, published);
      return published.pointer;
    } catch (error) {
      ports.metrics.failed();
      throw error;
    }
  };
}

interface Published {
  pointer: Pointer;
  compiled: Compiled;
  raw: ConfigRows;
  options: CompileOptions;
}

async function publishNew(ports: ConfigPublisherPorts): Promise<Published> {
  const { clock, random, snapshots } = ports;
  let versionsTaken = 0;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const newest = await snapshots.newest();
    const before = newest && (await readNewest(ports, newest));
    const raw = await ports.tables.rows();
    const publishedAt = Math.floor(clock.now() / 1000);
    const { local, envSecrets, ownHost, defaultLimits } = ports;
    const options = {
      local,
      envSecrets,
      ownHost,
      defaultLimits,
      publishedAt,
      ...(before?.rows && { earlier: before.rows }),
    };
    const compiled = compileSnapshot(raw, options);
    const digest = snapshots.digest(canonicalContent(compiled.snapshot, compiled.rows));
    if (newest && before?.intact && newest.digest === digest) {
      return { pointer: newest, compiled, raw, options };
    }
    // A version that is taken but not yet named by the pointer was reserved by a crashed compile; skip it.
    const step = Math.floor(2 ** versionsTaken * (versionsTaken > 0 ? 1 + random.next() : 1));
    const version = (newest?.version ?? 0) + step;
    const by = authorsOf({ raw, before: before?.rows, after: compiled.rows }, newest?.publishedAt ?? 0);
    const publication = await snapshots.publish(newest, version, { ...compiled, digest, by });
    if (publication === 'published') {
      const pointer = await snapshots.newest();
      if (pointer === undefined) throw new Error('the pointer is gone');
      await snapshots.expireOld(pointer);
      return { pointer, compiled, raw, options };
    }
    versionsTaken = publication === 'taken' ? versionsTaken + 1 : 0;
    await clock.sleep(pauseMs * (1 + random.next()));
  }
  throw new Error(`no snapshot could be published in ${attemptsMax} attempts`);
}

/**
 * Reads the newest snapshot and its rows. `intact` is false when parts are missing; it is then published
 * again. `rows` is undefined when their parts are missing; a bad row then has no last good version. Throws
 * when the store does not answer.
 */
async function readNewest(
  { snapshots, log }: ConfigPublisherPorts,
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

async function markRows(ports: ConfigPublisherPorts, { compiled, raw, options }: Published): Promise<void> {
  const references = new Set(compiled.snapshot.channels.flatMap(secretsOf));
  const [unreadableSecrets, learned] = await Promise.all([
    ports.secretCheck.unusable([...references]),
    ports.learned.all(),
  ]);
  const known = { ...options, unreadableSecrets, learned };
  const { results } =
    unreadableSecrets.size > 0 || learned.length > 0 ? compileSnapshot(raw, known) : compiled;
  ports.metrics.compiled({
    badRows: results.filter(({ problem }) => problem !== undefined).length,
    warnedRows: results.filter(({ warning }) => warning !== undefined).length,
    unpricedModels: unpricedModels(compiled.snapshot).length,
  });
  const rows = [...raw.channels, ...raw.charges, ...raw.plans, ...raw.settings];
  await ports.marks.write(
    results.map(({ table, key, ...result }, index) => ({ table, key, raw: rows[index], result })),
  );
}
