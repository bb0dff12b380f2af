/** Opens the connection to the tables of a target and explains its errors to operators. */
import { DescribeLimitsCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { TableLimits } from '../../operate/aws-account.ts';
import type { Target } from '../../operate/operator-ports.ts';
import type { AwsAccess } from '../system/environment.ts';
import { documentsOn } from './sdk-client.ts';

/** The connection to the tables of a target. */
export interface Store {
  target: Target;
  /** Attributes in DynamoDB's wire format, with exact numbers. */
  client: DynamoDBClient;
  /** Attributes as JavaScript values. */
  documents: DynamoDBDocumentClient;
  /** Undefined when the environment sets no region; every call then fails. */
  region: string | undefined;
  /** Waits for work on the tables. Converts its errors with `explain`. */
  explained: <Result>(work: Promise<Result>) => Promise<Result>;
}

/** @param explain converts an error of the SDK to a Failure that tells the operator what to do */
export async function openStore(target: Target, explain: (error: unknown) => Error): Promise<Store> {
  const client = new DynamoDBClient({
    requestHandler: { connectionTimeout: 3000, requestTimeout: 15_000, throwOnRequestTimeout: true },
    ...(target.endpoint !== undefined && { endpoint: target.endpoint }),
    // An emulator requires credentials but does not check them.
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

/** For requests that no SDK client makes. Throws when the environment has no region or no credentials. */
export const awsAccessOf = async ({ client }: Store): Promise<AwsAccess> => ({
  region: await client.config.region(),
  credentials: await client.config.credentials(),
});

/** https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DescribeLimits.html */
export async function tableLimitsOf({ client, explained }: Store): Promise<TableLimits> {
  const limits = await explained(client.send(new DescribeLimitsCommand()));
  return {
    tableReads: limits.TableMaxReadCapacityUnits ?? 0,
    tableWrites: limits.TableMaxWriteCapacityUnits ?? 0,
  };
}
