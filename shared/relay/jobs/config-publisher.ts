/**
 * Compiles the configuration tables, publishes a changed snapshot, and marks each row with its validation
 * result.
 */
import {
  serializeConfiguration,
  compileSnapshot,
  type CompileOptions,
  listAuthors,
  listChanges,
} from '../../config/compile-snapshot.ts';
import { warnOf, type ConfigRows, type ValidationResult } from '../../config/rows/read-table.ts';
import { findAccountWarnings } from '../../config/loss-warnings.ts';
import { listUnpricedModels } from '../../config/cross-checks.ts';
import { secretsOf } from '../../config/rows/channel-row.ts';
import { snapshotFormat, type Snapshot } from '../../config/snapshot.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import {
  SnapshotBroken,
  type ConfigTables,
  type Pointer,
  type SnapshotStore,
  type RowMarks,
  type SecretCheck,
  type AccountRows,
  type ValidatedRow,
  type WrittenRow,
} from '../ports/config-store.ts';
import type { LearnedFactsReader } from '../ports/runtime-stores.ts';
import type { ConfigMetrics } from '../ports/telemetry.ts';
import {
  findKeyWarnings,
  listRowModels,
  listOfferedNames,
  validateKeyRow,
  type KeyContext,
} from '../../config/rows/key-row.ts';
import { validateAccountRow } from '../../config/rows/alerted-account.ts';
import { attributeOf } from '../../config/rows/read-row.ts';

/** The options are those of the deployment. */
interface ConfigPublisherPorts
  extends
    Pick<ChatPorts, 'clock' | 'random' | 'log'>,
    Pick<CompileOptions, 'local' | 'envSecrets' | 'owners' | 'ownHost' | 'defaultLimits'> {
  metrics: ConfigMetrics;
  tables: ConfigTables;
  snapshots: SnapshotStore;
  learned: LearnedFactsReader;
  secretCheck: SecretCheck;
  marks: RowMarks;
}

const attemptsMax = 10;
const pauseMs = 100;

/**
 * Publishes once per call. Safe to repeat and to run concurrently: the pointer moves only when it still names
 * the snapshot that the compile started from, so it never moves back.
 */
export function createConfigPublisher(ports: ConfigPublisherPorts): () => Promise<Pointer> {
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

type Published = Awaited<ReturnType<typeof publishNew>>;

async function publishNew(ports: ConfigPublisherPorts) {
  const { clock, random, snapshots } = ports;
  let versionsTaken = 0;
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const newest = await snapshots.newest();
    const before = newest && (await readNewest(ports, newest));
    const raw = await ports.tables.rows();
    const publishedAt = Math.floor(clock.now() / 1000);
    const { local, envSecrets, owners, ownHost, defaultLimits } = ports;
    const deployed = { local, envSecrets, owners, ownHost, defaultLimits };
    const options = { ...deployed, publishedAt, ...(before?.rows && { earlier: before.rows }) };
    const compiled = compileSnapshot(raw, options);
    const digest = snapshots.digest(serializeConfiguration(compiled.snapshot, compiled.rows));
    if (newest && before?.intact && newest.digest === digest) {
      return { pointer: newest, compiled, raw, options };
    }
    // A version that is taken but not yet named by the pointer was reserved by a crashed compile; skip it.
    const step = Math.floor(2 ** versionsTaken * (versionsTaken > 0 ? 1 + random.next() : 1));
    const version = (newest?.version ?? 0) + step;
    const by = listAuthors({ raw, before: before?.rows, after: compiled.rows }, newest?.publishedAt ?? 0);
    const changed = listChanges({ before: before?.rows, after: compiled.rows });
    const publication = await snapshots.publish(newest, version, { ...compiled, digest, by, changed });
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
    unpricedModels: listUnpricedModels(compiled.snapshot).length,
  });
  const rows = [...raw.channels, ...raw.charges, ...raw.plans, ...raw.settings];
  await ports.marks.write(
    results.map(({ table, key, ...result }, index) => ({ table, key, raw: rows[index], result })),
  );
}

// Validates newly written rows of keys and accounts, and marks them. Reads what their warnings depend on, never a table.

type Validation = (raw: unknown, rules: { local: boolean }) => ValidationResult;
const validations: Record<WrittenRow['table'], Validation> = {
  keys: validateKeyRow,
  accounts: validateAccountRow,
};

interface RowMarkerPorts {
  marks: RowMarks;
  metrics: Pick<ConfigMetrics, 'badRows' | 'failed'>;
  snapshots: Pick<SnapshotStore, 'newest' | 'snapshot'>;
  accounts: AccountRows;
  /** true on the local stack: loopback addresses are allowed. */
  local: boolean;
}

/** Throws MarksLost, or what the reads throw: then marks of rows that cannot be used are written already. */
export function createRowMarker(ports: RowMarkerPorts): (rows: WrittenRow[]) => Promise<void> {
  const { marks, metrics, local } = ports;
  const write = (rows: ValidatedRow[]) =>
    marks.write(rows).catch((error: unknown) => {
      metrics.failed();
      throw error;
    });
  return async (rows) => {
    const validated = rows.map((row) => ({ ...row, result: validations[row.table](row.raw, { local }) }));
    const bad = validated.filter(({ result }) => result.problem !== undefined);
    if (bad.length > 0) metrics.badRows(bad.length);
    await write(bad);
    const good = validated.filter(({ result }) => result.problem === undefined);
    const keys = good.filter(({ table }) => table === 'keys').map(({ raw }) => raw);
    const beside = await besideOf(ports, keys);
    const config = good.some(hasOwnPrices) ? await readSnapshot(ports) : undefined;
    await write(
      good.map((row) =>
        row.table === 'keys'
          ? addDoubts(row, findKeyWarnings(row.raw, beside))
          : addDoubts(row, config ? findAccountWarnings(row.raw, config) : []),
      ),
    );
  };
}

function addDoubts(row: ValidatedRow, doubts: string[]): ValidatedRow {
  return { ...row, result: warnOf([row.result.warning ?? [], doubts].flat()) };
}

const hasOwnPrices = ({ table, raw }: WrittenRow): boolean =>
  table === 'accounts' && ['prices', 'price_group'].some((name) => attributeOf(raw, name) !== undefined);

async function readSnapshot({ snapshots }: RowMarkerPorts): Promise<Snapshot | undefined> {
  const newest = await snapshots.newest();
  return newest?.format === snapshotFormat ? snapshots.snapshot(newest) : undefined;
}

/** Reads what warnings about keys need. Reads the snapshot only if a key names models. */
async function besideOf(ports: RowMarkerPorts, keys: unknown[]): Promise<KeyContext> {
  if (keys.length === 0) return {};
  const names = keys.map((raw) => attributeOf(raw, 'account')).filter((name) => typeof name === 'string');
  const snapshot = keys.some((raw) => listRowModels(raw).length > 0) ? await readSnapshot(ports) : undefined;
  return {
    accounts: await ports.accounts.existing([...new Set(names)]),
    offered: snapshot && listOfferedNames(snapshot),
  };
}
