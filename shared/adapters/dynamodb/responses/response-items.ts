/**
 * Items of the table `responses`, whose key is account and id. Reads are consistent. Ids of clients are looked at before they
 * become keys: no client may name an item that is not the head of a response.
 */
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { StoreUnavailable } from '../../../relay/ports/stores/store-errors.ts';
import type { Attributes } from '../attributes.ts';
import { storeCall, type TableClient } from '../dynamo-client.ts';

export interface ResponseTable {
  client: TableClient;
  name: string;
  /** Unix seconds. */
  now(): number;
}

export type ResponseItem = Record<string, unknown>;

export interface ResponseKey {
  account: string;
  id: string;
}

const responseIdPattern = /^resp-[0-9A-Za-z_-]{1,64}$/;
export const isResponseId = (id: string): boolean => responseIdPattern.test(id);

/** 50 items of 300 KB are less than the 16 MB that a batch may return. */
const readAtOnceMax = 50;
/** DynamoDB's limit of one batch of writes. */
const removedAtOnceMax = 25;
const triesMax = 6;
/** Of a batch that was carried out in part; doubled with each try. */
const firstPauseMs = 10;
/** Of one prefix, 1 MB each: far more than one response has. */
const pagesMax = 200;

export const marshalled = (item: ResponseItem): Attributes => marshall(item, { removeUndefinedValues: true });

/** The status of what stands for a response that was removed. */
export const removedStatus = 'removed';

/** DynamoDB removes expired items with a delay. */
export const isKept = (item: ResponseItem | undefined, now: number): item is ResponseItem =>
  typeof item?.['expires'] === 'number' && item['expires'] > now && item['status'] !== removedStatus;

/** Names for an expression: words that DynamoDB reserves are among them. */
export const placeholders = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [`#${name}`, name]));

/** Absent: there is none. */
export async function getResponseItems(
  table: ResponseTable,
  account: string,
  { ids, attributes }: { ids: readonly string[]; attributes?: readonly string[] },
): Promise<Map<string, ResponseItem>> {
  const unique = [...new Set(ids)];
  const found = new Map<string, ResponseItem>();
  const projection = attributes && {
    ProjectionExpression: attributes.map((name) => `#${name}`).join(', '),
    ExpressionAttributeNames: placeholders(...attributes),
  };
  const batches = chunksOf(unique, readAtOnceMax).map((some) =>
    untilAllAreDone(
      some.map((id) => marshall({ account, id })),
      async (Keys) => {
        const RequestItems = { [table.name]: { Keys, ConsistentRead: true, ...projection } };
        const reply = await storeCall(() => table.client.call('BatchGetItem', { RequestItems }));
        for (const item of reply.Responses?.[table.name] ?? [])
          found.set(item['id']?.S ?? '', unmarshall(item));
        return reply.UnprocessedKeys?.[table.name]?.Keys ?? [];
      },
    ),
  );
  await Promise.all(batches);
  return found;
}

export async function putResponseItem({ client, name }: ResponseTable, item: ResponseItem): Promise<void> {
  await storeCall(() => client.call('PutItem', { TableName: name, Item: marshalled(item) }));
}

/** A range of ids. */
export interface ItemsBetween {
  first: string;
  last: string;
  attributes?: readonly string[];
  after?: Attributes | undefined;
  /** From the last one on, one at a time. */
  backwards?: boolean;
}

/** In the order of their ids: one page of at most 1 MB, and where the next one begins. */
export async function queryResponseItems(
  { client, name }: ResponseTable,
  account: string,
  { first, last, attributes, after, backwards }: ItemsBetween,
): Promise<{ items: ResponseItem[]; next: Attributes | undefined }> {
  const input = {
    TableName: name,
    ConsistentRead: true,
    KeyConditionExpression: '#account = :account AND #id BETWEEN :first AND :last',
    ExpressionAttributeNames: placeholders('account', 'id', ...(attributes ?? [])),
    ExpressionAttributeValues: marshall({ ':account': account, ':first': first, ':last': last }),
    ...(attributes && { ProjectionExpression: attributes.map((each) => `#${each}`).join(', ') }),
    ...(after && { ExclusiveStartKey: after }),
    ...(backwards && { ScanIndexForward: false, Limit: 1 }),
  };
  const { Items = [], LastEvaluatedKey } = await storeCall(() => client.call('Query', input));
  return { items: Items.map((item) => unmarshall(item)), next: LastEvaluatedKey };
}

export async function removeResponseItems(
  { client, name }: ResponseTable,
  account: string,
  ids: readonly string[],
): Promise<void> {
  for (const some of chunksOf(ids, removedAtOnceMax)) {
    const requests = some.map((id) => ({ DeleteRequest: { Key: marshall({ account, id }) } }));
    await untilAllAreDone(requests, async (rest) => {
      const input = { RequestItems: { [name]: rest } };
      const { UnprocessedItems } = await storeCall(() => client.call('BatchWriteItem', input));
      return (UnprocessedItems?.[name] ?? []) as typeof requests;
    });
  }
}

/** Everything of a response but its head: parts, also of contents that no head names, and events. */
export async function removeRest(table: ResponseTable, { account, id }: ResponseKey): Promise<void> {
  let after: Attributes | undefined;
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const asked = { first: `${id}#`, last: `${id}#~`, attributes: ['id'], after };
    const { items, next } = await queryResponseItems(table, account, asked);
    await removeResponseItems(
      table,
      account,
      items.map((item) => String(item['id'])),
    );
    if (!next) return;
    after = next;
  }
}

export function chunksOf<Each>(all: readonly Each[], size: number): Each[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, index) =>
    all.slice(index * size, (index + 1) * size),
  );
}

/** @param carryOut returns what the store did not get to. */
async function untilAllAreDone<Each>(
  all: Each[],
  carryOut: (some: Each[]) => Promise<Each[]>,
): Promise<void> {
  let rest = all;
  for (let tries = 0; rest.length > 0; tries += 1) {
    if (tries === triesMax) throw new StoreUnavailable('The store did not get to all items.');
    if (tries > 0) await pause(firstPauseMs * 2 ** tries);
    rest = await carryOut(rest);
  }
}

const pause = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
