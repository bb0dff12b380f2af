/**
 * Calls of DynamoDB, for functions and operators: items read in batches and pages, and errors classified as unreachable,
 * busy, invalid, or condition not met. No file of `shared` but this one and the one of transactions inspects these errors.
 * Must not import the SDK: its layers cost more than a call.
 */
import type * as sdk from '@aws-sdk/client-dynamodb';
import { StoreBusy, StoreUnavailable, tryMsMax } from '../../relay/ports/store-errors.ts';
import { physicalNameOf, type TableName } from '../../tables/table-names.ts';
import type { AwsAccess } from '../system/environment.ts';
import {
  busyErrors,
  mayPass,
  NoReply,
  dynamodb,
  createAwsCalls,
  pause,
  type AwsCallsParts,
  type CallOptions,
} from '../aws/aws-calls.ts';

// Attributes of an item in DynamoDB's wire format.

export type Attributes = Record<string, sdk.AttributeValue>;

/** For JSON.parse. Bytes are strings under `B`, or lists of strings under `BS`; everything else under these names is an object. */
const withBytes = (name: string, value: unknown): unknown => {
  if (name === 'B' && typeof value === 'string') return Buffer.from(value, 'base64');
  return name === 'BS' && Array.isArray(value)
    ? value.map((each: unknown) => (typeof each === 'string' ? Buffer.from(each, 'base64') : each))
    : value;
};

/** An image in a record of a table stream: Lambda passes bytes as base64 text. */
export const decodeImage = (image: unknown = {}): Attributes =>
  JSON.parse(JSON.stringify(image), withBytes) as Attributes;

/**
 * Values in wire format; those that are undefined are left out. Written here because the SDK's conversions are 5 KB of what
 * answering functions would load at their start.
 */
export const attributesOf = (values: object): Attributes =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]: [string, unknown]) =>
      value === undefined ? [] : [[name, attributeOf(value)]],
    ),
  );

function attributeOf(value: unknown): sdk.AttributeValue {
  if (typeof value === 'string') return { S: value };
  if (typeof value === 'number' || typeof value === 'bigint') return { N: digitsOf(value) };
  if (typeof value === 'boolean') return { BOOL: value };
  if (value instanceof Uint8Array) return { B: value };
  if (Array.isArray(value)) return { L: value.map(attributeOf) };
  if (value instanceof Set) return setOf([...value]);
  return typeof value === 'object' && value !== null ? { M: attributesOf(value) } : { NULL: true };
}

/** Throws where the digits are not those that were meant: the write would name another row, or another amount. */
function digitsOf(value: number | bigint): string {
  if (typeof value === 'number' && !(Math.abs(value) <= Number.MAX_SAFE_INTEGER))
    throw new Error('A number is out of range.');
  return String(value);
}

/** DynamoDB has no set of other types, and none of nothing. */
function setOf(values: unknown[]): sdk.AttributeValue {
  const texts = values.map(String);
  return typeof values[0] === 'string' ? { SS: texts } : { NS: texts };
}

/** Numbers are what `Number` makes of them, also out of range: schemas of rows report them. */
export const valuesOf = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, valueOf(value)]));

function valueOf({ S, N, BOOL, M, L, SS, NS, B, BS }: sdk.AttributeValue): unknown {
  if (N !== undefined) return Number(N);
  if (M) return valuesOf(M);
  if (L) return L.map(valueOf);
  if (NS) return new Set(NS.map(Number));
  if (SS ?? BS) return new Set<unknown>(SS ?? BS);
  return S ?? BOOL ?? B ?? null;
}

/** The operations in use, with inputs and outputs as the SDK has them. */
export interface TableOperations {
  BatchGetItem: Operation<sdk.BatchGetItemCommandInput, sdk.BatchGetItemCommandOutput>;
  BatchWriteItem: Operation<sdk.BatchWriteItemCommandInput, sdk.BatchWriteItemCommandOutput>;
  DeleteItem: Operation<sdk.DeleteItemCommandInput, sdk.DeleteItemCommandOutput>;
  DeleteTable: Operation<sdk.DeleteTableCommandInput, object>;
  DescribeContinuousBackups: Operation<
    sdk.DescribeContinuousBackupsCommandInput,
    { ContinuousBackupsDescription?: { PointInTimeRecoveryDescription?: RecoveryWindow } }
  >;
  DescribeLimits: Operation<sdk.DescribeLimitsCommandInput, sdk.DescribeLimitsCommandOutput>;
  DescribeTable: Operation<sdk.DescribeTableCommandInput, sdk.DescribeTableCommandOutput>;
  GetItem: Operation<sdk.GetItemCommandInput, sdk.GetItemCommandOutput>;
  PutItem: Operation<sdk.PutItemCommandInput, sdk.PutItemCommandOutput>;
  Query: Operation<sdk.QueryCommandInput, sdk.QueryCommandOutput>;
  RestoreTableToPointInTime: Operation<
    { SourceTableName: string; TargetTableName: string; RestoreDateTime: number },
    object
  >;
  Scan: Operation<sdk.ScanCommandInput, sdk.ScanCommandOutput>;
  TransactGetItems: Operation<sdk.TransactGetItemsCommandInput, sdk.TransactGetItemsCommandOutput>;
  TransactWriteItems: Operation<sdk.TransactWriteItemsCommandInput, sdk.TransactWriteItemsCommandOutput>;
  UpdateItem: Operation<sdk.UpdateItemCommandInput, sdk.UpdateItemCommandOutput>;
}

