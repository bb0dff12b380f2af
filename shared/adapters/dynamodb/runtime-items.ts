/**
 * Items of the table `runtime` that hold the configuration. The pointer `config` names the newest snapshot.
 * The snapshot's bytes are in `snapshot#<version>#<part>`, the rows it was compiled from in
 * `rows#<version>#<part>`.
 */
import type { Pointer } from '../../relay/ports/config-store.ts';
import { StoreUnavailable } from '../../relay/ports/store-errors.ts';
import {
  plainAttributes,
  plainValues,
  type Attributes,
  storeCall,
  type TableClient,
} from './table-client.ts';

export interface RuntimeTable {
  client: TableClient;
  name: string;
}

export type RuntimeItem = Record<string, unknown>;

/** An item as this environment last read it. */
export interface ItemView {
  /** Undefined: it did not exist. */
  item: RuntimeItem | undefined;
  /** Epoch milliseconds at which the read began. */
  readAtMs: number;
}

export const neverRead: ItemView = { item: undefined, readAtMs: -Infinity };

export const pointerId = 'config';
export const cooldownsId = 'cooldowns';
/** The attribute that says how large the entries of `cooldowns` are. */
export const cooldownsSize = 'bytes';

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

const idsAtOnceMax = 50;
const triesMax = 5;
/** Of a batch that the store answered in part; doubled with each try. */
const firstPauseMs = 10;

export interface ItemsWanted {
  /** Names of the attributes to read; absent: all. */
  attributes?: string[];
  /** For items that never change: such a read costs half, and may miss an item that is new. */
  mayBeOld?: boolean;
  /** The time-out of one try; absent: the client's. */
  tryMsMax?: number | undefined;
  /** Takes what was read, also when a later read fails. */
  found?: Map<string, RuntimeItem>;
}

/**
 * Reads items by id. Reads are consistent unless they may be old, so that a pointer is never older than an earlier read
 * of it. The map has no entry for an absent item.
 */
export async function getItems(
  { client, name: table }: RuntimeTable,
  ids: string[],
  { attributes, mayBeOld = false, tryMsMax, found = new Map<string, RuntimeItem>() }: ItemsWanted = {},
): Promise<Map<string, RuntimeItem>> {
  for (let start = 0; start < ids.length; start += idsAtOnceMax) {
    let keys: Attributes[] = ids.slice(start, start + idsAtOnceMax).map((id) => plainAttributes({ id }));
    for (let tries = 0; keys.length > 0; tries += 1) {
      if (tries === triesMax) throw new StoreUnavailable('The store did not answer for all items.');
      if (tries > 0) await pause(firstPauseMs * 2 ** tries);
      const wanted = { Keys: keys, ConsistentRead: !mayBeOld, ...projectionOn(attributes) };
      const input = { RequestItems: { [table]: wanted } };
      const reply = await storeCall(() => client.call('BatchGetItem', input, { tryMsMax }));
      const { Responses, UnprocessedKeys } = reply;
      for (const item of Responses?.[table] ?? []) found.set(item['id']?.S ?? '', plainValues(item));
      keys = UnprocessedKeys?.[table]?.Keys ?? [];
    }
  }
  return found;
}

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

function projectionOn(attributes: string[] | undefined) {
  if (attributes === undefined) return {};
  const names = attributes.map((name, index) => [`#a${index}`, name] as const);
  return {
    ProjectionExpression: names.map(([placeholder]) => placeholder).join(', '),
    ExpressionAttributeNames: Object.fromEntries(names),
  };
}
