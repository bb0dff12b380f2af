/**
 * Items of `runtime` with the configuration. The pointer `config` names the newest snapshot. Its bytes are in
 * `snapshot#<version>#<part>` and, for each further copy, `snapshot#<version>#<part>#<copy>`; its source rows in
 * `rows#<version>#<part>`.
 */
import { gunzipSync, gzipSync } from 'node:zlib';
import { createEmptySnapshot, type Snapshot } from '../../config/snapshot.ts';
import { type Pointer, SnapshotBroken } from '../../relay/ports/config-store.ts';
import { attributesOf, valuesOf, type ItemsWanted, type Table } from './table-client.ts';

export type RuntimeItem = Record<string, unknown>;

export const pointerId = 'config';
export const cooldownsId = 'cooldowns';
export const channelMarksId = 'channel-marks';

export const buildSnapshotPartId = (version: number, part: number, copy = 0): string =>
  copy === 0 ? `snapshot#${version}#${part}` : `snapshot#${version}#${part}#${copy}`;
export const buildRowsPartId = (version: number, part: number): string => `rows#${version}#${part}`;

export const listSnapshotPartIds = ({ version, parts }: Pointer, copy = 0): string[] =>
  Array.from({ length: parts }, (_, part) => buildSnapshotPartId(version, part, copy));
export const listFurtherCopies = ({ copies }: Pointer): number[] =>
  Array.from({ length: copies }, (_, copy) => copy).slice(1);
export const listRowsPartIds = ({ version, rowParts }: Pointer): string[] =>
  Array.from({ length: rowParts }, (_, part) => buildRowsPartId(version, part));

export const pointerAttributes = {
  version: 'version',
  format: 'format',
  parts: 'parts',
  copies: 'copies',
  row_parts: 'rowParts',
  digest: 'digest',
  published_at: 'publishedAt',
} as const satisfies Record<string, keyof Pointer>;

export const encodePointer = (pointer: Pointer): RuntimeItem =>
  Object.fromEntries(Object.entries(pointerAttributes).map(([name, member]) => [name, pointer[member]]));

/** Throws for invalid attributes. */
export const decodePointer = (item: RuntimeItem): Pointer =>
  Object.fromEntries(
    Object.entries(pointerAttributes).map(([name, member]) => {
      const value = item[name];
      if (member === 'copies' && value === undefined) return [member, 1];
      if (member === 'digest') return [member, typeof value === 'string' ? value : ''];
      if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return [member, value];
      throw new Error(`runtime: ${name} is not a whole number`);
    }),
  );

/** Consistent unless `mayBeOld`, so that a pointer is never older than an earlier read. Omits missing items. */
export async function readItems(
  table: Pick<Table, 'read'>,
  ids: readonly string[],
  wanted?: ItemsWanted,
): Promise<Map<string, RuntimeItem>> {
  const keys = ids.map((id) => attributesOf({ id }));
  const items = await table.read(keys, wanted);
  return new Map(items.map((item) => [item['id']?.S ?? '', valuesOf(item)]));
}

/** The caller checks the format. Throws SnapshotBroken. */
export async function readSnapshot(table: Table, pointer: Pointer, copy = 0): Promise<Snapshot> {
  const { version, publishedAt } = pointer;
  // Safe cast: only functions write snapshots, from validated rows.
  const content = (await readParts(table, listSnapshotPartIds(pointer, copy)).catch((error: unknown) => {
    // The publisher repairs the first copy.
    if (copy > 0 && error instanceof SnapshotBroken) return readParts(table, listSnapshotPartIds(pointer));
    throw error;
  })) as Snapshot;
  // Snapshots of earlier versions lack newer settings, which get defaults.
  const { settings: defaults } = createEmptySnapshot(publishedAt);
  const limits = { ...defaults.limits, ...content.settings.limits };
  const settings = { ...defaults, ...content.settings, limits };
  return { ...content, settings, version, publishedAt };
}

/** Parts never change, so only missing ones are read again, consistently. Throws SnapshotBroken. */
export async function readParts(table: Table, ids: string[]): Promise<unknown> {
  const items = await readItems(table, ids, { mayBeOld: true });
  const missing = ids.filter((id) => !items.has(id));
  for (const [id, item] of await readItems(table, missing)) items.set(id, item);
  const parts = ids.map((id) => {
    const bytes = items.get(id)?.['body'];
    if (!(bytes instanceof Uint8Array)) throw new SnapshotBroken(`${id} is missing`);
    return bytes;
  });
  try {
    return JSON.parse(gunzipSync(Buffer.concat(parts), { maxOutputLength: contentBytesMax }).toString());
  } catch (error) {
    throw new SnapshotBroken(`${ids[0]} is not readable`, { cause: error });
  }
}

/**
 * An item allows 3,000 read units a second, and a part takes 12.5. After an edit, 10,000 environments read each part within
 * 8 s: 2,000 units a second with 8 copies, 15,600 (42 s) with one.
 */
export const snapshotCopies = 8;
const partBytesMax = 100_000;
/** Above any real configuration, below what exhausts a function's memory. */
const contentBytesMax = 64_000_000;

/** At least one part. */
export const packParts = (content: unknown): Uint8Array[] =>
  sliceBytes(gzipSync(JSON.stringify(content)), partBytesMax);

export const sliceBytes = (bytes: Uint8Array, bytesMax: number): Uint8Array[] =>
  Array.from({ length: Math.ceil(bytes.length / bytesMax) }, (_, index) =>
    bytes.subarray(index * bytesMax, (index + 1) * bytesMax),
  );
