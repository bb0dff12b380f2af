/**
 * Items of the table `runtime` that hold the configuration. The pointer `config` names the newest snapshot.
 * The snapshot's bytes are in `snapshot#<version>#<part>`, the rows it was compiled from in
 * `rows#<version>#<part>`.
 */
import type { Pointer } from '../../relay/ports/config-store.ts';
import { attributesOf, valuesOf, itemBatches, type ItemsWanted, type TableClient } from './table-client.ts';

export interface RuntimeTable {
  client: TableClient;
  name: string;
}

export type RuntimeItem = Record<string, unknown>;

/** An item as this environment last read it. */
export interface ItemView {
  item: RuntimeItem | undefined;
  /** Epoch milliseconds at which the read began. */
  readAtMs: number;
}

export const neverRead: ItemView = { item: undefined, readAtMs: -Infinity };

export const pointerId = 'config';
export const cooldownsId = 'cooldowns';

export const snapshotPartId = (version: number, part: number): string => `snapshot#${version}#${part}`;
export const rowsPartId = (version: number, part: number): string => `rows#${version}#${part}`;

export const snapshotPartIds = ({ version, parts }: Pointer): string[] =>
  Array.from({ length: parts }, (_, part) => snapshotPartId(version, part));
export const rowsPartIds = ({ version, rowParts }: Pointer): string[] =>
  Array.from({ length: rowParts }, (_, part) => rowsPartId(version, part));

export const pointerItem = (pointer: Pointer): RuntimeItem => ({
  version: pointer.version,
  format: pointer.format,
  parts: pointer.parts,
  row_parts: pointer.rowParts,
  digest: pointer.digest,
  published_at: pointer.publishedAt,
});

/** Throws when an attribute has an unexpected form. */
export function pointerOf(item: RuntimeItem): Pointer {
  const { digest } = item;
  return {
    version: wholeNumber(item, 'version'),
    format: wholeNumber(item, 'format'),
    parts: wholeNumber(item, 'parts'),
    rowParts: wholeNumber(item, 'row_parts'),
    digest: typeof digest === 'string' ? digest : '',
    publishedAt: wholeNumber(item, 'published_at'),
  };
}

function wholeNumber(item: RuntimeItem, name: string): number {
  const number = item[name];
  if (typeof number !== 'number' || !Number.isSafeInteger(number) || number < 0)
    throw new Error(`runtime: ${name} is not a whole number`);
  return number;
}

/**
 * Reads items by id. Reads are consistent unless they may be old, so that a pointer is never older than an earlier read
 * of it. The map has no entry for an absent item.
 * @param found takes what was read, also when a later read fails
 */
export async function getItems(
  { client, name }: RuntimeTable,
  ids: readonly string[],
  {
    found = new Map<string, RuntimeItem>(),
    ...wanted
  }: ItemsWanted & { found?: Map<string, RuntimeItem> } = {},
): Promise<Map<string, RuntimeItem>> {
  const keys = ids.map((id) => attributesOf({ id }));
  for await (const items of itemBatches(client, name, keys, wanted))
    for (const item of items) found.set(item['id']?.S ?? '', valuesOf(item));
  return found;
}
