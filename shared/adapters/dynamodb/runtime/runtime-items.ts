/**
 * Items of the table `runtime` that carry the configuration: the pointer `config` names the newest snapshot, whose
 * bytes are in `snapshot#<version>#<part>`; the rows it was made of are in `rows#<version>#<part>`.
 */
import { BatchGetItemCommand, type AttributeValue } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { Pointer } from '../../../relay/ports/config-store.ts';
import { StoreUnavailable } from '../../../relay/ports/store-errors.ts';
import { storeCall } from '../dynamo-client.ts';
import { numberAttribute, textAttribute, type Attributes } from '../quotas/quota-attributes.ts';

export type { Pointer };

export const pointerId = 'config';

export const snapshotPartId = (version: number, part: number): string => `snapshot#${version}#${part}`;
export const rowsPartId = (version: number, part: number): string => `rows#${version}#${part}`;

export const snapshotPartIds = ({ version, parts }: Pointer): string[] =>
  Array.from({ length: parts }, (_, part) => snapshotPartId(version, part));
export const rowsPartIds = ({ version, rowParts }: Pointer): string[] =>
  Array.from({ length: rowParts }, (_, part) => rowsPartId(version, part));

export const pointerAttributes = (pointer: Pointer): Attributes => ({
  version: numberAttribute(pointer.version),
  format: numberAttribute(pointer.format),
  parts: numberAttribute(pointer.parts),
  row_parts: numberAttribute(pointer.rowParts),
  digest: textAttribute(pointer.digest),
  published_at: numberAttribute(pointer.publishedAt),
});

/** Throws when functions did not write the item. */
export function pointerOf(item: Attributes): Pointer {
  return {
    version: wholeNumber(item['version'], 'version'),
    format: wholeNumber(item['format'], 'format'),
    parts: wholeNumber(item['parts'], 'parts'),
    rowParts: wholeNumber(item['row_parts'], 'row_parts'),
    digest: item['digest']?.S ?? '',
    publishedAt: wholeNumber(item['published_at'], 'published_at'),
  };
}

function wholeNumber(value: AttributeValue | undefined, name: string): number {
  const number = Number(value?.N ?? Number.NaN);
  if (!Number.isSafeInteger(number) || number < 0) throw new Error(`runtime: ${name} is not a whole number`);
  return number;
}

const idsAtOnceMax = 50;
const triesMax = 5;

/**
 * Reads items by id, consistently: a pointer must never be older than one seen before. Those that are not there are
 * missing in the map.
 * @param attributes absent: all of them
 */
export async function getItems(
  client: DynamoDBDocumentClient,
  table: string,
  ids: string[],
  attributes?: string[],
): Promise<Map<string, Attributes>> {
  const found = new Map<string, Attributes>();
  for (let start = 0; start < ids.length; start += idsAtOnceMax) {
    let keys: Attributes[] = ids.slice(start, start + idsAtOnceMax).map((id) => ({ id: textAttribute(id) }));
    for (let tries = 0; keys.length > 0; tries += 1) {
      if (tries === triesMax) throw new StoreUnavailable('The store did not answer for all items.');
      const wanted = { Keys: keys, ConsistentRead: true, ...projectionOn(attributes) };
      const command = new BatchGetItemCommand({ RequestItems: { [table]: wanted } });
      const { Responses, UnprocessedKeys } = await storeCall(() => client.send(command));
      for (const item of Responses?.[table] ?? []) found.set(item['id']?.S ?? '', item);
      keys = UnprocessedKeys?.[table]?.Keys ?? [];
    }
  }
  return found;
}

function projectionOn(attributes: string[] | undefined) {
  if (attributes === undefined) return {};
  const names = attributes.map((name, index) => [`#a${index}`, name] as const);
  return {
    ProjectionExpression: names.map(([placeholder]) => placeholder).join(', '),
    ExpressionAttributeNames: Object.fromEntries(names),
  };
}
