/** Opens the connection to the tables of a target and explains its errors to operators. */
import {
  DescribeLimitsCommand,
  DynamoDBClient,
  GetItemCommand,
  BatchGetItemCommand,
  BatchWriteItemCommand,
  DeleteItemCommand,
  PutItemCommand,
  QueryCommand,
  TransactGetItemsCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { TableLimits, TableTraffic, Target, Reading } from '../../operate/operator-ports.ts';
import type { AwsPlace, AwsAccess } from '../system/environment.ts';
import { physicalTableName, type TableName } from '../../tables/table-names.ts';
import { clientTimes, type TableClient, type TableOperations, type Attributes } from './table-client.ts';
import { StoreBusy } from '../../relay/ports/store-errors.ts';

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

interface LocalStack {
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

// The SDK's clients of DynamoDB, for background jobs and operators. Functions that answer calls must not import it. The
// SDK itself reads `AWS_ENDPOINT_URL_DYNAMODB`.

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

// Pages and batches of operators' reads, and rows of them that may be unreadable.

export async function* pages(
  paginator: AsyncIterator<{ Items?: Attributes[] | undefined }>,
  explained: Store['explained'],
): AsyncGenerator<Attributes[]> {
  for (;;) {
    const next = await explained(paginator.next());
    if (next.done) return;
    yield next.value.Items ?? [];
  }
}

/** DynamoDB's limit. */
const keysMax = 100;
const triesMax = 5;

/** The items with these keys, each named once, in no order and with consistent reads: 100 for each request. */
export const itemsOf = ({ client, explained, target }: Store, table: TableName, keys: Attributes[]) =>
  explained(batches(client, physicalTableName(target.stack, table), keys));

async function batches(client: DynamoDBClient, TableName: string, keys: Attributes[]): Promise<Attributes[]> {
  const found: Attributes[] = [];
  let left = keys;
  for (let unread = 0; left.length > 0;) {
    const Keys = left.slice(0, keysMax);
    const RequestItems = { [TableName]: { Keys, ConsistentRead: true } };
    const { Responses, UnprocessedKeys } = await client.send(new BatchGetItemCommand({ RequestItems }));
    found.push(...(Responses?.[TableName] ?? []));
    const again = UnprocessedKeys?.[TableName]?.Keys ?? [];
    if (again.length === Keys.length && (unread += 1) === triesMax)
      throw new StoreBusy('not all items were read');
    left = [...again, ...left.slice(keysMax)];
  }
  return found;
}

export function reading<Row>(item: Attributes, key: string, read: (item: Attributes) => Row): Reading<Row> {
  try {
    return { row: read(item) };
  } catch (error) {
    return { key, problem: error instanceof Error ? error.message : String(error) };
  }
}

// The marks `_by` and `_at` of rows that operators wrote. Configuration and keys ignore attributes with `_`.

export interface AuthorMarks {
  /** The ARN of the caller; `local` beside local tables. */
  _by: string;
  /** ISO 8601, by the clock of the operator's machine. */
  _at: string;
}

/** Who writes, and when. Asked before each write, never before a read. */
export type RowAuthor = () => Promise<AuthorMarks>;

/** The tables that people edit. Items of other tables say by themselves who wrote them, or are written by functions. */
const signedTables: ReadonlySet<TableName> = new Set([
  'channels',
  'charges',
  'plans',
  'settings',
  'keys',
  'accounts',
  'grants',
]);

export const isSigned = (table: TableName): boolean => signedTables.has(table);

export const rowAuthor =
  (operator: () => Promise<string>): RowAuthor =>
  async () => ({ _by: await operator(), _at: new Date().toISOString() });