/** Times are Unix seconds on the wire, where the SDK has dates. */
interface RecoveryWindow {
  PointInTimeRecoveryStatus?: string;
  EarliestRestorableDateTime?: number;
  LatestRestorableDateTime?: number;
}

interface Operation<Input, Output> {
  input: Input;
  output: Omit<Output, '$metadata'>;
}

export interface TableClient {
  /** Attributes in DynamoDB's wire format, with exact numbers. Throws StoreUnavailable, or what the store refuses. */
  call<Name extends keyof TableOperations>(
    operation: Name,
    input: TableOperations[Name]['input'],
    options?: CallOptions,
  ): Promise<TableOperations[Name]['output']>;
}

/** Time-outs are short: a healthy read takes less than 10 ms. */
type ClientTimes = Pick<AwsCallsParts, 'attempts' | 'connectMsMax' | 'tryMsMax'>;

/**
 * For requests that a client waits for. A store that takes a second is still waited for, and a reserve that got no answer at
 * all is tried once more within its time.
 */
export const clientTimes: ClientTimes = { attempts: 3, connectMsMax: 700, tryMsMax };
/** For jobs that nobody waits for. */
export const backgroundTimes: ClientTimes = { attempts: 4, connectMsMax: 1_000, tryMsMax: 3_000 };

/** Other times, addresses and connections than those of a client's call. */
export type ClientSettings = Partial<
  ClientTimes & Pick<AwsCallsParts, 'agent' | 'budget' | 'endpoint' | 'meter'>
>;

export function createTableClient(aws: AwsAccess, more: ClientSettings = {}): TableClient {
  const call = createAwsCalls({ service: dynamodb, aws, ...clientTimes, read, write, ...more });
  return {
    call: (operation, input, options) =>
      call(operation, input, options).catch(throwStoreError) as Promise<never>,
  };
}

/** Throws StoreUnavailable, with the cause, when the store did not answer; else the error as it is. */
export function throwStoreError(error: unknown): never {
  throw mayPass(error) ? new StoreUnavailable('The store did not answer.', { cause: error }) : error;
}

/** Each call waits for two updates, and none of those holds bytes. */
const write = (input: object, operation: string): string =>
  operation === 'UpdateItem' ? JSON.stringify(input) : JSON.stringify(input, replaceBytes);

function replaceBytes(this: Record<string, unknown>, name: string, value: unknown): unknown {
  // Where it comes to `value`, a Buffer has become an object.
  const bytes = this[name];
  return bytes instanceof Uint8Array ? Buffer.from(bytes).toString('base64') : value;
}

const read = (text: string): unknown =>
  /"BS?"\s*:/.test(text) ? JSON.parse(text, withBytes) : JSON.parse(text);

/**
 * `done: false`: the condition did not hold. `item`: the item at that time, if it existed and the write
 * requested it.
 */
export type ConditionalReply<Reply> =
  | { done: true; reply: Reply }
  | { done: false; item: Attributes | undefined };

/** Runs a conditional write. */
export async function callConditionally<Reply>(call: () => Promise<Reply>): Promise<ConditionalReply<Reply>> {
  try {
    return { done: true, reply: await call() };
  } catch (error) {
    if (error instanceof Error && error.name === 'ConditionalCheckFailedException')
      return { done: false, item: (error as { Item?: Attributes }).Item };
    throw error;
  }
}

/** Runs a conditional write. Throws StoreBusy if it changed nothing, StoreUnavailable if its outcome is unknown. */
export async function callOrThrowBusy<Reply>(call: () => Promise<Reply>): Promise<ConditionalReply<Reply>> {
  try {
    return await callConditionally(call);
  } catch (error) {
    if (error instanceof StoreUnavailable && hasNoEffect(error.cause))
      throw new StoreBusy('The store is busy.', { cause: error });
    throw error;
  }
}

/** The store rejects the write permanently. */
export const isInvalid = (error: unknown): boolean =>
  error instanceof Error && error.name === 'ValidationException';

/** The store refused the call, or never got it. */
const hasNoEffect = (error: unknown): boolean =>
  error instanceof NoReply ? !error.sent : error instanceof Error && busyErrors.has(error.name);

