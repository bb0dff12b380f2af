/**
 * Published snapshots in the table `runtime`, numbered by version. States of a version:
 *
 *     absent --first part--> owned by its writer --other parts, pointer moved--> newest --50 versions later--> retired,
 *     a rollback still finds it --a week later--> gone
 */
import { hash, randomUUID } from 'node:crypto';
import type { ConfigRows } from '../../config/rows/read-table.ts';
import { defaultAlerts, defaultSettings, type AlertSettings, type Settings } from '../../config/settings.ts';
import { snapshotFormat } from '../../config/snapshot.ts';
import type { ConfigVersions } from '../../operate/operator-ports.ts';
import { usageFailure } from '../../operate/plan.ts';
import type {
  HistoryWanted,
  KeptVersion,
  Pointer,
  SnapshotContent,
  SnapshotStore,
} from '../../relay/ports/config-store.ts';
import type { Clock } from '../../relay/ports/host.ts';
import { systemClock } from '../system/node-ports.ts';
import type { Store } from './operator-store.ts';
import { createConfigTables } from './row-tables.ts';
import {
  listFurtherCopies,
  readItems,
  pointerAttributes,
  pointerId,
  encodePointer,
  decodePointer,
  readParts,
  readSnapshot,
  buildRowsPartId,
  listRowsPartIds,
  snapshotCopies,
  buildSnapshotPartId,
  listSnapshotPartIds,
  packParts,
  type RuntimeItem,
} from './runtime-items.ts';
import { chunksOf, buildExpressions, Table, type TableClient } from './table-client.ts';

const keptMax = 50;
const historyMax = 1000;
/** More than one, because version numbers are skipped. */
const expiredAtOnce = 10;
/** One megabyte, which a small function can send within one try. */
const putsAtOnce = 10;
const expiryAfterSeconds = 7 * 24 * 3600;
/** A version that expires sooner is not offered: a rollback could miss parts. */
const usableSeconds = 3600;

const isKept = ({ expires }: RuntimeItem): boolean => expires === undefined;

export function createSnapshotStore(
  client: TableClient,
  stack: string,
  clock: Pick<Clock, 'now'>,
): SnapshotStore {
  const table = new Table(client, stack, 'runtime');
  const nowSeconds = () => Math.floor(clock.now() / 1000);
  /** Versions that lost a race also expire, but were never served. */
  const isOffered = (item: RuntimeItem): boolean =>
    isKept(item) || (item['retired'] === true && Number(item['expires']) > nowSeconds() + usableSeconds);

  const readVersions = async (
    from: number,
    to: number,
    isWanted: (item: RuntimeItem) => boolean,
  ): Promise<KeptVersion[]> => {
    const count = Math.max(0, to - Math.max(1, from) + 1);
    const ids = Array.from({ length: count }, (_, index) => buildSnapshotPartId(to - index, 0));
    const items = await readItems(table, ids, { attributes: headAttributes });
    return ids.flatMap((id) => {
      const item = items.get(id);
      if (!item || !isWanted(item)) return [];
      return [{ ...decodePointer(item), ...readTexts(item, 'by'), ...readTexts(item, 'changed') }];
    });
  };

  /** @param hasServed a rollback may still use it until it expires */
  const expire = async (pointer: Pointer, hasServed: boolean): Promise<void> => {
    const [first = '', ...others] = listSnapshotPartIds(pointer);
    others.push(...listFurtherCopies(pointer).flatMap((copy) => listSnapshotPartIds(pointer, copy)));
    // The first part expires last, because a repeat finds an old version by it.
    for (const id of [...others, ...listRowsPartIds(pointer), first]) {
      const isRetired = hasServed && id === first;
      const expires = nowSeconds() + expiryAfterSeconds;
      const write = buildExpressions(
        {
          UpdateExpression: `SET expires = :expires${isRetired ? ', retired = :retired' : ''}`,
          ConditionExpression: hasNoExpiry,
        },
        { ':expires': expires, ...(isRetired && { ':retired': true }) },
      );
      await table.update({ id }, write);
    }
  };

  return {
    digest: (canonicalContent) => hash('sha256', canonicalContent),
    async newest() {
      const item = (await readItems(table, [pointerId])).get(pointerId);
      return item && decodePointer(item);
    },
    async snapshot(pointer) {
      if (pointer.format !== snapshotFormat)
        throw new Error(`snapshot ${pointer.version} has another format`);
      return readSnapshot(table, pointer);
    },
    rows: async (pointer) => (await readParts(table, listRowsPartIds(pointer))) as ConfigRows,
    /** Ends at a gap of `keptMax` numbers. */
    async history(newest, { sinceMs = -Infinity, count = historyMax } = {}) {
      const versions: KeptVersion[] = [];
      const end = Math.max(0, newest.version - historyMax);
      for (let to = newest.version; to > end; to -= keptMax) {
        const found = await readVersions(Math.max(end + 1, to - keptMax + 1), to, isOffered);
        versions.push(...found);
        const isThere = found.some(({ publishedAt }) => publishedAt * 1000 <= sinceMs);
        if (found.length === 0 || isThere || versions.length >= count) break;
      }
      return versions;
    },
    async kept(newest, version) {
      if (version > newest.version || version <= newest.version - historyMax) return undefined;
      return (await readVersions(version, version, isOffered))[0];
    },
    async publish(newest, version, content) {
      const { pointer, head, others } = buildItems(version, content);
      // The writer of the first part owns the version. Equal content does not prove that: another compile may split the same
      // rows at other positions.
      const ownCondition = buildExpressions(
        { ConditionExpression: `${isAbsent} OR ${isOwnVersion}` },
        { ':writer': head.writer },
      );
      if (!(await table.put(head, ownCondition)).done) return 'taken';
      for (const some of chunksOf(others, putsAtOnce)) await Promise.all(some.map((item) => table.put(item)));
      const moved = await table.put(
        { id: pointerId, ...encodePointer(pointer) },
        buildMoveCondition(newest, pointer),
      );
      if (moved.done) return 'published';
      await expire(pointer, false);
      return 'moved';
    },
    async expireOld(newest) {
      const last = newest.version - keptMax;
      for (const pointer of await readVersions(last - expiredAtOnce + 1, last, isKept))
        await expire(pointer, true);
    },
  };
}

