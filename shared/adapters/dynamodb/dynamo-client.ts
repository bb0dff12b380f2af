/**
 * DynamoDB clients and the classification of their errors: unreachable, busy, invalid, or condition not met.
 * No file of `shared` but this one and `dynamo-transactions.ts` inspects these errors. The SDK itself reads `AWS_ENDPOINT_URL_DYNAMODB`.
 */
import { ConditionalCheckFailedException, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { StoreBusy, StoreUnavailable, tryMsMax } from '../../relay/ports/stores/store-errors.ts';
import type { AwsAccess } from '../system/environment.ts';
import type { Attributes } from './attributes.ts';

/**
 * For requests that a client waits for. Time-outs are short: a healthy read takes less than 10 ms. A store that takes a
 * second is still waited for, and a reserve that got no answer at all is tried once more within its time.
 */
export const documentClient = (aws: AwsAccess): DynamoDBDocumentClient =>
  documentsOn(clientOf(aws, 3, { connectionTimeout: 700, requestTimeout: tryMsMax }));

/** For background jobs; attributes in DynamoDB's wire format. */
export const backgroundClient = (aws: AwsAccess): DynamoDBClient =>
  clientOf(aws, 4, { connectionTimeout: 1000, requestTimeout: 3000 });

/** Uses the same connections; rows as JavaScript values. */
export const documentsOn = (client: DynamoDBClient): DynamoDBDocumentClient =>
  DynamoDBDocumentClient.from(client, {
    marshallOptions: { removeUndefinedValues: true },
    // By default the SDK throws at a number out of range. `Number` accepts it, and the row's schema then
    // reports it.
    unmarshallOptions: { wrapNumbers: Number },
  });

/** Uses the same connections; attributes in DynamoDB's wire format, with exact numbers. */
export function attributesOn(documents: DynamoDBDocumentClient, attempts?: number): DynamoDBClient {
  const { region, credentials, requestHandler, endpoint, maxAttempts } = documents.config;
  return new DynamoDBClient({
    region,
    credentials,
    requestHandler,
    maxAttempts: attempts ?? maxAttempts,
    ...(endpoint && { endpoint }),
  });
}

function clientOf(aws: AwsAccess, maxAttempts: number, timeouts: Timeouts): DynamoDBClient {
  const { region, credentials, connectionsMax: maxSockets } = aws;
  const agents = maxSockets !== undefined && { httpAgent: { maxSockets }, httpsAgent: { maxSockets } };
  // Without throwOnRequestTimeout the SDK prints a warning and keeps waiting.
  const requestHandler = { ...timeouts, throwOnRequestTimeout: true, ...agents };
  return new DynamoDBClient({ region, credentials, maxAttempts, requestHandler });
}

interface Timeouts {
  connectionTimeout: number;
  requestTimeout: number;
}

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
    if (error instanceof ConditionalCheckFailedException) return { done: false, item: error.Item };
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

/** Errors that the store returns before it changes anything; a retry of the same call may succeed. */
const busyNames = new Set([
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'ThrottlingException',
  'TransactionConflictException',
  'TransactionInProgressException',
]);

export const isBusy = (error: unknown): boolean => error instanceof Error && busyNames.has(error.name);

/** Errno codes of requests that were never written: no address, no connection, no TLS session. */
const unsentCodes =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ERR_TLS_\w+|ERR_SSL_\w+|CERT_\w+)$/;
/** Node's agent gave up before there was a connection; the SDK says so in words only. */
const unconnected = 'did not establish a connection';

/** The store cannot have applied the call: it refused it, or never got it. */
const changedNothing = (error: unknown): boolean =>
  isBusy(error) || (error instanceof Error && wasUnsent(error));

const wasUnsent = (error: Error & { code?: unknown; syscall?: unknown }): boolean =>
  (typeof error.code === 'string' && unsentCodes.test(error.code)) ||
  (error.code === 'ETIMEDOUT' && error.syscall === 'connect') ||
  (error.name === 'TimeoutError' && error.message.includes(unconnected));

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { $metadata, code } = error as { $metadata?: { httpStatusCode?: number }; code?: unknown };
  const status = $metadata?.httpStatusCode;
  if (status !== undefined) return status >= 500 || isBusy(error);
  // There was no reply: a socket error has an errno code, and a time-out of the SDK has this name.
  return typeof code === 'string' || error.name === 'TimeoutError';
}