/** DynamoDB's limits of one batch. */
const batchReadsMax = 100;
const batchWritesMax = 25;
const batchTriesMax = 5;
/** Of a batch that the store answered in part; doubled with each try. */
const firstPauseMs = 10;

export const chunksOf = <Each>(all: readonly Each[], size: number): Each[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));

/** @param send returns what the store did not get to, which is sent again */
async function sendAll<Each>(all: Each[], send: (some: Each[]) => Promise<Each[]>): Promise<void> {
  let some = all;
  for (let tries = 0; some.length > 0; tries += 1) {
    if (tries === batchTriesMax) throw new StoreUnavailable('The store did not answer for all items.');
    if (tries > 0) await pause(firstPauseMs * 2 ** tries);
    some = await send(some);
  }
}

export interface ItemsWanted {
  /** Names of the attributes to read; absent: all. */
  attributes?: string[];
  /** For items that never change: such a read costs half, and may miss an item that is new. */
  mayBeOld?: boolean;
  /** The time-out of one try; absent: the client's. */
  tryMsMax?: number | undefined;
}

function buildProjection(attributes: string[] | undefined) {
  if (attributes === undefined) return {};
  const names = attributes.map((name, index) => [`#a${index}`, name] as const);
  return {
    ProjectionExpression: names.map(([placeholder]) => placeholder).join(', '),
    ExpressionAttributeNames: Object.fromEntries(names),
  };
}

/** The items of a query or scan, page by page to its end. */
async function* readItemPages(
  client: TableClient,
  operation: 'Query' | 'Scan',
  input: TableOperations['Query']['input'],
): AsyncGenerator<Attributes[]> {
  let from: Attributes | undefined;
  do {
    const page = { ...input, ...(from && { ExclusiveStartKey: from }) };
    const { Items = [], LastEvaluatedKey } = await client.call<'Query' | 'Scan'>(operation, page);
    yield Items;
    from = LastEvaluatedKey;
  } while (from);
}

/** The parts of a request that have names and values of attributes in them. */
interface Expressions {
  ConditionExpression?: string;
  FilterExpression?: string;
  KeyConditionExpression?: string;
  ProjectionExpression?: string;
  UpdateExpression?: string;
}

/**
 * Expressions with what they name: `#name` is the attribute of that name, unless `names` says another one; `:name` is a
 * value. Every value must be used, or DynamoDB refuses the request.
 */