const headAttributes = ['id', 'expires', 'retired', ...Object.keys(pointerAttributes), 'by', 'changed'];

const readTexts = (item: RuntimeItem, name: 'by' | 'changed'): { [Name in typeof name]?: string[] } => {
  const texts = item[name];
  return Array.isArray(texts) ? { [name]: texts.map(String) } : {};
};

// The client repeats writes whose reply was lost, so each condition accepts the writer's own earlier write.

const isAbsent = 'attribute_not_exists(id)';
const isOwnVersion = 'writer = :writer';
const hasNoExpiry = 'attribute_exists(id) AND attribute_not_exists(expires)';
const buildPointerCondition = (which: 'from' | 'to'): string =>
  `(#version = :${which}_version AND #digest = :${which}_digest)`;
const buildPointerValues = (which: 'from' | 'to', { version, digest }: Pointer) => ({
  [`:${which}_version`]: version,
  [`:${which}_digest`]: digest,
});

/**
 * @param from undefined: no pointer may exist. @param to the caller must own it, so a stored pointer to it is its own write
 */
function buildMoveCondition(from: Pointer | undefined, to: Pointer) {
  return buildExpressions(
    {
      ConditionExpression: `${from ? buildPointerCondition('from') : isAbsent} OR ${buildPointerCondition('to')}`,
    },
    { ...(from && buildPointerValues('from', from)), ...buildPointerValues('to', to) },
  );
}

function buildItems(version: number, { snapshot, rows, digest, by = [], changed = [] }: SnapshotContent) {
  const [first = new Uint8Array(), ...parts] = packParts(snapshot);
  const rowParts = packParts(rows);
  const pointer: Pointer = {
    version,
    format: snapshotFormat,
    parts: parts.length + 1,
    copies: snapshotCopies,
    rowParts: rowParts.length,
    digest,
    publishedAt: snapshot.publishedAt,
  };
  const head = {
    id: buildSnapshotPartId(version, 0),
    ...encodePointer(pointer),
    ...(by.length > 0 && { by }),
    ...(changed.length > 0 && { changed }),
    body: first,
    writer: randomUUID(),
  };
  const others = [
    ...parts.map((body, index) => ({ id: buildSnapshotPartId(version, index + 1), body })),
    ...listFurtherCopies(pointer).flatMap((copy) =>
      [first, ...parts].map((body, index) => ({ id: buildSnapshotPartId(version, index, copy), body })),
    ),
    ...rowParts.map((body, index) => ({ id: buildRowsPartId(version, index), body })),
  ];
  return { pointer, head, others };
}

export function createConfigVersions({ tables, target }: Store): ConfigVersions {
  const snapshots = createSnapshotStore(tables, target.stack, { now: () => Date.now() });
  const findNewest = () => snapshots.newest();
  const listVersions = async (wanted?: HistoryWanted): Promise<KeptVersion[]> => {
    const pointer = await findNewest();
    return pointer ? snapshots.history(pointer, wanted) : [];
  };
  return {
    tables: () => createConfigTables(tables, target.stack).rows(),
    newest: findNewest,
    versions: listVersions,
    async version(number) {
      const pointer = await findNewest();
      const found = pointer && (await snapshots.kept(pointer, number));
      if (found) return found;
      throw usageFailure(`no version ${number}: see \`version list\``);
    },
    rows: (pointer) => snapshots.rows(pointer),
    snapshot: (pointer) => snapshots.snapshot(pointer),
  };
}

// Published settings, for background jobs.

export function createJobSettings(client: TableClient, stack: string): () => Promise<Settings> {
  const snapshots = createSnapshotStore(client, stack, systemClock);
  return async () => {
    const newest = await snapshots.newest();
    return newest ? (await snapshots.snapshot(newest)).settings : defaultSettings;
  };
}

export function createAlertSettings(client: TableClient, stack: string): () => Promise<AlertSettings> {
  const readSettings = createJobSettings(client, stack);
  return async () => (await readSettings()).alerts ?? defaultAlerts;
}
