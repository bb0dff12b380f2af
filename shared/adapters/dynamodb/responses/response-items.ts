/**
 * Items of the table `responses`, whose key is account and id. Reads are consistent. Ids of clients are looked at before they
 * become keys: no client may name an item that is not the head of a response.
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { constants, gunzip, gzip } from 'node:zlib';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { StoreUnavailable } from '../../../relay/ports/store-errors.ts';
import { type Attributes, storeCall, type TableClient } from '../table-client.ts';
import {
  type BackgroundState,
  type ResponseHead,
  type ResponseStatus,
  type Admit,
  ResponseTooLarge,
} from '../../../relay/ports/stored.ts';

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
interface ItemsBetween {
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

function chunksOf<Each>(all: readonly Each[], size: number): Each[][] {
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

// The head of a response as attributes of its item. Attributes that a head does not have are absent.

export const headAttributes = [
  'account',
  'id',
  'status',
  'created',
  'expires',
  'ancestors',
  'turn',
  'length',
  'streamed',
  'run',
  'until',
  'events',
  'events_until',
] as const;

/** Nothing more happens to it. */
export const hasEnded = (status: ResponseStatus): boolean => status !== 'queued' && status !== 'in_progress';

export const itemOfHead = ({ background, ...head }: ResponseHead): ResponseItem => ({
  account: head.account,
  id: head.id,
  status: head.status,
  created: head.createdAt,
  expires: head.expires,
  ancestors: [...head.ancestors],
  turn: head.turn,
  length: head.conversationLength,
  streamed: background?.streamed,
  run: background?.run,
  until: background?.until,
  events: background?.events,
  events_until: background?.eventsUntil,
});

/** Throws when an attribute has an unexpected form. */
export function headOfItem(item: ResponseItem): ResponseHead {
  const ancestors = item['ancestors'];
  return {
    account: textOf(item, 'account'),
    id: textOf(item, 'id'),
    status: textOf(item, 'status') as ResponseStatus,
    createdAt: numberOf(item, 'created'),
    expires: numberOf(item, 'expires'),
    ancestors: Array.isArray(ancestors) ? ancestors.map(String) : [],
    turn: numberOf(item, 'turn'),
    conversationLength: numberOf(item, 'length'),
    ...(item['until'] !== undefined && { background: backgroundOf(item) }),
  };
}

function backgroundOf(item: ResponseItem): BackgroundState {
  const { run, events, events_until: eventsUntil } = item;
  return {
    streamed: item['streamed'] === true,
    until: numberOf(item, 'until'),
    ...(typeof run === 'string' && { run }),
    ...(typeof events === 'number' && { events }),
    ...(typeof eventsUntil === 'number' && { eventsUntil }),
  };
}

function textOf(item: ResponseItem, name: string): string {
  const text = item[name];
  if (typeof text !== 'string') throw new Error(`responses: ${name} is not a text`);
  return text;
}

function numberOf(item: ResponseItem, name: string): number {
  const number = item[name];
  if (typeof number !== 'number') throw new Error(`responses: ${name} is not a number`);
  return number;
}

// Contents of items: the first part in the item itself or not, the others beside it, under names that lead to no other content.

/** Of large items; each is some 400 KB on its way. */
const writtenAtOnceMax = 8;

const partId = (id: string, name: string, part: number): string => `${id}#b#${name}#${part}`;

/** Ids of the parts that are not in the item itself. */
export function partIdsOf({ id, body_name: name, parts }: ResponseItem): string[] {
  const count = typeof parts === 'number' ? parts : 0;
  return Array.from({ length: count }, (_, index) => partId(String(id), String(name), index + 1));
}

/**
 * Writes the parts that do not go into the item itself. Returns the attributes by which the item leads to them. Throws
 * ResponseTooLarge.
 */
