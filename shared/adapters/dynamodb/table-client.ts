/**
 * Calls DynamoDB for functions and operators, reads batches and pages, and classifies errors. Only this file and
 * transactions.ts inspect these errors. Must not import the SDK, whose layers cost more than a call.
 */
import type * as sdk from '@aws-sdk/client-dynamodb';
import type { Clock } from '../../relay/ports/host.ts';
import { StoreBusy, StoreUnavailable, tryMsMax } from '../../relay/ports/store-errors.ts';
import { physicalNameOf, type TableName } from '../../tables/table-names.ts';
import type { AwsAccess } from '../system/environment.ts';
import { systemClock } from '../system/node-ports.ts';
import {
  busyErrors,
  isTransient,
  NoReply,
  dynamodb,
  createAwsCalls,
  type AwsCallsSettings,
  type CallOptions,
} from '../aws/aws-calls.ts';

export type Attributes = Record<string, sdk.AttributeValue>;

/** For JSON.parse. Only bytes are strings under `B` or lists under `BS`. */
const restoreBytes = (name: string, value: unknown): unknown => {
  if (name === 'B' && typeof value === 'string') return Buffer.from(value, 'base64');
  return name === 'BS' && Array.isArray(value)
    ? value.map((each: unknown) => (typeof each === 'string' ? Buffer.from(each, 'base64') : each))
    : value;
};

/** Lambda passes bytes of stream records as base64 text. */
export const decodeImage = (image: unknown = {}): Attributes =>
  JSON.parse(JSON.stringify(image), restoreBytes) as Attributes;

/** Leaves out undefined values. The SDK's conversions would add 5 KB to every start. */
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
  // A plain view: `toJSON` of a Buffer would list 300,000 numbers for a part of a response, which takes 3 ms.
  if (value instanceof Uint8Array) return { B: new Uint8Array(value.buffer, value.byteOffset, value.length) };
  if (Array.isArray(value)) return { L: value.map(attributeOf) };
  if (value instanceof Set) return setOf([...value]);
  return typeof value === 'object' && value !== null ? { M: attributesOf(value) } : { NULL: true };
}

/** Throws for inexact numbers: the write would name another row or amount. */
function digitsOf(value: number | bigint): string {
  if (typeof value === 'number' && !(Math.abs(value) <= Number.MAX_SAFE_INTEGER))
    throw new Error('A number is out of range.');
  return String(value);
}

/** DynamoDB has sets of texts and numbers, and no empty ones. */
function setOf(values: unknown[]): sdk.AttributeValue {
  const texts = values.map(String);
  return typeof values[0] === 'string' ? { SS: texts } : { NS: texts };
}

/** Numbers may lose digits or range: schemas of rows report that. */
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

/** Unix seconds on the wire, dates in the SDK. */
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
  /** Throws StoreUnavailable, or the store's refusal. */
  call<Name extends keyof TableOperations>(
    operation: Name,
    input: TableOperations[Name]['input'],
    options?: CallOptions,
  ): Promise<TableOperations[Name]['output']>;
}

export interface StoreDeps {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
}

/** For callers that repeat by themselves, within their own time. */
export const singleAttempt: CallOptions = { attempts: 1 };

/** A healthy read takes less than 10 ms. */
type ClientTimes = Pick<AwsCallsSettings, 'attempts' | 'connectMsMax' | 'tryMsMax'>;

/**
 * For requests that a client waits for. A store that takes a second is still awaited, and a reserve without any answer is
 * tried once more.
 */
export const clientTimes: ClientTimes = { attempts: 3, connectMsMax: 700, tryMsMax };
export const backgroundTimes: ClientTimes = { attempts: 4, connectMsMax: 1_000, tryMsMax: 3_000 };

export type ClientSettings = Partial<
  ClientTimes & Pick<AwsCallsSettings, 'agent' | 'budget' | 'endpoint' | 'meter'>
>;

export function createTableClient(aws: AwsAccess, more: ClientSettings = {}): TableClient {
  const call = createAwsCalls({ service: dynamodb, aws, ...clientTimes, read, write, ...more });
  return {
    call: (operation, input, options) =>
      call(operation, input, options).catch(throwStoreError) as Promise<never>,
  };
}

