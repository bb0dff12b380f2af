/**
 * Published snapshots in the table `runtime`, numbered by version. States of a version:
 *
 *     absent --first part--> owned by its writer --other parts, pointer moved--> newest --50 versions later--> retired,
 *     a rollback still finds it --a week later, or 1,000 versions later--> gone
 */
import { createHash, randomUUID } from 'node:crypto';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { ConfigRows } from '../../../config/config-rows.ts';
import { snapshotFormat } from '../../../config/snapshot.ts';
import type { Clock } from '../../../relay/ports/clock.ts';
import type {
  HistoryWanted,
  KeptVersion,
  Pointer,
  Publication,
  SnapshotContent,
  SnapshotStore,
} from '../../../relay/ports/stores/config-store.ts';
import { tablesOn } from '../sdk-client.ts';
import {
  getItems,
  pointerId,
  pointerItem,
  pointerOf,
  rowsPartId,
  rowsPartIds,
  snapshotPartId,
  snapshotPartIds,
  type RuntimeItem,
} from './runtime-items.ts';
import {
  expireItem,
  expireSooner,
  movePointer,
  putIfAbsent,
  putItem,
  type WrittenRuntimeTable,
} from './runtime-writes.ts';
import { toParts } from './snapshot-parts.ts';
import { readParts, readSnapshot } from './snapshot-reader.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

/** So many of the newest versions have no expiry. */
const keptMax = 50;
/** Of older ones, which a week keeps, so many at most, however fast edits come. */
const retiredMax = 1000;
/**
 * How many older versions one publication checks for expiry. More than one, because version numbers are
 * skipped.
 */
const expiredAtOnce = 10;
const expiryAfterSeconds = 7 * 24 * 3600;
/** A version that expires sooner is not offered any more: a rollback to it could miss parts. */
const usableSeconds = 3600;

export function dynamoConfigStore(
  client: DynamoDBDocumentClient,
  stack: string,
  clock: Pick<Clock, 'now'>,
): SnapshotStore {
  const table: WrittenRuntimeTable = {
    client: tablesOn(client),
    documents: client,
    name: physicalTableName(stack, 'runtime'),
  };
  return {
    digest: (canonicalContent) => createHash('sha256').update(canonicalContent).digest('hex'),
    async newest() {
      const item = (await getItems(table, [pointerId])).get(pointerId);
      return item && pointerOf(item);
    },
    async snapshot(pointer) {
      if (pointer.format !== snapshotFormat)
        throw new Error(`snapshot ${pointer.version} has another format`);
      return readSnapshot(table, pointer);
    },
    rows: async (pointer) => (await readParts(table, rowsPartIds(pointer))) as ConfigRows,
    history: (newest, wanted = {}) => history(table, { ...wanted, newest, isWanted: offered(clock) }),
    async kept(newest, version) {
      if (version > newest.version || version <= newest.version - retiredMax) return undefined;
      return (await versionsOf(table, { from: version, to: version, isWanted: offered(clock) }))[0];
    },
    publish: (newest, version, content) => publish(table, clock, { newest, version, content }),
    async expireOld(newest) {
      const last = newest.version - keptMax;
      const retiring = { from: last - expiredAtOnce + 1, to: last, isWanted: isKept };
      for (const pointer of await versionsOf(table, retiring))
        await expire(table, pointer, { clock, isRetired: true });
      const end = newest.version - retiredMax;
      const now = Math.floor(clock.now() / 1000);
      const ending = { from: end - expiredAtOnce + 1, to: end, isWanted: isRetiredAfter(now) };
      for (const pointer of await versionsOf(table, ending)) await endRetired(table, pointer, now);
    },
  };
}

interface Publishing {
  newest: Pointer | undefined;
  version: number;
  content: SnapshotContent;
}

