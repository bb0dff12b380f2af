/**
 * Creates the tables of the template in the emulator, and rejects tables that another version left with a
 * different schema.
 */
import {
  CreateTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  ResourceInUseException,
  UpdateTimeToLiveCommand,
  type AttributeDefinition,
  type GlobalSecondaryIndex,
  type KeySchemaElement,
  type StreamViewType,
  type TableDescription,
} from '@aws-sdk/client-dynamodb';
import { StartError } from '../host/messages.ts';
import { resourcesOf, type LocalReferences } from './template.ts';
import { createLocalClientSettings } from '../host/local-options.ts';

interface TableProperties {
  KeySchema: KeySchemaElement[];
  AttributeDefinitions: AttributeDefinition[];
  GlobalSecondaryIndexes?: GlobalSecondaryIndex[];
  StreamSpecification?: { StreamViewType: StreamViewType };
  TimeToLiveSpecification?: { AttributeName: string; Enabled: boolean };
}

export function createDynamoClient(endpoint: string): DynamoDBClient {
  return new DynamoDBClient(createLocalClientSettings(endpoint));
}

/** Creates missing tables of the template, and sets the stream ARNs of all tables. */
export async function createTables(client: DynamoDBClient, references: LocalReferences): Promise<void> {
  await Promise.all(
    resourcesOf(references.template, 'AWS::DynamoDB::GlobalTable').map(async ([id, resource]) => {
      const name = references.physicalName(id);
      const properties = references.resolve(resource.Properties ?? {}) as TableProperties;
      const table = await createTable(client, name, properties);
      if (table.LatestStreamArn !== undefined)
        references.setAttribute(id, 'StreamArn', table.LatestStreamArn);
    }),
  );
}

async function createTable(
  client: DynamoDBClient,
  name: string,
  properties: TableProperties,
): Promise<TableDescription> {
  const stream = properties.StreamSpecification;
  try {
    const { TableDescription } = await client.send(
      new CreateTableCommand({
        TableName: name,
        KeySchema: properties.KeySchema,
        AttributeDefinitions: properties.AttributeDefinitions,
        BillingMode: 'PAY_PER_REQUEST',
        ...(properties.GlobalSecondaryIndexes && {
          GlobalSecondaryIndexes: properties.GlobalSecondaryIndexes,
        }),
        ...(stream && {
          StreamSpecification: { StreamEnabled: true, StreamViewType: stream.StreamViewType },
        }),
      }),
    );
    const ttl = properties.TimeToLiveSpecification;
    if (ttl !== undefined)
      await client.send(new UpdateTimeToLiveCommand({ TableName: name, TimeToLiveSpecification: ttl }));
    return TableDescription ?? {};
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error;
    return checkExistingTable(client, name, properties);
  }
}

/** Throws StartError for a table that an older version left with another schema; it must not be deleted. */
async function checkExistingTable(
  client: DynamoDBClient,
  name: string,
  wanted: TableProperties,
): Promise<TableDescription> {
  const { Table } = await client.send(new DescribeTableCommand({ TableName: name }));
  if (shapeOf(Table ?? {}) !== shapeOf(wanted))
    throw new StartError(
      `table ${name} has another schema than this version: delete the folder RELAY_DATA or use another one`,
    );
  return Table ?? {};
}

const shapeOf = (table: TableDescription | TableProperties): string =>
  JSON.stringify([
    table.KeySchema?.map((key) => [key.AttributeName, key.KeyType]),
    table.StreamSpecification?.StreamViewType ?? null,
    table.GlobalSecondaryIndexes?.length ?? 0,
  ]);
