/**
 * DynamoDB clients, and what their errors mean: not reachable, busy, invalid, or a condition that did not hold. No other
 * file reads these errors. `AWS_ENDPOINT_URL_DYNAMODB` is honoured by the SDK itself.
 */
import {
  ConditionalCheckFailedException,
  DynamoDBClient,
  TransactionCanceledException,
} from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { StoreUnavailable } from '../../relay/ports/store-errors.ts';
import type { AwsAccess } from '../system/environment.ts';
import type { Attributes } from './attributes.ts';

/** For calls that a caller waits for: time-outs are short, as a healthy read takes single milliseconds. */
export const documentClient = (aws: AwsAccess): DynamoDBDocumentClient =>
  documentsOn(clientOf(aws, 3, { connectionTimeout: 700, requestTimeout: 1000 }));

/** For background jobs, with attributes as DynamoDB has them. */
export const backgroundClient = (aws: AwsAccess): DynamoDBClient =>
  clientOf(aws, 4, { connectionTimeout: 1000, requestTimeout: 3000 });

/** The same connections, with rows as JavaScript's values. */
export const documentsOn = (client: DynamoDBClient): DynamoDBDocumentClient =>
  DynamoDBDocumentClient.from(client, {
    marshallOptions: { removeUndefinedValues: true },
    // A number typed by hand may be beyond what the SDK accepts; the row's schema refuses it, not an exception.
    unmarshallOptions: { wrapNumbers: Number },
  });

/** The same connections, with attributes as DynamoDB has them: exact numbers. */
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

const clientOf = (aws: AwsAccess, maxAttempts: number, timeouts: Timeouts): DynamoDBClient =>
  // Without throwOnRequestTimeout the SDK only prints a warning and waits on.
  new DynamoDBClient({ ...aws, maxAttempts, requestHandler: { ...timeouts, throwOnRequestTimeout: true } });

interface Timeouts {
  connectionTimeout: number;
  requestTimeout: number;
}

/** Runs a call of the store; throws StoreUnavailable, with the cause, when the store did not answer it. */
export async function storeCall<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    throw storeError(error);
  }
}

const storeError = (error: unknown): unknown =>
  isUnavailable(error) ? new StoreUnavailable('The store did not answer.', { cause: error }) : error;

/** Not done: the condition did not hold. `item`: as it stood, when the write asks for it and there was one. */
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

/**
 * `refused`: the items whose write's condition did not hold, as they stood. `invalid`: a retry cannot succeed; any other
 * transaction that was not done may be repeated.
 */
export type TransactionReply =
  | { done: true }
  | { done: false; refused: Attributes[]; invalid: boolean; error: unknown };

/** Runs a transaction like `storeCall`. */
export async function transactionCall(call: () => Promise<unknown>): Promise<TransactionReply> {
  try {
    await storeCall(call);
    return { done: true };
  } catch (error) {
    if (isInvalid(error)) return { done: false, refused: [], invalid: true, error };
    if (!(error instanceof TransactionCanceledException)) throw error;
    const reasons = error.CancellationReasons ?? [];
    return {
      done: false,
      error,
      refused: reasons.flatMap(({ Code, Item }) => (Code === 'ConditionalCheckFailed' && Item ? [Item] : [])),
      invalid: reasons.some(({ Code }) => Code === 'ValidationError'),
    };
  }
}

/** The store understood the write and will never take it. */
export const isInvalid = (error: unknown): boolean =>
  error instanceof Error && error.name === 'ValidationException';

/** Errors that are thrown before anything was done; a retry of the same call may succeed. */
const busyNames = new Set([
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'ThrottlingException',
  'TransactionConflictException',
  'TransactionInProgressException',
]);

export const isBusy = (error: unknown): boolean => error instanceof Error && busyNames.has(error.name);

function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { $metadata, code } = error as { $metadata?: { httpStatusCode?: number }; code?: unknown };
  const status = $metadata?.httpStatusCode;
  if (status !== undefined) return status >= 500 || isBusy(error);
  // No reply at all: a socket error carries its errno code, the SDK's own time-outs this name.
  return typeof code === 'string' || error.name === 'TimeoutError';
}
