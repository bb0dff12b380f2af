/** Opens the connection to the tables of a target, and has its errors explained for operators. */
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { Target } from '../../operate/operator-ports.ts';
import type { AwsAccess } from '../system/environment.ts';
import { documentsOn } from './dynamo-client.ts';

/** The connection to the tables of a target. */
export interface Store {
  target: Target;
  /** With attributes as DynamoDB has them: exact numbers. */
  client: DynamoDBClient;
  /** With attributes as JavaScript values. */
  documents: DynamoDBDocumentClient;
  /** Undefined when the environment names none; then every call fails. */
  region: string | undefined;
  /** The result of work on the tables. Throws what `explain` makes of an error. */
  explained: <Result>(work: Promise<Result>) => Promise<Result>;
}

/** @param explain makes a Failure, which says what to do next, of an error of the SDK */
export async function openStore(target: Target, explain: (error: unknown) => Error): Promise<Store> {
  const client = new DynamoDBClient({
    requestHandler: { connectionTimeout: 3000, requestTimeout: 15_000, throwOnRequestTimeout: true },
    ...(target.endpoint !== undefined && { endpoint: target.endpoint }),
    // An emulator asks for some credentials and looks at none.
    ...(target.local && {
      region: 'us-east-1',
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
      maxAttempts: 1,
    }),
  });
  const documents = documentsOn(client);
  const explained: Store['explained'] = async (work) =>
    work.catch((error: unknown) => {
      throw explain(error);
    });
  const region = await client.config.region().catch(() => undefined);
  return { target, client, documents, region, explained };
}

/** For requests that no SDK client makes. Throws when the environment names no region or no credentials. */
export const awsAccessOf = async ({ client }: Store): Promise<AwsAccess> => ({
  region: await client.config.region(),
  credentials: await client.config.credentials(),
});
