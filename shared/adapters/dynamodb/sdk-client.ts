/**
 * The SDK's clients of DynamoDB, for background jobs and operators. Functions that answer calls must not import it. The
 * SDK itself reads `AWS_ENDPOINT_URL_DYNAMODB`.
 */
import {
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  TransactGetItemsCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { AwsAccess } from '../system/environment.ts';
import { clientTimes, type TableClient, type TableOperations } from './dynamo-client.ts';

/** For requests that a client waits for, as `tableClient`. */
export const documentClient = (aws: AwsAccess): DynamoDBDocumentClient =>
  documentsOn(
    clientOf(aws, clientTimes.attempts, {
      connectionTimeout: clientTimes.connectMsMax,
      requestTimeout: clientTimes.tryMsMax,
    }),
  );

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

/**
 * The SDK makes a line of each request and reply, with copies of all items, also for the logger that it has by default and
 * that writes nothing. On tables read in pages that was a sixth of the processor time.
 */
export function withoutLines<Client extends SdkClient>(client: Client): Client {
  client.middlewareStack.remove('loggerMiddleware');
  return client;
}

/** The calls of functions that answer, by the SDK, for jobs that need it for other calls anyway. */
export function tablesOn(documents: DynamoDBDocumentClient): TableClient {
  const clients = new Map<number, DynamoDBClient>();
  const clientFor = (attempts: number): DynamoDBClient => {
    const client = clients.get(attempts) ?? attributesOn(documents, attempts);
    clients.set(attempts, client);
    return client;
  };
  return {
    async call(operation, input, { attempts, tryMsMax } = {}) {
      const client: Sender = attempts === undefined ? documents : clientFor(attempts);
      const command = new (commands[operation] as CommandOf)(input);
      const options = tryMsMax === undefined ? {} : { requestTimeout: tryMsMax };
      return (await client.send(command, options)) as never;
    },
  };
}

interface Sender {
  send(command: UpdateItemCommand, options: object): Promise<unknown>;
}

type CommandOf = new (input: object) => UpdateItemCommand;
const commands: Record<keyof TableOperations, unknown> = {
  BatchGetItem: BatchGetItemCommand,
  BatchWriteItem: BatchWriteItemCommand,
  DeleteItem: DeleteItemCommand,
  GetItem: GetItemCommand,
  PutItem: PutItemCommand,
  Query: QueryCommand,
  TransactGetItems: TransactGetItemsCommand,
  TransactWriteItems: TransactWriteItemsCommand,
  UpdateItem: UpdateItemCommand,
};

function clientOf(aws: AwsAccess, maxAttempts: number, timeouts: Timeouts): DynamoDBClient {
  const { region, credentials, connectionsMax: maxSockets } = aws;
  const agents = maxSockets !== undefined && { httpAgent: { maxSockets }, httpsAgent: { maxSockets } };
  // Without throwOnRequestTimeout the SDK prints a warning and keeps waiting.
  const requestHandler = { ...timeouts, throwOnRequestTimeout: true, ...agents };
  return withoutLines(new DynamoDBClient({ region, credentials, maxAttempts, requestHandler }));
}

interface Timeouts {
  connectionTimeout: number;
  requestTimeout: number;
}
