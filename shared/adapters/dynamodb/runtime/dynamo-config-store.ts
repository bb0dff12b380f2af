/**
 * Published snapshots in the table `runtime`, numbered by version. States of a version:
 *
 *     absent --first part--> owned by its writer --other parts, pointer moved--> newest --50 versions later--> expires
 */
import { createHash, randomUUID } from 'node:crypto';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { ConfigRows } from '../../../config/config-rows.ts';
import { snapshotFormat } from '../../../config/snapshot.ts';
import type { Clock } from '../../../relay/ports/clock.ts';
import type {
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
} from './runtime-items.ts';
import { expireItem, movePointer, putIfAbsent, putItem, type WrittenRuntimeTable } from './runtime-writes.ts';
import { toParts } from './snapshot-parts.ts';
import { readParts, readSnapshot } from './snapshot-reader.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

/** How many of the newest versions are kept for a rollback. */
const keptMax = 50;
/**
 * How many older versions one publication checks for expiry. More than one, because version numbers are
 * skipped.
 */
const expiredAtOnce = 10;
const expiryAfterSeconds = 7 * 24 * 3600;

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
    history: (newest) => keptVersions(table, newest.version - keptMax + 1, newest.version),
    publish: (newest, version, content) => publish(table, clock, { newest, version, content }),
    async expireOld(newest) {
      const last = newest.version - keptMax;
      for (const pointer of await keptVersions(table, last - expiredAtOnce + 1, last))
        await expire(table, clock, pointer);
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
  const { snapshot, rows, digest } = content;
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
  const head = { ...pointerItem(pointer), body: first, writer: randomUUID() };
  // The writer of the first part owns the version and its other parts. Equal content does not prove
  // ownership: another compile of the same rows may split its bytes at other positions.
  if (!(await putIfAbsent(table, snapshotPartId(version, 0), head))) return 'taken';
  await Promise.all([
    ...others.map((body, index) => putItem(table, snapshotPartId(version, index + 1), { body })),
    ...rowParts.map((body, index) => putItem(table, rowsPartId(version, index), { body })),
  ]);
  if (await movePointer(table, newest, pointer)) return 'published';
  await expire(table, clock, pointer);
  return 'moved';
}

/** The versions of the range that have no expiry, newest first. */
async function keptVersions(table: WrittenRuntimeTable, from: number, to: number): Promise<Pointer[]> {
  const first = Math.max(1, from);
  const ids = Array.from({ length: Math.max(0, to - first + 1) }, (_, index) =>
    snapshotPartId(to - index, 0),
  );
  const items = await getItems(table, ids, { attributes: pointerNames });
  return ids.flatMap((id) => {
    const item = items.get(id);
    return item && !item['expires'] ? [pointerOf(item)] : [];
  });
}

/** All attributes except the bytes. */
const pointerNames = ['id', 'expires', 'version', 'format', 'parts', 'row_parts', 'digest', 'published_at'];

async function expire(
  table: WrittenRuntimeTable,
  clock: Pick<Clock, 'now'>,
  pointer: Pointer,
): Promise<void> {
  const expires = Math.floor(clock.now() / 1000) + expiryAfterSeconds;
  const [first, ...others] = snapshotPartIds(pointer);
  for (const id of [...others, ...rowsPartIds(pointer)]) await expireItem(table, id, expires);
  // The first part expires last: a repeat finds an old version by its first part.
  if (first !== undefined) await expireItem(table, first, expires);
}
