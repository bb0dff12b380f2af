import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  CreateTableCommand,
  DynamoDBClient,
  ListTablesCommand,
  type AttributeValue,
  type CreateTableCommandInput,
  type KeySchemaElement,
} from '@aws-sdk/client-dynamodb';
import { createTableClient, type TableClient } from '../../shared/adapters/dynamodb/table-client.ts';
import { bulkWrite } from './bulk-write.ts';
import { withoutLines } from './sdk-tables.ts';
import {
  tableSchemas,
  type KeyAttribute,
  type TableSchema,
  tableNames,
} from '../../shared/tables/table-schemas.ts';
import { physicalNameOf, type TableName } from '../../shared/tables/table-names.ts';

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

export type TableItems = Partial<Record<TableName, Record<string, AttributeValue>[]>>;

interface TableOptions {
  stack?: string;
  streams?: boolean;
}

interface EmulatorOptions extends TableOptions {
  /** Items that the tables have from the start, without bytes. */
  items?: TableItems;
}

/**
 * Starts a DynamoDB emulator in memory, with all tables of the stack `relay`. Use `streams: false` in tests that
 * write thousands of items, because stream records slow down each write.
 */
export async function startEmulator(
  stack = 'relay',
  { streams = true, items = {} }: Omit<EmulatorOptions, 'stack'> = {},
): Promise<Emulator> {
  const jars = process.env['DYNAMODB_LOCAL'];
  const tables = { stack, streams, items };
  return jars ? startAmazonProgram(jars, tables) : startDynoxide(tables);
}

/**
 * Dynoxide reads its tables from a file: a start with a request for each took 27 ms more of processor time. It imports an item
 * in 50 µs, and writes one in 130 µs.
 */
async function startDynoxide({ items, ...tables }: Required<EmulatorOptions>): Promise<Emulator> {
  const port = await freePort();
  const folder = mkdtempSync(path.join(tmpdir(), 'relay-emulator-'));
  const file = path.join(folder, 'tables.json');
  writeFileSync(file, JSON.stringify(inputsOf(tables).map((Table) => ({ Table }))));
  // It creates only tables that have a file of items.
  for (const table of tableNames) {
    const data = path.join(folder, physicalNameOf(tables.stack, table), 'data');
    mkdirSync(data, { recursive: true });
    const lines = items[table]?.map((Item) => JSON.stringify({ Item })) ?? [];
    writeFileSync(path.join(data, 'items.json'), lines.join('\n'));
  }
  const command = Object.keys(items).length > 0 ? ['import', '--serve', '--source', folder] : [];
  const args = [...command, '--host', '127.0.0.1', '--port', String(port), '--schema', file];
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let printed = '';
  for await (const text of child.stderr.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
    printed += String(text);
    if (!printed.includes('listening')) continue;
    child.stderr.resume();
    rmSync(folder, { recursive: true });
    return { endpoint: `http://127.0.0.1:${port}`, stop: () => kill(child) };
  }
  throw new Error(`the emulator did not start: ${printed}`);
}

/** `DYNAMODB_LOCAL` is a folder with Amazon's jars: test/contract/dynamodb-local. */
async function startAmazonProgram(
  jars: string,
  { items, ...tables }: Required<EmulatorOptions>,
): Promise<Emulator> {
  const port = await freePort();
  const main = 'com.amazonaws.services.dynamodbv2.local.main.ServerRunner';
  const java = [`-Djava.library.path=${jars}`, '-cp', `${jars}/*`, main];
  const args = [...java, '-inMemory', '-sharedDb', '-disableTelemetry', '-port', String(port)];
  const child = spawn('java', args, { stdio: 'ignore' });
  const endpoint = `http://127.0.0.1:${port}`;
  const client = emulatorClient(endpoint);
  try {
    await waitUntilListening(client);
    await createTables(client, tables);
    for (const [table, all] of Object.entries(items))
      await bulkWrite(client, physicalNameOf(tables.stack, table as TableName), all);
  } catch (error) {
    await kill(child);
    throw error;
  } finally {
    client.destroy();
  }
  return { endpoint, stop: () => kill(child) };
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGKILL');
  await exited;
}

/** Creates every table of a stack, empty. */
export async function createTables(client: DynamoDBClient, tables: TableOptions = {}): Promise<void> {
  await Promise.all(inputsOf(tables).map((input) => client.send(new CreateTableCommand(input))));
}

const inputsOf = ({ stack = 'relay', streams = true }: TableOptions): CreateTableCommandInput[] =>
  tableNames.map((table) => tableInput(physicalNameOf(stack, table), tableSchemas[table], streams));

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

function tableInput(name: string, schema: TableSchema, streams: boolean): CreateTableCommandInput {
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
    ...(stream && streams && { StreamSpecification: { StreamEnabled: true, StreamViewType: stream } }),
  };
}

const keySchema = (partition: KeyAttribute, sort?: KeyAttribute): KeySchemaElement[] => [
  { AttributeName: partition.name, KeyType: 'HASH' },
  ...(sort ? [{ AttributeName: sort.name, KeyType: 'RANGE' as const }] : []),
];
