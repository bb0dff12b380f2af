/** Every table of the schema module as an on-demand DynamoDB table. */
import { RemovalPolicy, Stack, Token } from 'aws-cdk-lib';
import {
  AttributeType,
  Billing,
  CfnGlobalTable,
  ProjectionType,
  StreamViewType,
  TableEncryptionV2,
  TableV2,
  type Attribute,
  type TablePropsV2,
} from 'aws-cdk-lib/aws-dynamodb';
import type { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import type { IStream } from 'aws-cdk-lib/aws-kinesis';
import type { IKey } from 'aws-cdk-lib/aws-kms';
import { Construct } from 'constructs';
import {
  tableSchemas,
  type KeyAttribute,
  type TableSchema,
  tableNames,
} from '../../../shared/tables/table-schemas.ts';
import { grantKeyUse, refuseElsewhere } from './encryption-keys.ts';
import { physicalNameOf, type TableName } from '../../../shared/tables/table-names.ts';

export interface RelayTablesProps {
  relayName: string;
  disposable: boolean;
  /** Default: DynamoDB's managed key. */
  encryptionKey?: IKey | undefined;
  /** Receives every change of `ledger`. Default: none. */
  ledgerStream?: IStream | undefined;
}

export class RelayTables extends Construct {
  readonly byName: Readonly<Record<TableName, TableV2>>;
  private readonly key: IKey | undefined;

  constructor(scope: Construct, id: string, props: RelayTablesProps) {
    super(scope, id);
    refuseElsewhere(Stack.of(this).region, 'encryptionKey', props.encryptionKey);
    this.byName = Object.fromEntries(tableNames.map((name) => [name, this.table(name, props)])) as Record<
      TableName,
      TableV2
    >;
    this.key = props.encryptionKey;
  }

  private table(name: TableName, props: RelayTablesProps): TableV2 {
    const { encryptionKey: key } = props;
    // CDK can't set the key of a table in a stack without a region, so this does.
    const isOpen = Token.isUnresolved(Stack.of(this).region);
    const encryption =
      key && !isOpen ? TableEncryptionV2.customerManagedKey(key) : TableEncryptionV2.awsManagedKey();
    const table = new TableV2(this, name, {
      ...buildTableProps(name, tableSchemas[name], props),
      encryption,
    });
    if (key === undefined || !isOpen) return table;
    const { defaultChild } = table.node;
    if (!(defaultChild instanceof CfnGlobalTable)) throw new Error(`${table.node.path} is not one resource`);
    defaultChild.addPropertyOverride('Replicas.0.SSESpecification.KMSMasterKeyId', key.keyArn);
    // CDK does this itself if it knows the key, so that grants of the table include the key.
    return Object.assign(table, { encryptionKey: key });
  }

  /** Grants use of the key, only through DynamoDB. */
  keyAccess(): PolicyStatement[] {
    const actions = ['Decrypt', 'DescribeKey', 'Encrypt', 'GenerateDataKey', 'ReEncryptFrom', 'ReEncryptTo'];
    return grantKeyUse(Stack.of(this), this.key, ['dynamodb'], actions);
  }

  streamArn(name: TableName): string {
    const arn = this.byName[name].tableStreamArn;
    if (arn === undefined) throw new Error(`table ${name} has no stream`);
    return arn;
  }
}

function buildTableProps(name: TableName, schema: TableSchema, props: RelayTablesProps): TablePropsV2 {
  return {
    tableName: physicalNameOf(props.relayName, name),
    partitionKey: describeAttribute(schema.partitionKey),
    ...(schema.sortKey && { sortKey: describeAttribute(schema.sortKey) }),
    ...(schema.ttl !== undefined && { timeToLiveAttribute: schema.ttl }),
    ...(schema.stream && { dynamoStream: StreamViewType[schema.stream] }),
    ...(name === 'ledger' && props.ledgerStream && { kinesisStream: props.ledgerStream }),
    globalSecondaryIndexes: (schema.indexes ?? []).map((index) => ({
      indexName: index.name,
      partitionKey: describeAttribute(index.partitionKey),
      projectionType: ProjectionType.KEYS_ONLY,
    })),
    billing: Billing.onDemand(),
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: schema.recoverable ?? true },
    deletionProtection: !props.disposable,
    // RETAIN also applies if the first deployment fails. Repeat it with --import-existing-resources.
    removalPolicy: props.disposable ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN,
  };
}

function describeAttribute(key: KeyAttribute): Attribute {
  return { name: key.name, type: key.type === 'S' ? AttributeType.STRING : AttributeType.NUMBER };
}
