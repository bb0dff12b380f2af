/** The SDK's DynamoDB clients, and product stores on them, which tests compare, count or make fail. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { createTableClientBy } from '../../shared/adapters/dynamodb/sdk-client.ts';
import { clientTimes, type TableClient } from '../../shared/adapters/dynamodb/table-client.ts';
import type { AwsCredentials } from '../../shared/adapters/system/environment.ts';

interface SdkAccess {
  region: string;
  credentials: AwsCredentials;
}

/** With the time-outs of `createTableClient`. */
export function documentClient({ region, credentials }: SdkAccess): DynamoDBDocumentClient {
  const { attempts: maxAttempts, connectMsMax: connectionTimeout, tryMsMax: requestTimeout } = clientTimes;
  // Without throwOnRequestTimeout the SDK prints a warning and keeps waiting.
  const requestHandler = { connectionTimeout, requestTimeout, throwOnRequestTimeout: true };
  return documentsOn(withoutLines(new DynamoDBClient({ region, credentials, maxAttempts, requestHandler })));
}

/** Uses the same connections; rows are JavaScript values. */
export const documentsOn = (client: DynamoDBClient): DynamoDBDocumentClient =>
  DynamoDBDocumentClient.from(client, {
    marshallOptions: { removeUndefinedValues: true },
    unmarshallOptions: { wrapNumbers: Number },
  });

interface SdkClient {
  middlewareStack: { remove(name: string): boolean };
}

/** The SDK formats a log line for each request and reply, with copies of all items: a sixth of a test's time. */
export function withoutLines<Client extends SdkClient>(client: Client): Client {
  client.middlewareStack.remove('loggerMiddleware');
  return client;
}

/** The calls of stores by the product's client on the SDK, with this client's connections and middlewares. */
export const tablesOn = ({ config, middlewareStack }: DynamoDBClient | DynamoDBDocumentClient): TableClient =>
  createTableClientBy((attempts) => {
    const maxAttempts = async (): Promise<number> => attempts;
    // `from` writes its options into the config.
    return { config: { ...config, maxAttempts }, middlewareStack } as DynamoDBClient;
  });
