import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { StoreUnavailable } from '../../relay/ports/store-errors.ts';
import type { AwsAccess } from '../system/environment.ts';

/**
 * The DynamoDB client of a function. `AWS_ENDPOINT_URL_DYNAMODB` is honoured by the SDK itself. Time-outs are short:
 * a healthy read takes single milliseconds, and a caller is waiting.
 */
export function documentClient(aws: AwsAccess): DynamoDBDocumentClient {
  const client = new DynamoDBClient({
    ...aws,
    maxAttempts: 3,
    requestHandler: {
      connectionTimeout: 700,
      requestTimeout: 1000,
      // Without this the SDK only prints a warning and waits on.
      throwOnRequestTimeout: true,
    },
  });
  return documentsOn(client);
}

/** The same client, with rows as JavaScript's values. */
export const documentsOn = (client: DynamoDBClient): DynamoDBDocumentClient =>
  DynamoDBDocumentClient.from(client, {
    marshallOptions: { removeUndefinedValues: true },
    // A number that is typed by hand may be beyond what the SDK accepts; its row's schema refuses it, not an exception.
    unmarshallOptions: { wrapNumbers: Number },
  });

/** Runs a call of the store; throws StoreUnavailable, with the cause, when the store did not answer it. */
export async function storeCall<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    if (isUnavailable(error)) throw new StoreUnavailable('The store did not answer.', { cause: error });
    throw error;
  }
}

/** Said before anything was done; the same call may go through a moment later. */
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
