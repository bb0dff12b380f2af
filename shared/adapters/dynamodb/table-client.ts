/**
 * Calls of DynamoDB that a client waits for, and the classification of their errors: unreachable, busy, invalid, or
 * condition not met. No file of `shared` but this one and `dynamo-transactions.ts` inspects these errors. Must not import the
 * SDK: its layers cost more than a call.
 */
import type {
  AttributeValue,
  BatchGetItemCommandInput,
  BatchGetItemCommandOutput,
  BatchWriteItemCommandInput,
  BatchWriteItemCommandOutput,
  DeleteItemCommandInput,
  DeleteItemCommandOutput,
  GetItemCommandInput,
  GetItemCommandOutput,
  PutItemCommandInput,
  PutItemCommandOutput,
  QueryCommandInput,
  QueryCommandOutput,
  TransactGetItemsCommandInput,
  TransactGetItemsCommandOutput,
  TransactWriteItemsCommandInput,
  TransactWriteItemsCommandOutput,
  UpdateItemCommandInput,
  UpdateItemCommandOutput,
} from '@aws-sdk/client-dynamodb';
import { StoreBusy, StoreUnavailable, tryMsMax } from '../../relay/ports/store-errors.ts';
import type { AwsAccess } from '../system/environment.ts';
import {
  busyNames,
  NoReply,
  dynamodb,
  awsJsonCalls,
  type AwsCallsParts,
  type CallOptions,
} from '../aws/aws-calls.ts';

// Attributes of an item in DynamoDB's wire format.

export type Attributes = Record<string, AttributeValue>;

/** For JSON.parse. Bytes are strings under `B`, or lists of strings under `BS`; everything else under these names is an object. */
const withBytes = (name: string, value: unknown): unknown => {
  if (name === 'B' && typeof value === 'string') return Buffer.from(value, 'base64');
  return name === 'BS' && Array.isArray(value)
    ? value.map((each: unknown) => (typeof each === 'string' ? Buffer.from(each, 'base64') : each))
    : value;
};

/** An image in a record of a table stream: Lambda passes bytes as base64 text. */
export const attributesOfImage = (image: unknown = {}): Attributes =>
  JSON.parse(JSON.stringify(image), withBytes) as Attributes;

/**
 * Texts and numbers in wire format, and values out of it. Answering functions write and read nothing else beside accounts'
 * items, and the SDK's conversions of any value are 5 KB of what they load at their start.
 */
export const plainAttributes = (values: Record<string, string | number>): Attributes =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      typeof value === 'number' ? { N: String(value) } : { S: value },
    ]),
  );

/** Numbers are what `Number` makes of them, also out of range: schemas of rows report them. */
export const plainValues = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, plainValue(value)]));

function plainValue({ S, N, BOOL, M, L, SS, NS, B, BS }: AttributeValue): unknown {
  if (N !== undefined) return Number(N);
  if (M) return plainValues(M);
  if (L) return L.map(plainValue);
  if (NS) return new Set(NS.map(Number));
  if (SS ?? BS) return new Set<unknown>(SS ?? BS);
  return S ?? BOOL ?? B ?? null;
}

/** The operations of functions that answer, with inputs and outputs as the SDK has them. */
export interface TableOperations {
  BatchGetItem: Operation<BatchGetItemCommandInput, BatchGetItemCommandOutput>;
  BatchWriteItem: Operation<BatchWriteItemCommandInput, BatchWriteItemCommandOutput>;
  DeleteItem: Operation<DeleteItemCommandInput, DeleteItemCommandOutput>;
  GetItem: Operation<GetItemCommandInput, GetItemCommandOutput>;
  PutItem: Operation<PutItemCommandInput, PutItemCommandOutput>;
  Query: Operation<QueryCommandInput, QueryCommandOutput>;
  TransactGetItems: Operation<TransactGetItemsCommandInput, TransactGetItemsCommandOutput>;
  TransactWriteItems: Operation<TransactWriteItemsCommandInput, TransactWriteItemsCommandOutput>;
  UpdateItem: Operation<UpdateItemCommandInput, UpdateItemCommandOutput>;
}

interface Operation<Input, Output> {
  input: Input;
  output: Omit<Output, '$metadata'>;
}

export interface TableClient {
  /** Attributes in DynamoDB's wire format, with exact numbers. */
  call<Name extends keyof TableOperations>(
    operation: Name,
    input: TableOperations[Name]['input'],
    options?: CallOptions,
  ): Promise<TableOperations[Name]['output']>;
}