export async function putContent(
  table: ResponseTable,
  { account, id, expires }: ResponseKey & { expires: number },
  { content, inside }: { content: unknown; inside: boolean },
): Promise<ResponseItem> {
  const { name, parts, bytes, length } = await pack(content);
  const [first, ...rest] = parts;
  const others = inside ? rest : parts;
  for (const some of chunksOf([...others.entries()], writtenAtOnceMax))
    await Promise.all(
      some.map(([index, body]) =>
        putResponseItem(table, { account, id: partId(id, name, index + 1), body, expires }),
      ),
    );
  return { body_name: name, parts: others.length, bytes, unpacked: length, ...(inside && { body: first }) };
}

/** UTF-16 code units of the JSON that an item's content unpacks to. */
export const contentLength = (item: ResponseItem): number => Number(item['unpacked'] ?? 0);

/**
 * What `take` makes of each content, by id of the item. One after the other, because a content may be a hundred times what
 * it is packed. Absent: parts are missing, because the item was replaced or removed since it was read.
 */
export async function contentsOf<Taken>(
  table: ResponseTable,
  { account, items, admit }: { account: string; items: readonly ResponseItem[]; admit?: Admit | undefined },
  take: (content: unknown, item: ResponseItem) => Taken,
): Promise<Map<string, Taken>> {
  if (items.length > 0) admit?.(items.reduce((sum, item) => sum + contentLength(item), 0));
  const rest = await getResponseItems(table, account, { ids: items.flatMap(partIdsOf) });
  const taken = new Map<string, Taken>();
  for (const item of items) {
    const inside = item['body'];
    const beside = partIdsOf(item).map((id) => rest.get(id)?.['body']);
    const parts = inside === undefined ? beside : [inside, ...beside];
    const bytes = parts.filter((part) => part instanceof Uint8Array);
    if (bytes.length > 0 && bytes.length === parts.length)
      taken.set(String(item['id']), take(await unpack(bytes), item));
  }
  return taken;
}

// Content as gzip, in parts that fit into items. The name of a content is the hash of its bytes: its parts have names that
// no other content has, so a head never leads to the parts of another, and a write may be repeated.

/** Below DynamoDB's limit of 400 KB for an item, with room for the other attributes. */
const partBytesMax = 300_000;
/** 12 MB: what a conversation may have, as it is sent, with room for what does not shrink. */
export const partsMax = 40;
/** Of what is read: more than any request and answer. */
const unpackedBytesMax = 64 * 1024 * 1024;
/** Functions have a fraction of a processor: what is longer is compressed in a third of the time, a little worse. */
const fastFromLength = 1_000_000;

const deflated = promisify<string, { level: number }, Buffer>(gzip);
const inflated = promisify<Uint8Array, { maxOutputLength: number }, Buffer>(gunzip);

interface PackedContent {
  name: string;
  /** In order, at least one. */
  parts: Uint8Array[];
  bytes: number;
  /** UTF-16 code units before it was packed. */
  length: number;
}

/** Throws ResponseTooLarge. */
export async function pack(content: unknown): Promise<PackedContent> {
  const text = JSON.stringify(content);
  const { Z_BEST_SPEED, Z_DEFAULT_COMPRESSION } = constants;
  const level = text.length > fastFromLength ? Z_BEST_SPEED : Z_DEFAULT_COMPRESSION;
  const packed = await deflated(text, { level });
  const count = Math.ceil(packed.length / partBytesMax);
  if (count > partsMax) throw new ResponseTooLarge(`${packed.length} bytes`);
  const parts = Array.from({ length: count }, (_, part) =>
    packed.subarray(part * partBytesMax, (part + 1) * partBytesMax),
  );
  const name = createHash('sha256').update(packed).digest('base64url').slice(0, 22);
  return { name, parts, bytes: packed.length, length: text.length };
}

async function unpack(parts: readonly Uint8Array[]): Promise<unknown> {
  const text = await inflated(Buffer.concat(parts), { maxOutputLength: unpackedBytesMax });
  return JSON.parse(text.toString());
}
