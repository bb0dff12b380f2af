/** The event sources of functions: table streams and schedules. */
import { Duration, RemovalPolicy } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { LambdaFunction } from 'aws-cdk-lib/aws-events-targets';
import type { PolicyStatement } from 'aws-cdk-lib/aws-iam';
import { EventSourceMapping, FilterCriteria, MetricType, StartingPosition } from 'aws-cdk-lib/aws-lambda';
import { BlockPublicAccess, Bucket, BucketEncryption, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import { Construct } from 'constructs';
import type { TableName } from '../../../shared/tables/table-names.ts';
import { tableSchemas } from '../../../shared/tables/table-schemas.ts';
import { allow } from './allow.ts';
import { functionDescriptions, type FunctionName, type StreamTrigger } from './function-descriptions.ts';
import type { RelayFunctions } from './relay-functions.ts';
import type { RelayFunction } from './relay-function.ts';
import type { RelayTables } from './relay-tables.ts';

export interface TriggersProps {
  tables: RelayTables;
  functions: RelayFunctions;
  disposable: boolean;
}

/** One table's stream and the function that it invokes. */
export interface StreamMapping {
  function: FunctionName;
  stream: StreamTrigger;
  mapping: EventSourceMapping;
}

/** Matches the records of items with these ids. Lambda discards others without an invocation, free of charge. */
const idFilter = (table: TableName, ids: readonly string[]): object => {
  const { name, type } = tableSchemas[table].partitionKey;
  return { dynamodb: { Keys: { [name]: { [type]: [...ids] } } } };
};

const failuresKept = Duration.days(90);

export class Triggers extends Construct {
  /** Stores stream records without retries left, with the reason: one object per batch. */
  readonly failures: Bucket;
  readonly mappings: readonly StreamMapping[];

  constructor(scope: Construct, id: string, props: TriggersProps) {
    super(scope, id);
    this.failures = new Bucket(this, 'Failures', {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
      encryption: BucketEncryption.S3_MANAGED,
      enforceSSL: true,
      lifecycleRules: [{ expiration: failuresKept, abortIncompleteMultipartUploadAfter: Duration.days(1) }],
      // Failed records are evidence in questions of money, so the bucket outlives the stack. Its name is
      // generated and does not collide with a later stack's.
      removalPolicy: props.disposable ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN,
    });
    const mappings: StreamMapping[] = [];
    for (const [name, relayFunction] of props.functions.byName) {
      const { streams = [], everyMinutes } = functionDescriptions[name];
      for (const stream of streams) {
        const mapping = this.mapping(relayFunction, stream, props.tables);
        mappings.push({ function: name, stream, mapping });
      }
      if (everyMinutes !== undefined) this.schedule(name, relayFunction, everyMinutes);
    }
    this.mappings = mappings;
  }

  private mapping({ lambda }: RelayFunction, stream: StreamTrigger, tables: RelayTables): EventSourceMapping {
    const streamArn = tables.streamArn(stream.table);
    // Replaces CDK's event source, which lets the role list all streams and read and write the whole bucket.
    for (const statement of this.mappingGrants(streamArn, stream.keepsFailures))
      lambda.addToRolePolicy(statement);
    return new EventSourceMapping(this, `${stream.table}Stream`, {
      target: lambda,
      eventSourceArn: streamArn,
      // Starts at the oldest record, so that records from before the function existed are read too.
      startingPosition: StartingPosition.TRIM_HORIZON,
      batchSize: stream.recordsAtOnce,
      reportBatchItemFailures: true,
      ...(stream.onlyIds && { filters: [FilterCriteria.filter(idFilter(stream.table, stream.onlyIds))] }),
      bisectBatchOnError: true,
      retryAttempts: stream.retries,
      maxRecordAge: Duration.hours(stream.maxAgeHours),
      ...(stream.keepsFailures && {
        onFailure: { bind: () => ({ destination: this.failures.bucketArn }) },
      }),
      metricsConfig: { metrics: [MetricType.EVENT_COUNT] },
    });
  }

  private mappingGrants(streamArn: string, keepsFailures: boolean): PolicyStatement[] {
    const read = ['DescribeStream', 'GetRecords', 'GetShardIterator', 'ListStreams'];
    const keep = keepsFailures
      ? [
          allow('s3', ['ListBucket'], this.failures.bucketArn),
          allow('s3', ['PutObject'], this.failures.arnForObjects('*')),
        ]
      : [];
    return [allow('dynamodb', read, streamArn), ...keep];
  }

  private schedule(name: FunctionName, { lambda }: RelayFunction, minutes: number): void {
    const rule = new Rule(this, `${name}Schedule`, {
      description: `Runs function ${name}`,
      schedule: Schedule.rate(Duration.minutes(minutes)),
    });
    rule.addTarget(new LambdaFunction(lambda));
  }
}
