import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import { explainStoreError } from '../../../infra/ops/session/store-error.ts';
import type { Target } from '../../operate/operator-ports.ts';

/** The connection to the tables of a target. */
export interface Store {
  target: Target;
  /** With attributes as DynamoDB has them: exact numbers. */
  client: DynamoDBClient;
  /** With attributes as JavaScript values. */
  documents: DynamoDBDocumentClient;
  /** Undefined when the environment names none; then every call fails. */
  region: string | undefined;
  /** The result of work on the tables. Throws a Failure that says what to do next. */
  explained: <Result>(work: Promise<Result>) => Promise<Result>;
}

export async function openStore(target: Target): Promise<Store> {
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
  const documents = DynamoDBDocumentClient.from(client, {
    marshallOptions: { removeUndefinedValues: true },
    unmarshallOptions: { wrapNumbers: Number },
  });
  const explained: Store['explained'] = async (work) =>
    work.catch((error: unknown) => {
      throw explainStoreError(error, target);
    });
  const region = await client.config.region().catch(() => undefined);
  return { target, client, documents, region, explained };
}