async function publish(
  table: WrittenRuntimeTable,
  clock: Pick<Clock, 'now'>,
  { newest, version, content }: Publishing,
): Promise<Publication> {
  const { snapshot, rows, digest, by = [] } = content;
  const parts = toParts(snapshot);
  const rowParts = toParts(rows);
  const pointer: Pointer = {
    version,
    format: snapshotFormat,
    parts: parts.length,
    rowParts: rowParts.length,
    digest,
    publishedAt: snapshot.publishedAt,
  };
  const [first = new Uint8Array(), ...others] = parts;
  const head = { ...pointerItem(pointer), ...(by.length > 0 && { by }), body: first, writer: randomUUID() };
  // The writer of the first part owns the version and its other parts. Equal content does not prove
  // ownership: another compile of the same rows may split its bytes at other positions.
  if (!(await putIfAbsent(table, snapshotPartId(version, 0), head))) return 'taken';
  await Promise.all([
    ...others.map((body, index) => putItem(table, snapshotPartId(version, index + 1), { body })),
    ...rowParts.map((body, index) => putItem(table, rowsPartId(version, index), { body })),
  ]);
  if (await movePointer(table, newest, pointer)) return 'published';
  await expire(table, pointer, { clock, isRetired: false });
  return 'moved';
}

type IsWanted = (item: RuntimeItem) => boolean;

const isKept: IsWanted = ({ expires }) => expires === undefined;
/** Versions that lost a race also expire, but never served. */
const isRetiredAfter =
  (seconds: number): IsWanted =>
  ({ expires, retired }) =>
    retired === true && Number(expires) > seconds;

/** For a rollback. */
function offered(clock: Pick<Clock, 'now'>): IsWanted {
  const isUsable = isRetiredAfter(Math.floor(clock.now() / 1000) + usableSeconds);
  return (item) => isKept(item) || isUsable(item);
}

interface HistoryRead extends HistoryWanted {
  newest: Pointer;
  isWanted: IsWanted;
}

/** Newest first. It ends where so many numbers in a row have no version. */
async function history(
  table: WrittenRuntimeTable,
  { newest, isWanted, sinceMs = -Infinity, count = retiredMax }: HistoryRead,
): Promise<KeptVersion[]> {
  const versions: KeptVersion[] = [];
  const end = Math.max(0, newest.version - retiredMax);
  for (let to = newest.version; to > end; to -= keptMax) {
    const found = await versionsOf(table, { from: Math.max(end + 1, to - keptMax + 1), to, isWanted });
    versions.push(...found);
    const isThere = found.some(({ publishedAt }) => publishedAt * 1000 <= sinceMs);
    if (found.length === 0 || isThere || versions.length >= count) break;
  }
  return versions;
}

/** The wanted versions of the numbers, newest first. */
async function versionsOf(
  table: WrittenRuntimeTable,
  { from, to, isWanted }: { from: number; to: number; isWanted: IsWanted },
): Promise<KeptVersion[]> {
  const first = Math.max(1, from);
  const ids = Array.from({ length: Math.max(0, to - first + 1) }, (_, index) =>
    snapshotPartId(to - index, 0),
  );
  const items = await getItems(table, ids, { attributes: pointerNames });
  return ids.flatMap((id) => {
    const item = items.get(id);
    if (!item || !isWanted(item)) return [];
    const { by } = item;
    return [{ ...pointerOf(item), ...(Array.isArray(by) && { by: by.map(String) }) }];
  });
}

/** All attributes except the bytes. */
const pointerNames = [
  'id',
  'expires',
  'retired',
  'version',
  'format',
  'parts',
  'row_parts',
  'digest',
  'published_at',
  'by',
];

/** @param isRetired it has served, so a rollback may still find it until then */
async function expire(
  table: WrittenRuntimeTable,
  pointer: Pointer,
  { clock, isRetired }: { clock: Pick<Clock, 'now'>; isRetired: boolean },
): Promise<void> {
  const expires = Math.floor(clock.now() / 1000) + expiryAfterSeconds;
  const [first, ...others] = snapshotPartIds(pointer);
  for (const id of [...others, ...rowsPartIds(pointer)]) await expireItem(table, id, { expires });
  // The first part expires last: a repeat finds an old version by its first part.
  if (first !== undefined) await expireItem(table, first, { expires, isRetired });
}

async function endRetired(table: WrittenRuntimeTable, pointer: Pointer, expires: number): Promise<void> {
  const [first, ...others] = snapshotPartIds(pointer);
  for (const id of [...others, ...rowsPartIds(pointer), ...(first === undefined ? [] : [first])])
    await expireSooner(table, id, expires);
}
