/**
 * Creates the tables of the template in the emulator, and rejects tables that another version left with a
 * different schema.
 */
import type {
  AttributeDefinition,
  CreateTableCommandInput,
  GlobalSecondaryIndex,
  KeySchemaElement,
  StreamViewType,
  TableDescription,
} from '@aws-sdk/client-dynamodb';
import type { AwsCalls } from '../../../shared/adapters/aws/aws-calls.ts';
import { StartError } from '../host/messages.ts';
import { resourcesOf, type LocalReferences } from './template.ts';

interface TableProperties {
  KeySchema: KeySchemaElement[];
  AttributeDefinitions: AttributeDefinition[];
  GlobalSecondaryIndexes?: GlobalSecondaryIndex[];
  StreamSpecification?: { StreamViewType: StreamViewType };
  TimeToLiveSpecification?: { AttributeName: string; Enabled: boolean };
}

/** Creates missing tables of the template, and sets the stream ARNs of all tables. */
export async function createTables(callAws: AwsCalls, references: LocalReferences): Promise<void> {
  await Promise.all(
    resourcesOf(references.template, 'AWS::DynamoDB::GlobalTable').map(async ([id, resource]) => {
      const name = references.physicalName(id);
      const properties = references.resolve(resource.Properties ?? {}) as TableProperties;
      const table = await createTable(callAws, name, properties);
      if (table.LatestStreamArn !== undefined)
        references.setAttribute(id, 'StreamArn', table.LatestStreamArn);
    }),
  );
}

async function createTable(
  callAws: AwsCalls,
  name: string,
  properties: TableProperties,
): Promise<TableDescription> {
  const stream = properties.StreamSpecification;
  try {
    const input: CreateTableCommandInput = {
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
    };
    const { TableDescription } = (await callAws('CreateTable', input)) as {
      TableDescription?: TableDescription;
    };
    const ttl = properties.TimeToLiveSpecification;
    if (ttl !== undefined)
      await callAws('UpdateTimeToLive', { TableName: name, TimeToLiveSpecification: ttl });
    return TableDescription ?? {};
  } catch (error) {
    if ((error as Error).name !== 'ResourceInUseException') throw error;
    return checkExistingTable(callAws, name, properties);
  }
}

/** Throws StartError for a table that an older version left with another schema; it must not be deleted. */
async function checkExistingTable(
  callAws: AwsCalls,
  name: string,
  wanted: TableProperties,
): Promise<TableDescription> {
  const { Table } = (await callAws('DescribeTable', { TableName: name })) as { Table?: TableDescription };
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
