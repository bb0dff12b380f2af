import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { tableSchemas, type TableSchema } from '../../shared/tables/table-schemas.ts';
import { resourcesOf, synthesize, type Resource } from './synthesize.ts';

interface TableProperties {
  TableName: string;
  AttributeDefinitions: { AttributeName: string; AttributeType: string }[];
  KeySchema: { AttributeName: string; KeyType: string }[];
  GlobalSecondaryIndexes?: {
    IndexName: string;
    KeySchema: { AttributeName: string; KeyType: string }[];
    Projection: { ProjectionType: string };
  }[];
  StreamSpecification?: { StreamViewType: string };
  TimeToLiveSpecification?: { AttributeName: string; Enabled: boolean };
  BillingMode: string;
  SSESpecification: { SSEEnabled: boolean };
  Replicas: {
    DeletionProtectionEnabled: boolean;
    KinesisStreamSpecification?: { StreamArn: string };
    PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: boolean };
  }[];
}

const properties = (resource: Resource): TableProperties => resource.Properties as unknown as TableProperties;

/** Properties whose change would replace a customer's table or break its readers. */
function identity([logicalId, resource]: [string, Resource]): object {
  const table = properties(resource);
  const typeOf = (name: string): string =>
    table.AttributeDefinitions.find((attribute) => attribute.AttributeName === name)?.AttributeType ?? '?';
  const keys = (schema: TableProperties['KeySchema']): string[] =>
    schema.map((key) => `${key.KeyType} ${key.AttributeName} ${typeOf(key.AttributeName)}`);
  return {
    logicalId,
    name: table.TableName,
    keys: keys(table.KeySchema),
    indexes: (table.GlobalSecondaryIndexes ?? []).map((index) => ({
      name: index.IndexName,
      keys: keys(index.KeySchema),
      projection: index.Projection.ProjectionType,
    })),
    ttl: table.TimeToLiveSpecification?.AttributeName ?? null,
    stream: table.StreamSpecification?.StreamViewType ?? null,
    whenRemoved: [resource.DeletionPolicy, resource.UpdateReplacePolicy],
  };
}

const tables = resourcesOf(synthesize().template, 'AWS::DynamoDB::GlobalTable');

describe('tables', () => {
  test('keep the identity of deployed stacks (a change would replace customers’ data)', () => {
    const golden: unknown = JSON.parse(readFileSync(join(import.meta.dirname, 'tables.golden.json'), 'utf8'));
    expect(tables.map(identity)).toEqual(golden);
  });

  test('send only ledger rows to the Kinesis stream of the option, and let no function access it', () => {
    const ledgerStream = 'arn:aws:kinesis:eu-central-1:123456789012:stream/lake';
    const { template } = synthesize({ region: 'eu-central-1', ledgerStream });
    const sending = resourcesOf(template, 'AWS::DynamoDB::GlobalTable').flatMap(([, table]) => {
      const [replica] = properties(table).Replicas;
      return replica?.KinesisStreamSpecification ? [[properties(table).TableName, replica]] : [];
    });
    expect(sending).toMatchObject([
      ['relay-ledger', { KinesisStreamSpecification: { StreamArn: ledgerStream } }],
    ]);
    expect(JSON.stringify(resourcesOf(template, 'AWS::IAM::Policy'))).not.toContain('kinesis');
  });

  test('are on-demand, encrypted, recoverable to a point in time and protected from deletion', () => {
    const schemas: Record<string, TableSchema> = tableSchemas;
    for (const [, table] of tables) {
      const { recoverable = true } = schemas[properties(table).TableName.replace('relay-', '')] ?? {};
      expect(properties(table)).toMatchObject({
        BillingMode: 'PAY_PER_REQUEST',
        SSESpecification: { SSEEnabled: true },
        Replicas: [
          {
            DeletionProtectionEnabled: true,
            PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: recoverable },
          },
        ],
      });
    }
  });
});
