/** Every table of the schema module as an on-demand DynamoDB table. */
import { RemovalPolicy } from 'aws-cdk-lib';
import {
  AttributeType,
  Billing,
  ProjectionType,
  StreamViewType,
  TableEncryptionV2,
  TableV2,
  type Attribute,
  type TablePropsV2,
} from 'aws-cdk-lib/aws-dynamodb';
import { Construct } from 'constructs';
import {
  tableSchemas,
  type KeyAttribute,
  type TableSchema,
  tableNames,
} from '../../../shared/tables/table-schemas.ts';
import { physicalTableName, type TableName } from '../../../shared/tables/table-names.ts';

export interface RelayTablesProps {
  relayName: string;
  disposable: boolean;
}

export class RelayTables extends Construct {
  readonly byName: Readonly<Record<TableName, TableV2>>;

  constructor(scope: Construct, id: string, props: RelayTablesProps) {
    super(scope, id);
    this.byName = Object.fromEntries(
      tableNames.map((name) => [name, new TableV2(this, name, tableProps(name, tableSchemas[name], props))]),
    ) as Record<TableName, TableV2>;
  }

  streamArn(name: TableName): string {
    const arn = this.byName[name].tableStreamArn;
    if (arn === undefined) throw new Error(`table ${name} has no stream`);
    return arn;
  }
}

function tableProps(name: TableName, schema: TableSchema, props: RelayTablesProps): TablePropsV2 {
  return {
    tableName: physicalTableName(props.relayName, name),
    partitionKey: attribute(schema.partitionKey),
    ...(schema.sortKey && { sortKey: attribute(schema.sortKey) }),
    ...(schema.ttl !== undefined && { timeToLiveAttribute: schema.ttl }),
    ...(schema.stream && { dynamoStream: StreamViewType[schema.stream] }),
    globalSecondaryIndexes: (schema.indexes ?? []).map((index) => ({
      indexName: index.name,
      partitionKey: attribute(index.partitionKey),
      projectionType: ProjectionType.KEYS_ONLY,
    })),
    billing: Billing.onDemand(),
    encryption: TableEncryptionV2.awsManagedKey(),
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    deletionProtection: !props.disposable,
    // RETAIN also applies when the first deployment fails; repeat that one with --import-existing-resources.
    removalPolicy: props.disposable ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN,
  };
}

function attribute(key: KeyAttribute): Attribute {
  return { name: key.name, type: key.type === 'S' ? AttributeType.STRING : AttributeType.NUMBER };
}