/**
 * For requests that a client waits for. Time-outs are short: a healthy read takes less than 10 ms. A store that takes a
 * second is still waited for, and a reserve that got no answer at all is tried once more within its time.
 */
export const clientTimes = { attempts: 3, connectMsMax: 700, tryMsMax };

/** @param more other connections and time-outs, only in tests: of a network that fails, and of a machine that is slow */
export function tableClient(
  aws: AwsAccess,
  more: Partial<Pick<AwsCallsParts, 'agent' | 'connectMsMax' | 'tryMsMax'>> = {},
): TableClient {
  const calls = awsJsonCalls({ service: dynamodb, aws, ...clientTimes, read, write, ...more });
  return {
    call: (operation, input, options) => calls.call(operation, input, options) as Promise<never>,
  };
}

/** Only items that are put hold bytes. */
const write = (input: object, operation: string): string =>
  operation === 'PutItem' ? JSON.stringify(input, withoutBytes) : JSON.stringify(input);

function withoutBytes(this: Record<string, unknown>, name: string, value: unknown): unknown {
  // Where it comes to `value`, a Buffer has become an object.
  const bytes = this[name];
  return bytes instanceof Uint8Array ? Buffer.from(bytes).toString('base64') : value;
}

const read = (text: string): unknown =>
  /"BS?"\s*:/.test(text) ? JSON.parse(text, withBytes) : JSON.parse(text);

/** Runs a call to the store. Throws StoreUnavailable, with the cause, when the store does not answer. */
export async function storeCall<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    throw storeError(error);
  }
}

const storeError = (error: unknown): unknown =>
  isUnavailable(error) ? new StoreUnavailable('The store did not answer.', { cause: error }) : error;

/**
 * `done: false`: the condition did not hold. `item`: the item at that time, if it existed and the write
 * requested it.
 */
export type ConditionalReply<Reply> =
  | { done: true; reply: Reply }
  | { done: false; item: Attributes | undefined };

/** Runs a conditional write like `storeCall`. */
export async function conditionalCall<Reply>(call: () => Promise<Reply>): Promise<ConditionalReply<Reply>> {
  try {
    return { done: true, reply: await call() };
  } catch (error) {
    if (error instanceof Error && error.name === 'ConditionalCheckFailedException')
      return { done: false, item: (error as { Item?: Attributes }).Item };
    throw storeError(error);
  }
}

/** Runs a conditional write. Throws StoreBusy if it changed nothing, StoreUnavailable if its outcome is unknown. */
export async function quotaCall<Reply>(call: () => Promise<Reply>): Promise<ConditionalReply<Reply>> {
  try {
    return await conditionalCall(call);
  } catch (error) {
    if (error instanceof StoreUnavailable && changedNothing(error.cause))
      throw new StoreBusy('The store is busy.', { cause: error });
    throw error;
  }
}

/** The store rejects the write permanently. */
export const isInvalid = (error: unknown): boolean =>
  error instanceof Error && error.name === 'ValidationException';

const isBusy = (error: unknown): boolean => error instanceof Error && busyNames.has(error.name);

/** Errno codes of requests that were never written: no address, no connection, no TLS session. */
const unsentCodes =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ERR_TLS_\w+|ERR_SSL_\w+|CERT_\w+)$/;
/** Node's agent gave up before there was a connection; the SDK says so in words only. */
const unconnected = 'did not establish a connection';

/** The store cannot have applied the call: it refused it, or never got it. */
const changedNothing = (error: unknown): boolean =>
  isBusy(error) || (error instanceof Error && wasUnsent(error));

function wasUnsent(error: Error & { code?: unknown; syscall?: unknown }): boolean {
  if (error instanceof NoReply) return !error.sent;
  return (
    (typeof error.code === 'string' && unsentCodes.test(error.code)) ||
    (error.code === 'ETIMEDOUT' && error.syscall === 'connect') ||
    (error.name === 'TimeoutError' && error.message.includes(unconnected))
  );
}

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { $metadata, code } = error as { $metadata?: { httpStatusCode?: number }; code?: unknown };
  const status = $metadata?.httpStatusCode;
  if (status !== undefined) return status >= 500 || isBusy(error);
  // There was no reply: a socket error has an errno code, and a time-out of the SDK has this name.
  return typeof code === 'string' || error.name === 'TimeoutError';
}
