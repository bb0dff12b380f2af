import { randomUUID } from 'node:crypto';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { ConfigRows } from '../../../config/config-rows.ts';
import { snapshotFormat, type Snapshot } from '../../../config/snapshot.ts';
import type { Clock } from '../../../relay/ports/clock.ts';
import {
  getItems,
  pointerAttributes,
  pointerId,
  pointerOf,
  rowsPartId,
  rowsPartIds,
  snapshotPartId,
  snapshotPartIds,
  type Pointer,
} from './runtime-items.ts';
import { expireItem, movePointer, putIfAbsent, putItem, type RuntimeTable } from './runtime-writes.ts';
import { toParts } from './snapshot-parts.ts';
import { readParts, readSnapshot } from './snapshot-reader.ts';
import { physicalTableName } from '../../../tables/table-names.ts';

/** A configuration to publish: what requests are served with, and the rows it was made of. */
export interface SnapshotContent {
  snapshot: Snapshot;
  rows: ConfigRows;
  digest: string;
}

/** `taken`: that number is used already. `moved`: somebody else has published since. */
export type Publication = 'published' | 'taken' | 'moved';

/** Every method throws StoreUnavailable, or the SDK's error. */
export interface SnapshotStore {
  /** Which snapshot is the newest; undefined: none was ever published. */
  newest(): Promise<Pointer | undefined>;
  /** What requests are served with; its format must be known. Throws SnapshotBroken. */
  snapshot(pointer: Pointer): Promise<Snapshot>;
  /** The rows that a snapshot was made of, whatever its format. Throws SnapshotBroken. */
  rows(pointer: Pointer): Promise<ConfigRows>;
  /** The snapshots that a rollback may go to, newest first. */
  history(newest: Pointer): Promise<Pointer[]>;
  /** Puts the content as that version, and makes it the newest if `newest` still is. */
  publish(newest: Pointer | undefined, version: number, content: SnapshotContent): Promise<Publication>;
  /** Lets the versions expire that are too old for a rollback. Safe to repeat. */
  expireOld(newest: Pointer): Promise<void>;
}

/** How many of the newest versions are kept for a rollback. */
const keptMax = 50;
/** Versions beyond those that are looked at: more than one, as a number can be left out. */
const expiredAtOnce = 10;
const expiryAfterSeconds = 7 * 24 * 3600;

export function dynamoSnapshotStore(
  client: DynamoDBDocumentClient,
  stack: string,
  clock: Pick<Clock, 'now'>,
): SnapshotStore {
  const table: RuntimeTable = { client, name: physicalTableName(stack, 'runtime') };
  return {
    async newest() {
      const item = (await getItems(client, table.name, [pointerId])).get(pointerId);
      return item && pointerOf(item);
    },
    async snapshot(pointer) {
      if (pointer.format !== snapshotFormat)
        throw new Error(`snapshot ${pointer.version} has another format`);
      return readSnapshot(client, table.name, pointer);
    },
    rows: async (pointer) => (await readParts(client, table.name, rowsPartIds(pointer))) as ConfigRows,
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
  table: RuntimeTable,
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
  const head = { ...pointerAttributes(pointer), body: { B: first } };
  // Whoever has put the first part owns the number, and with it the other parts.
  // Equal content is no sign of it: another compile of the same rows may have cut its bytes elsewhere.
  if (!(await putIfAbsent(table, snapshotPartId(version, 0), head, randomUUID()))) return 'taken';
  await Promise.all([
    ...others.map((B, index) => putItem(table, snapshotPartId(version, index + 1), { body: { B } })),
    ...rowParts.map((B, index) => putItem(table, rowsPartId(version, index), { body: { B } })),
  ]);
  if (await movePointer(table, newest, pointer)) return 'published';
  await expire(table, clock, pointer);
  return 'moved';
}

/** The versions of that range of numbers that do not expire, newest first. */
async function keptVersions(table: RuntimeTable, from: number, to: number): Promise<Pointer[]> {
  const first = Math.max(1, from);
  const ids = Array.from({ length: Math.max(0, to - first + 1) }, (_, index) =>
    snapshotPartId(to - index, 0),
  );
  const items = await getItems(table.client, table.name, ids, pointerNames);
  return ids.flatMap((id) => {
    const item = items.get(id);
    return item && !item['expires'] ? [pointerOf(item)] : [];
  });
}

/** Without the bytes. */
const pointerNames = ['id', 'expires', 'version', 'format', 'parts', 'row_parts', 'digest', 'published_at'];

async function expire(table: RuntimeTable, clock: Pick<Clock, 'now'>, pointer: Pointer): Promise<void> {
  const expires = Math.floor(clock.now() / 1000) + expiryAfterSeconds;
  const [first, ...others] = snapshotPartIds(pointer);
  for (const id of [...others, ...rowsPartIds(pointer)]) await expireItem(table, id, expires);
  // The first part is what an old version is found by, so it goes last.
  if (first !== undefined) await expireItem(table, first, expires);
}
