import { ConditionalCheckFailedException, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, GetCommand, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { tableSchemas } from '../../../shared/tables/table-schemas.ts';
import { physicalTableName } from '../../../shared/tables/table-names.ts';
import { demoAccount, demoRows, realChannelRow, type SeedRow } from './seed-rows.ts';
import { vendorRows } from './vendor-rows.ts';

const stackName = 'relay';

/** The demo key that is printed at start. It stays the same as long as the data folder exists. */
export function demoKey(dataFolder: string | undefined): string {
  const fresh = `sk-${randomBytes(24).toString('base64url')}`;
  if (dataFolder === undefined) return fresh;
  const file = path.join(dataFolder, 'demo-key');
  try {
    const kept = readFileSync(file, 'utf8').trim();
    if (kept.startsWith('sk-')) {
      chmodSync(file, 0o600);
      return kept;
    }
  } catch {
    // The file does not exist yet.
  }
  mkdirSync(dataFolder, { recursive: true });
  writeFileSync(file, `${fresh}\n`, { mode: 0o600 });
  // `writeFileSync` applies the mode only to a new file.
  chmodSync(file, 0o600);
  return fresh;
}

/** Where the demo upstream and the vendor doubles listen in this run. */
export interface DemoUpstreams {
  endpoint: string;
  vendorEndpoint: (vendor: string) => string;
}

/** Writes missing demo rows, and updates the endpoints of demo channels to the current ports. */
export async function seedDemo(client: DynamoDBClient, upstreams: DemoUpstreams, key: string): Promise<void> {
  const documents = DynamoDBDocumentClient.from(client);
  const rows = [...demoRows(upstreams.endpoint, key), ...vendorRows(upstreams.vendorEndpoint)];
  await Promise.all(rows.map((row) => putIfAbsent(documents, row)));
  const channels = rows.filter(({ table }) => table === 'channels');
  await Promise.all(channels.map(({ row }) => updateEndpoint(documents, row)));
}

const grantWaitMs = 10_000;

/** Waits for the demo account's grant, so that the first call with the printed key finds the balance. */
export async function demoGrantApplied(client: DynamoDBClient): Promise<void> {
  const documents = DynamoDBDocumentClient.from(client);
  const TableName = physicalTableName(stackName, 'quotas');
  for (const endMs = Date.now() + grantWaitMs; Date.now() < endMs;) {
    const { Item } = await documents.send(new GetCommand({ TableName, Key: { account: demoAccount } }));
    if (Item !== undefined) return;
    await sleep(50);
  }
}

const updateEndpoint = (
  documents: DynamoDBDocumentClient,
  { id, endpoint }: Record<string, unknown>,
): Promise<void> =>
  unlessConditionFails(
    documents.send(
      new UpdateCommand({
        TableName: physicalTableName(stackName, 'channels'),
        Key: { id },
        UpdateExpression: 'SET endpoint = :endpoint',
        ConditionExpression: 'attribute_exists(id) AND endpoint <> :endpoint',
        ExpressionAttributeValues: { ':endpoint': endpoint },
      }),
    ),
  );

export async function seedRealChannel(client: DynamoDBClient): Promise<void> {
  await putIfAbsent(DynamoDBDocumentClient.from(client), realChannelRow);
}

async function putIfAbsent(documents: DynamoDBDocumentClient, { table, row }: SeedRow): Promise<void> {
  await unlessConditionFails(
    documents.send(
      new PutCommand({
        TableName: physicalTableName(stackName, table),
        Item: row,
        ConditionExpression: 'attribute_not_exists(#key)',
        ExpressionAttributeNames: { '#key': tableSchemas[table].partitionKey.name },
      }),
    ),
  );
}

async function unlessConditionFails(writing: Promise<unknown>): Promise<void> {
  try {
    await writing;
  } catch (error) {
    if (!(error instanceof ConditionalCheckFailedException)) throw error;
  }
}