/** Throws StoreUnavailable if the store did not answer, else the error itself. */
export function throwStoreError(error: unknown): never {
  throw isTransient(error) ? new StoreUnavailable('The store did not answer.', { cause: error }) : error;
}

/** Updates hold no bytes, and each call waits for two of them. */
const write = (input: object, operation: string): string =>
  operation === 'UpdateItem' ? JSON.stringify(input) : JSON.stringify(input, replaceBytes);

function replaceBytes(this: Record<string, unknown>, name: string, value: unknown): unknown {
  // For a Buffer, `value` is already the result of its `toJSON`.
  const bytes = this[name];
  return bytes instanceof Uint8Array ? Buffer.from(bytes).toString('base64') : value;
}

const read = (text: string): unknown =>
  /"BS?"\s*:/.test(text) ? JSON.parse(text, restoreBytes) : JSON.parse(text);

/** `done: false`: the condition failed. `item`: the stored item, if requested. */
export type ConditionalReply<Reply> =
  | { done: true; reply: Reply }
  | { done: false; item: Attributes | undefined };

export async function callConditionally<Reply>(call: () => Promise<Reply>): Promise<ConditionalReply<Reply>> {
  try {
    return { done: true, reply: await call() };
  } catch (error) {
    if (error instanceof Error && error.name === 'ConditionalCheckFailedException')
      return { done: false, item: (error as { Item?: Attributes }).Item };
    throw error;
  }
}

/** Throws StoreBusy if nothing was changed, StoreUnavailable if the outcome is unknown. */
export async function callOrThrowBusy<Reply>(call: () => Promise<Reply>): Promise<ConditionalReply<Reply>> {
  try {
    return await callConditionally(call);
  } catch (error) {
    if (error instanceof StoreUnavailable && hasNoEffect(error.cause))
      throw new StoreBusy('The store is busy.', { cause: error });
    throw error;
  }
}

export const isInvalid = (error: unknown): boolean =>
  error instanceof Error && error.name === 'ValidationException';

const hasNoEffect = (error: unknown): boolean =>
  error instanceof NoReply ? !error.sent : error instanceof Error && busyErrors.has(error.name);

const batchReadsMax = 100;
const batchWritesMax = 25;
const batchTriesMax = 5;
const firstPauseMs = 10;

export const chunksOf = <Each>(all: readonly Each[], size: number): Each[][] =>
  Array.from({ length: Math.ceil(all.length / size) }, (_, at) => all.slice(at * size, (at + 1) * size));

/** @param send returns what the store left out, which is sent again */
async function sendAll<Each>(all: Each[], send: (some: Each[]) => Promise<Each[]>): Promise<void> {
  let some = all;
  for (let tries = 0; some.length > 0; tries += 1) {
    if (tries === batchTriesMax) throw new StoreUnavailable('The store did not answer for all items.');
    if (tries > 0) await systemClock.sleep(firstPauseMs * 2 ** tries);
    some = await send(some);
  }
}

export interface ItemsWanted {
  attributes?: string[];
  /** For items that never change: costs half, but may miss a new item. */
  mayBeOld?: boolean;
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

interface Expressions {
  ConditionExpression?: string;
  FilterExpression?: string;
  KeyConditionExpression?: string;
  ProjectionExpression?: string;
  UpdateExpression?: string;
}

/** `#name` is the attribute of that name, unless `names` maps it; `:name` is a value. DynamoDB refuses unused values. */
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

export const setAndRemove = (sets: readonly string[], removes: readonly string[]): string =>
  [sets.length > 0 ? `SET ${sets.join(', ')}` : [], removes.length > 0 ? `REMOVE ${removes.join(', ')}` : []]
    .flat()
    .join(' ');

interface Unchanged {
  /** The partition key. The item must exist. */
  key: string;
  names: readonly string[];
  /** Exact attributes as they were read. Names without one must still be absent. */
  stored: Attributes;
}

/** Sets attributes and removes undefined ones, if the named ones are as they were read. */
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
    // Without the first condition, an update would recreate a deleted item.
    ConditionExpression: ['attribute_exists(#key)', ...conditions].join(' AND '),
    ExpressionAttributeNames: {
      '#key': key,
      ...Object.fromEntries([...old, ...set].map(({ at, name }) => [`#${at}`, name])),
    },
    ...(values.length > 0 && { ExpressionAttributeValues: Object.fromEntries(values) }),
  };
}

