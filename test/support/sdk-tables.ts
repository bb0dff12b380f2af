/** The SDK's clients of DynamoDB, and stores of the product on them: what a test compares with, counts, or makes fail. */
import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DeleteItemCommand,
  DeleteTableCommand,
  DescribeContinuousBackupsCommand,
  DescribeLimitsCommand,
  DescribeTableCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  RestoreTableToPointInTimeCommand,
  ScanCommand,
  TransactGetItemsCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { NoReply, ServiceRefusal } from '../../shared/adapters/aws/aws-calls.ts';
import {
  clientTimes,
  throwStoreError,
  type TableClient,
  type TableOperations,
} from '../../shared/adapters/dynamodb/table-client.ts';
import type { AwsCredentials } from '../../shared/adapters/system/environment.ts';

interface SdkAccess {
  region: string;
  credentials: AwsCredentials;
}

/** With the times of `tableClient`. */
export function documentClient({ region, credentials }: SdkAccess): DynamoDBDocumentClient {
  const { attempts: maxAttempts, connectMsMax: connectionTimeout, tryMsMax: requestTimeout } = clientTimes;
  // Without throwOnRequestTimeout the SDK prints a warning and keeps waiting.
  const requestHandler = { connectionTimeout, requestTimeout, throwOnRequestTimeout: true };
  return documentsOn(withoutLines(new DynamoDBClient({ region, credentials, maxAttempts, requestHandler })));
}

/** Uses the same connections; rows as JavaScript values. */
export const documentsOn = (client: DynamoDBClient): DynamoDBDocumentClient =>
  DynamoDBDocumentClient.from(client, {
    marshallOptions: { removeUndefinedValues: true },
    unmarshallOptions: { wrapNumbers: Number },
  });

/** Uses the same connections; attributes in DynamoDB's wire format, with exact numbers. */
export function attributesOn(
  documents: Pick<DynamoDBDocumentClient, 'config'>,
  attempts?: number,
): DynamoDBClient {
  const { region, credentials, requestHandler, endpoint, maxAttempts } = documents.config;
  const client = new DynamoDBClient({
    region,
    credentials,
    requestHandler,
    maxAttempts: attempts ?? maxAttempts,
    ...(endpoint && { endpoint }),
  });
  return withoutLines(client);
}

interface SdkClient {
  middlewareStack: { remove(name: string): boolean };
}

/** The SDK makes a line of each request and reply, with copies of all items: a sixth of a test's time. */
export function withoutLines<Client extends SdkClient>(client: Client): Client {
  client.middlewareStack.remove('loggerMiddleware');
  return client;
}

/** The calls of stores by the SDK. */
export function tablesOn(given: DynamoDBClient | DynamoDBDocumentClient): TableClient {
  const clients = new Map<number, DynamoDBClient>();
  const clientFor = (attempts: number): DynamoDBClient => {
    const client = clients.get(attempts) ?? attributesOn(given, attempts);
    clients.set(attempts, client);
    return client;
  };
  return {
    async call(operation, input, { attempts, tryMsMax } = {}) {
      const client = (attempts === undefined ? given : clientFor(attempts)) as Sender;
      const command = new (commands[operation] as CommandOf)(input);
      const options = tryMsMax === undefined ? {} : { requestTimeout: tryMsMax };
      try {
        return (await client.send(command, options)) as never;
      } catch (error) {
        return asTheProducts(error as Error);
      }
    },
  };
}

/** The SDK's error as the product's client throws it. A connection that was refused has sent nothing. */
function asTheProducts(error: Error & { code?: string; $metadata?: { httpStatusCode?: number } }): never {
  const status = error.$metadata?.httpStatusCode;
  if (status !== undefined) {
    const members = { ...(error as object), message: error.message, __type: error.name };
    return throwStoreError(new ServiceRefusal({ status, headers: {} }, members));
  }
  const hasNoReply = error.code !== undefined || error.name === 'TimeoutError';
  const sent = error.code !== 'ECONNREFUSED';
  return throwStoreError(hasNoReply ? new NoReply(error.code ?? error.name, { sent }) : error);
}

interface Sender {
  send(command: UpdateItemCommand, options: object): Promise<unknown>;
}

type CommandOf = new (input: object) => UpdateItemCommand;
const commands: Record<keyof TableOperations, unknown> = {
  BatchGetItem: BatchGetItemCommand,
  BatchWriteItem: BatchWriteItemCommand,
  DeleteItem: DeleteItemCommand,
  DeleteTable: DeleteTableCommand,
  DescribeContinuousBackups: DescribeContinuousBackupsCommand,
  DescribeLimits: DescribeLimitsCommand,
  DescribeTable: DescribeTableCommand,
  GetItem: GetItemCommand,
  PutItem: PutItemCommand,
  Query: QueryCommand,
  RestoreTableToPointInTime: RestoreTableToPointInTimeCommand,
  Scan: ScanCommand,
  TransactGetItems: TransactGetItemsCommand,
  TransactWriteItems: TransactWriteItemsCommand,
  UpdateItem: UpdateItemCommand,
};
