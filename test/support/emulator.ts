import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import {
  CreateTableCommand,
  DynamoDBClient,
  ListTablesCommand,
  type CreateTableCommandInput,
  type KeySchemaElement,
} from '@aws-sdk/client-dynamodb';
import { createTableClient, type TableClient } from '../../shared/adapters/dynamodb/table-client.ts';
import { withoutLines } from './sdk-tables.ts';
import {
  tableSchemas,
  type KeyAttribute,
  type TableSchema,
  tableNames,
} from '../../shared/tables/table-schemas.ts';
import { physicalNameOf } from '../../shared/tables/table-names.ts';

export interface Emulator {
  /** The address for `AWS_ENDPOINT_URL_DYNAMODB`. */
  endpoint: string;
  stop(): Promise<void>;
}

/**
 * The time-out of tests that write thousands of items, and of the start. Amazon's program needs over a minute for
 * either when other processes use the processors too.
 */
export const slowTestMs = process.env['DYNAMODB_LOCAL'] ? 170_000 : 60_000;

const program = new URL('../../node_modules/@dynoxide/linux-x64/dynoxide', import.meta.url).pathname;

/**
 * Returns the command of an emulator. `DYNAMODB_LOCAL` is a folder with Amazon's jars: test/contract/dynamodb-local.
 */
function emulatorCommand(port: number): [program: string, args: string[]] {
  const jars = process.env['DYNAMODB_LOCAL'];
  if (!jars) return [program, ['serve', '--host', '127.0.0.1', '--port', String(port)]];
  const main = 'com.amazonaws.services.dynamodbv2.local.main.ServerRunner';
  const java = [`-Djava.library.path=${jars}`, '-cp', `${jars}/*`, main];
  return ['java', [...java, '-inMemory', '-sharedDb', '-disableTelemetry', '-port', String(port)]];
}

/**
 * Starts a DynamoDB emulator in memory, with all tables of the stack `relay`, empty. Use `streams: false` in tests that
 * write thousands of items, because stream records slow down each write.
 */
export async function startEmulator(stack = 'relay', { streams = true } = {}): Promise<Emulator> {
  const port = await freePort();
  const child = spawn(...emulatorCommand(port), { stdio: 'ignore' });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  };
  const endpoint = `http://127.0.0.1:${port}`;
  const client = emulatorClient(endpoint);
  try {
    await waitUntilListening(client);
    await createTables(client, { stack, streams });
  } catch (error) {
    await stop();
    throw error;
  } finally {
    client.destroy();
  }
  return { endpoint, stop };
}

/** Creates every table of a stack, empty. */
export async function createTables(
  client: DynamoDBClient,
  { stack = 'relay', streams = true } = {},
): Promise<void> {
  await Promise.all(
    tableNames.map((table) =>
      client.send(
        new CreateTableCommand({
          ...tableInput(physicalNameOf(stack, table), tableSchemas[table]),
          ...(!streams && { StreamSpecification: undefined }),
        }),
      ),
    ),
  );
}

/** The SDK's retries are enough for the emulator, but Java starts to listen only after seconds. */
async function waitUntilListening(client: DynamoDBClient): Promise<void> {
  const endMs = Date.now() + slowTestMs;
  for (;;) {
    try {
      await client.send(new ListTablesCommand());
      return;
    } catch (error) {
      if (Date.now() > endMs) throw error;
    }
  }
}

const access = { region: 'us-east-1', credentials: { accessKeyId: 'local', secretAccessKey: 'local' } };

/** A client of the emulator for a test's own reads and writes. */
export const emulatorClient = (endpoint: string): DynamoDBClient =>
  withoutLines(new DynamoDBClient({ ...access, endpoint, maxAttempts: 12 }));

/** The product's client of the emulator: a call takes a third of the SDK's time. A busy machine may answer late. */
export const emulatorTables = (endpoint: string): TableClient =>
  createTableClient(access, { endpoint, attempts: 12, connectMsMax: 30_000, tryMsMax: 30_000 });

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

function tableInput(name: string, schema: TableSchema): CreateTableCommandInput {
  const { partitionKey, sortKey, indexes = [], stream } = schema;
  const attributes = [
    partitionKey,
    ...(sortKey ? [sortKey] : []),
    ...indexes.map((index) => index.partitionKey),
  ];
  const byName = new Map(attributes.map((attribute) => [attribute.name, attribute]));
  return {
    TableName: name,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [...byName.values()].map(({ name, type }) => ({
      AttributeName: name,
      AttributeType: type,
    })),
    KeySchema: keySchema(partitionKey, sortKey),
    ...(indexes.length > 0 && {
      GlobalSecondaryIndexes: indexes.map((index) => ({
        IndexName: index.name,
        KeySchema: keySchema(index.partitionKey),
        Projection: { ProjectionType: 'KEYS_ONLY' },
      })),
    }),
    ...(stream && { StreamSpecification: { StreamEnabled: true, StreamViewType: stream } }),
  };
}

const keySchema = (partition: KeyAttribute, sort?: KeyAttribute): KeySchemaElement[] => [
  { AttributeName: partition.name, KeyType: 'HASH' },
  ...(sort ? [{ AttributeName: sort.name, KeyType: 'RANGE' as const }] : []),
];
