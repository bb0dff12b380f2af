/** Opens the connection to the tables of a target and explains its errors to operators. */
import { DescribeLimitsCommand, DynamoDBClient, GetItemCommand } from '@aws-sdk/client-dynamodb';
import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { TableLimits } from '../../operate/aws-account.ts';
import type { TableTraffic, Target } from '../../operate/operator-ports.ts';
import type { AwsPlace } from '../system/aws-place.ts';
import { physicalTableName } from '../../tables/table-names.ts';
import type { AwsAccess } from '../system/environment.ts';
import { documentsOn, withoutLines } from './sdk-client.ts';

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
  /** What was asked of the tables so far. */
  traffic: () => TableTraffic;
}

/** @param explain converts an error of the SDK to a Failure that tells the operator what to do */
export async function openStore(
  target: Target,
  explain: (error: unknown) => Error,
  place: AwsPlace = {},
): Promise<Store> {
  const client = withoutLines(
    new DynamoDBClient({
      requestHandler: { connectionTimeout: 3000, requestTimeout: 15_000, throwOnRequestTimeout: true },
      ...place,
      ...(target.endpoint !== undefined && { endpoint: target.endpoint }),
      // An emulator requires credentials but does not check them.
      ...(target.local && {
        region: 'us-east-1',
        credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
        maxAttempts: 1,
      }),
    }),
  );
  const traffic = countTraffic(client);
  const documents = documentsOn(client);
  const explained: Store['explained'] = async (work) =>
    work.catch((error: unknown) => {
      throw explain(error);
    });
  const region = await client.config.region().catch(() => undefined);
  return { target, client, documents, region, explained, traffic };
}

/**
 * Counts each attempt, repeats included, and the bytes of its reply as they arrive. Clients for documents on it count here
 * too, and what they make of a reply has another form: nothing here may read it.
 */
function countTraffic(client: DynamoDBClient): () => TableTraffic {
  let traffic: TableTraffic = { requests: 0, bytes: 0 };
  client.middlewareStack.add(
    (next) => async (args) => {
      traffic = { ...traffic, requests: traffic.requests + 1 };
      const result = await next(args);
      const { headers } = result.response as { headers: Record<string, string> };
      traffic = { ...traffic, bytes: traffic.bytes + Number(headers['content-length'] ?? 0) };
      return result;
    },
    // Inside of what repeats a request and of what reads its reply.
    { step: 'deserialize', priority: 'low' },
  );
  return () => traffic;
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

/** The item of `runtime` with which a local stack says where it is. */
export const localStackId = 'local-log';

export interface LocalStack {
  /** Where its log is searched. */
  log: { endpoint: string; groups: string[] } | undefined;
  /** Ends in `/v1`. */
  baseUrl: string | undefined;
}

/** Says nothing of local tables that are those of no running stack. */
export async function localStackOf({ client, explained, target }: Store): Promise<LocalStack> {
  const TableName = physicalTableName(target.stack, 'runtime');
  const { Item } = await explained(
    client.send(new GetItemCommand({ TableName, Key: { id: { S: localStackId } }, ConsistentRead: true })),
  );
  const endpoint = Item?.['endpoint']?.S;
  const groups = Item?.['groups']?.L?.flatMap(({ S }) => S ?? []);
  return {
    log: endpoint === undefined || !groups ? undefined : { endpoint, groups },
    baseUrl: Item?.['base_url']?.S,
  };
}
