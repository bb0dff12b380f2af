/**
 * Published snapshots in the table `runtime`, numbered by version. States of a version:
 *
 *     absent --first part--> owned by its writer --other parts, pointer moved--> newest --50 versions later--> retired,
 *     a rollback still finds it --a week later, or 1,000 versions later--> gone
 */
import { createHash, randomUUID } from 'node:crypto';
import type { ConfigRows } from '../../config/rows/read-table.ts';
import { snapshotFormat } from '../../config/snapshot.ts';
import type { Clock } from '../../relay/ports/host.ts';
import type {
  HistoryWanted,
  KeptVersion,
  Pointer,
  Publication,
  SnapshotContent,
  SnapshotStore,
} from '../../relay/ports/config-store.ts';
import { type TableClient, attributesOf, conditionalCall, storeCall } from './table-client.ts';
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
  type RuntimeTable,
} from './runtime-items.ts';
import { toParts, readParts, readSnapshot } from './config-source.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import type { ConfigVersions } from '../../operate/operator-ports.ts';
import { dynamoConfigTables } from './row-tables.ts';
import { usageFailure } from '../../operate/plan.ts';
import type { Store } from './operator-store.ts';
import { systemClock } from '../system/node-ports.ts';
import { defaultAlerts, type AlertSettings } from '../../config/settings.ts';

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
  client: TableClient,
  stack: string,
  clock: Pick<Clock, 'now'>,
): SnapshotStore {
  const table: RuntimeTable = { client, name: physicalTableName(stack, 'runtime') };
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
  table: RuntimeTable,
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
  const head = {
    id: snapshotPartId(version, 0),
    ...pointerItem(pointer),
    ...(by.length > 0 && { by }),
    body: first,
    writer: randomUUID(),
  };
  // The writer of the first part owns the version and its other parts. Equal content does not prove
  // ownership: another compile of the same rows may split its bytes at other positions.
  if (!(await putIfAbsent(table, head))) return 'taken';
  await Promise.all([
    ...others.map((body, index) => putItem(table, { id: snapshotPartId(version, index + 1), body })),
    ...rowParts.map((body, index) => putItem(table, { id: rowsPartId(version, index), body })),
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
  table: RuntimeTable,
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
  table: RuntimeTable,
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
  table: RuntimeTable,
  pointer: Pointer,
  { clock, isRetired }: { clock: Pick<Clock, 'now'>; isRetired: boolean },
): Promise<void> {
  const expires = Math.floor(clock.now() / 1000) + expiryAfterSeconds;
  const [first, ...others] = snapshotPartIds(pointer);
  for (const id of [...others, ...rowsPartIds(pointer)]) await expireItem(table, id, { expires });
  // The first part expires last: a repeat finds an old version by its first part.
  if (first !== undefined) await expireItem(table, first, { expires, isRetired });
}

async function endRetired(table: RuntimeTable, pointer: Pointer, expires: number): Promise<void> {
  const [first, ...others] = snapshotPartIds(pointer);
  for (const id of [...others, ...rowsPartIds(pointer), ...(first === undefined ? [] : [first])])
    await expireSooner(table, id, expires);
}

// Single conditional writes to the table `runtime`; true: the write was done. The client repeats a write whose
// reply was lost, so each condition also accepts the writer's own earlier write.

const isAbsent = 'attribute_not_exists(id)';
const isOwnPart = 'writer = :writer';
const pointsTo = (which: 'from' | 'to'): string =>
  `(#version = :${which}_version AND #digest = :${which}_digest)`;
const runtimeWritesIsKept = 'attribute_exists(id) AND attribute_not_exists(expires)';

export async function putItem({ client, name }: RuntimeTable, item: RuntimeItem): Promise<void> {
  await storeCall(() => client.call('PutItem', { TableName: name, Item: attributesOf(item) }));
}

/** @param item its `writer` is unique to this write and is stored in the item */
const putIfAbsent = (table: RuntimeTable, item: RuntimeItem & { writer: string }): Promise<boolean> =>
  putIf(table, item, `${isAbsent} OR ${isOwnPart}`, { ':writer': item.writer });

/**
 * @param from the pointer that must still be stored; undefined: no pointer may be stored
 * @param to the caller must own its version, so that a stored pointer to it is the caller's own write
 */
const movePointer = (table: RuntimeTable, from: Pointer | undefined, to: Pointer): Promise<boolean> =>
  putIf(
    table,
    { id: pointerId, ...pointerItem(to) },
    `${from ? pointsTo('from') : isAbsent} OR ${pointsTo('to')}`,
    { ...(from && placeholdersOf('from', from)), ...placeholdersOf('to', to) },
    { '#version': 'version', '#digest': 'digest' },
  );

const placeholdersOf = (which: 'from' | 'to', { version, digest }: Pointer): RuntimeItem => ({
  [`:${which}_version`]: version,
  [`:${which}_digest`]: digest,
});

async function putIf(
  { client, name }: RuntimeTable,
  item: RuntimeItem,
  ConditionExpression: string,
  values: RuntimeItem,
  ExpressionAttributeNames?: Record<string, string>,
): Promise<boolean> {
  const input = {
    TableName: name,
    Item: attributesOf(item),
    ConditionExpression,
    ExpressionAttributeNames,
    ExpressionAttributeValues: attributesOf(values),
  };
  return (await conditionalCall(() => client.call('PutItem', input))).done;
}

/**
 * @param expires Unix seconds after which DynamoDB removes the item
 * @param isRetired the item is the first part of a version that has served
 */
const expireItem = (
  table: RuntimeTable,
  id: string,
  { expires, isRetired = false }: { expires: number; isRetired?: boolean },
): Promise<void> =>
  isRetired
    ? setIf(table, id, 'expires = :expires, retired = :retired', runtimeWritesIsKept, {
        ':expires': expires,
        ':retired': true,
      })
    : setIf(table, id, 'expires = :expires', runtimeWritesIsKept, { ':expires': expires });

/** Of an item that expires later. */
const expireSooner = (table: RuntimeTable, id: string, expires: number): Promise<void> =>
  setIf(table, id, 'expires = :expires', 'expires > :expires', { ':expires': expires });

async function setIf(
  { client, name }: RuntimeTable,
  id: string,
  set: string,
  ConditionExpression: string,
  values: RuntimeItem,
): Promise<void> {
  const input = {
    TableName: name,
    Key: attributesOf({ id }),
    UpdateExpression: `SET ${set}`,
    ConditionExpression,
    ExpressionAttributeValues: attributesOf(values),
  };
  await conditionalCall(() => client.call('UpdateItem', input));
}

// Published versions of the configuration, for operators.

export function dynamoConfigVersions({ tables, target }: Store): ConfigVersions {
  const snapshots = dynamoConfigStore(tables, target.stack, { now: () => Date.now() });
  const newest = () => snapshots.newest();
  const versions = async (wanted?: HistoryWanted): Promise<KeptVersion[]> => {
    const pointer = await newest();
    return pointer ? snapshots.history(pointer, wanted) : [];
  };
  return {
    tables: () => dynamoConfigTables(tables, target.stack).rows(),
    newest,
    versions,
    async version(number) {
      const pointer = await newest();
      const found = pointer && (await snapshots.kept(pointer, number));
      if (found) return found;
      throw usageFailure(`there is no version ${number}, or none any more: see \`version list\``);
    },
    rows: (pointer) => snapshots.rows(pointer),
    snapshot: (pointer) => snapshots.snapshot(pointer),
  };
}

// The setting `alerts` of the newest configuration, for background jobs.

export function alertSettings(client: TableClient, stack: string): () => Promise<AlertSettings> {
  const snapshots = dynamoConfigStore(client, stack, systemClock);
  return async () => {
    const newest = await snapshots.newest();
    const settings = newest && (await snapshots.snapshot(newest)).settings;
    return settings?.alerts ?? defaultAlerts;
  };
}