/** `at` is the suffix of `#old0` (name) and `:old0` (value). */
const listPlaceholders = (prefix: string, names: readonly string[], values: Attributes) =>
  names.map((name, index) => ({ name, value: values[name], at: `${prefix}${index}` }));

type More<Name extends keyof TableOperations> = Omit<
  TableOperations[Name]['input'],
  'TableName' | 'Key' | 'Item'
>;

/** One table of a stack. Reads are consistent by default. */
export class Table {
  readonly client: TableClient;
  readonly name: string;

  constructor(client: TableClient, stack: string, table: TableName) {
    this.client = client;
    this.name = physicalNameOf(stack, table);
  }

  keyInput(key: object): { TableName: string; Key: Attributes } {
    return { TableName: this.name, Key: attributesOf(key) };
  }

  async get(key: object, more: More<'GetItem'> = {}, options?: CallOptions): Promise<Attributes | undefined> {
    const input = { ...this.keyInput(key), ConsistentRead: true, ...more };
    return (await this.client.call('GetItem', input, options)).Item;
  }

  putInput(item: object): { TableName: string; Item: Attributes } {
    return { TableName: this.name, Item: attributesOf(item) };
  }

  put(item: object, more: More<'PutItem'> = {}) {
    return callConditionally(() => this.client.call('PutItem', { ...this.putInput(item), ...more }));
  }

  update(key: object, more: More<'UpdateItem'>) {
    return callConditionally(() => this.client.call('UpdateItem', { ...this.keyInput(key), ...more }));
  }

  query(more: More<'Query'>) {
    return this.client.call('Query', { TableName: this.name, ...more });
  }

  queryRange(
    KeyConditionExpression: string,
    values: object,
    { attributes, ...more }: { ConsistentRead?: boolean; attributes?: string[] | undefined } = {},
  ) {
    const range = buildExpressions({ KeyConditionExpression }, values);
    return this.readPages('Query', { ...range, ...buildProjection(attributes), ...more });
  }

  /** The last items, newest first. `isAll`: there are no more. */
  async queryNewest(
    KeyConditionExpression: string,
    values: object,
    more: { Limit: number; ConsistentRead?: boolean },
  ): Promise<{ items: Attributes[]; isAll: boolean }> {
    const range = buildExpressions({ KeyConditionExpression }, values);
    const { Items = [], LastEvaluatedKey } = await this.query({ ...range, ScanIndexForward: false, ...more });
    return { items: Items, isAll: LastEvaluatedKey === undefined };
  }

  async *readPages(
    operation: 'Query' | 'Scan',
    more: Omit<More<'Query'>, 'ConsistentRead'> & { ConsistentRead?: boolean | undefined } = {},
  ): AsyncGenerator<Attributes[]> {
    let from: Attributes | undefined;
    do {
      const page = { ConsistentRead: true, ...more, ...(from && { ExclusiveStartKey: from }) };
      const input = { TableName: this.name, ...page };
      const { Items = [], LastEvaluatedKey } = await this.client.call<'Query' | 'Scan'>(operation, input);
      yield Items;
      from = LastEvaluatedKey;
    } while (from);
  }

  /** Each key must be given once. Omits missing items, in any order. Consistent unless `mayBeOld`. */
  async read(keys: readonly Attributes[], wanted?: ItemsWanted): Promise<Attributes[]> {
    return (await Array.fromAsync(this.readBatches(keys, wanted))).flat();
  }

  /** For more items than fit into memory. */
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

  async remove(keys: readonly object[]): Promise<void> {
    const deletes = keys.map((key) => ({ DeleteRequest: { Key: attributesOf(key) } }));
    for (const batch of chunksOf<sdk.WriteRequest>(deletes, batchWritesMax))
      await sendAll(batch, async (some) => {
        const input = { RequestItems: { [this.name]: some } };
        return (await this.client.call('BatchWriteItem', input)).UnprocessedItems?.[this.name] ?? [];
      });
  }
}