export function buildExpressions<Given extends Expressions>(
  expressions: Given,
  values: object | undefined = {},
  names: Record<string, string> = {},
) {
  const used = [...new Set(Object.values(expressions).join(' ').match(/#\w+/g))];
  const ExpressionAttributeValues = attributesOf(values);
  return {
    ...expressions,
    ...(used.length > 0 && {
      ExpressionAttributeNames: Object.fromEntries(used.map((name) => [name, names[name] ?? name.slice(1)])),
    }),
    ...(Object.keys(ExpressionAttributeValues).length > 0 && { ExpressionAttributeValues }),
  };
}

/** An update of what is set and what is removed; of nothing: empty. */
export const setAndRemove = (sets: readonly string[], removes: readonly string[]): string =>
  [sets.length > 0 ? `SET ${sets.join(', ')}` : [], removes.length > 0 ? `REMOVE ${removes.join(', ')}` : []]
    .flat()
    .join(' ');

interface Unchanged {
  /** The name of the partition key: the change is made if there is an item. */
  key: string;
  names: readonly string[];
  /** The attributes of these names as they were read, with all their digits. One that is not in it must still be absent. */
  stored: Attributes;
}

/** Sets attributes of an item, and removes those that are undefined, if attributes of it are as they were read. */
export function changeIfUnchanged({ key, names, stored }: Unchanged, attributes: object = {}) {
  const old = listPlaceholders('old', names, stored);
  const set = listPlaceholders('new', Object.keys(attributes), attributesOf(attributes));
  const conditions = old.map(({ at, value }) => (value ? `#${at} = :${at}` : `attribute_not_exists(#${at})`));
  const values = [...old, ...set].flatMap(({ at, value }) => (value ? [[`:${at}`, value] as const] : []));
  const UpdateExpression = setAndRemove(
    set.flatMap(({ at, value }) => (value ? `#${at} = :${at}` : [])),
    set.flatMap(({ at, value }) => (value ? [] : `#${at}`)),
  );
  return {
    UpdateExpression: set.length > 0 ? UpdateExpression : undefined,
    // Without the first condition an update would recreate a deleted item.
    ConditionExpression: ['attribute_exists(#key)', ...conditions].join(' AND '),
    ExpressionAttributeNames: {
      '#key': key,
      ...Object.fromEntries([...old, ...set].map(({ at, name }) => [`#${at}`, name])),
    },
    ...(values.length > 0 && { ExpressionAttributeValues: Object.fromEntries(values) }),
  };
}

/**
 * Attributes with the suffix of their placeholders in an expression: `old0` for `#old0` (name) and `:old0` (value). Without
 * a value: there is none.
 */
const listPlaceholders = (prefix: string, names: readonly string[], values: Attributes) =>
  names.map((name, index) => ({ name, value: values[name], at: `${prefix}${index}` }));

type More<Name extends keyof TableOperations> = Omit<
  TableOperations[Name]['input'],
  'TableName' | 'Key' | 'Item'
>;

/** One table of a stack. Reads are consistent unless they say otherwise. */
export class Table {
  readonly client: TableClient;
  readonly name: string;

  constructor(client: TableClient, stack: string, table: TableName) {
    this.client = client;
    this.name = physicalNameOf(stack, table);
  }

  /** What a request on one item begins with. */
  keyInput(key: object): { TableName: string; Key: Attributes } {
    return { TableName: this.name, Key: attributesOf(key) };
  }

  async get(key: object, more: More<'GetItem'> = {}, options?: CallOptions): Promise<Attributes | undefined> {
    const input = { ...this.keyInput(key), ConsistentRead: true, ...more };
    return (await this.client.call('GetItem', input, options)).Item;
  }

  /** What a put of an item begins with. */
  putInput(item: object): { TableName: string; Item: Attributes } {
    return { TableName: this.name, Item: attributesOf(item) };
  }

  put(item: object, more: More<'PutItem'> = {}) {
    return callConditionally(() => this.client.call('PutItem', { ...this.putInput(item), ...more }));
  }

  update(key: object, more: More<'UpdateItem'>) {
    return callConditionally(() => this.client.call('UpdateItem', { ...this.keyInput(key), ...more }));
  }

  /** One page. */
  query(more: More<'Query'>) {
    return this.client.call('Query', { TableName: this.name, ...more });
  }

  /** The items that a condition on the key names, page by page. */
  queryRange(KeyConditionExpression: string, values: object, more: { ConsistentRead?: boolean } = {}) {
    return this.readPages('Query', { ...buildExpressions({ KeyConditionExpression }, values), ...more });
  }

  /** The last ones of them, newest first. `isAll`: there are no more. */
  async queryNewest(
    KeyConditionExpression: string,
    values: object,
    more: { Limit: number; ConsistentRead?: boolean },
  ): Promise<{ items: Attributes[]; isAll: boolean }> {
    const range = buildExpressions({ KeyConditionExpression }, values);
    const { Items = [], LastEvaluatedKey } = await this.query({ ...range, ScanIndexForward: false, ...more });
    return { items: Items, isAll: LastEvaluatedKey === undefined };
  }

  /** Page by page to the end. */
  readPages(
    operation: 'Query' | 'Scan',
    more: Omit<More<'Query'>, 'ConsistentRead'> & { ConsistentRead?: boolean | undefined } = {},
  ): AsyncGenerator<Attributes[]> {
    return readItemPages(this.client, operation, { TableName: this.name, ConsistentRead: true, ...more });
  }

  /**
   * The items with these keys, each named once; those that do not exist are left out, and the order is the store's. Reads are
   * consistent unless they may be old.
   */
  async read(keys: readonly Attributes[], wanted?: ItemsWanted): Promise<Attributes[]> {
    return (await Array.fromAsync(this.readBatches(keys, wanted))).flat();
  }

  /** As `read`, for more items than are to be in memory at once. */
  async *readBatches(
    keys: readonly Attributes[],
    { attributes, mayBeOld = false, tryMsMax }: ItemsWanted = {},
  ): AsyncGenerator<Attributes[]> {
    const wanted = { ConsistentRead: !mayBeOld, ...buildProjection(attributes) };
    for (const batch of chunksOf(keys, batchReadsMax)) {
      const items: Attributes[] = [];
      await sendAll(batch, async (Keys) => {
        const input = { RequestItems: { [this.name]: { Keys, ...wanted } } };
        const { Responses, UnprocessedKeys } = await this.client.call('BatchGetItem', input, { tryMsMax });
        items.push(...(Responses?.[this.name] ?? []));
        return UnprocessedKeys?.[this.name]?.Keys ?? [];
      });
      yield items;
    }
  }

  /** Also those that do not exist. */
  async remove(keys: readonly object[]): Promise<void> {
    const deletes = keys.map((key) => ({ DeleteRequest: { Key: attributesOf(key) } }));
    for (const batch of chunksOf<sdk.WriteRequest>(deletes, batchWritesMax))
      await sendAll(batch, async (some) => {
        const input = { RequestItems: { [this.name]: some } };
        return (await this.client.call('BatchWriteItem', input)).UnprocessedItems?.[this.name] ?? [];
      });
  }
}
