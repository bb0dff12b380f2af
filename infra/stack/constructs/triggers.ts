/** The event sources of functions: table streams and schedules. */
import { CfnResource, Duration, Names, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Rule, Schedule } from 'aws-cdk-lib/aws-events';
import { type PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import {
  EventSourceMapping,
  FilterCriteria,
  MetricType,
  StartingPosition,
  type IFunction,
} from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { BlockPublicAccess, Bucket, ObjectOwnership } from 'aws-cdk-lib/aws-s3';
import { Construct, type IConstruct } from 'constructs';
import { tableSchemas } from '../../../shared/tables/table-schemas.ts';
import { allow, keepAfterCreation, type RelayFunctions } from './relay-functions.ts';
import { functionDescriptions, type FunctionName, type StreamTrigger } from './function-descriptions.ts';
import { configureBucketEncryption, grantKeyUse, type RelayKeys } from './encryption-keys.ts';
import type { RelayTables } from './relay-tables.ts';

export interface TriggersProps {
  tables: RelayTables;
  functions: RelayFunctions;
  disposable: boolean;
  keys: RelayKeys;
}

/** The stream of a table, and the function that it invokes. */
export interface StreamMapping {
  function: FunctionName;
  mapping: EventSourceMapping;
}

/** Matches records of the named items. Lambda discards the others for free, without an invocation. */
function filterOf({ table, onlyIds, onlyNewWithPrefix: prefix }: StreamTrigger): object | undefined {
  const { name, type } = tableSchemas[table].partitionKey;
  const matchKeys = (ids: readonly unknown[]) => ({ dynamodb: { Keys: { [name]: { [type]: ids } } } });
  if (prefix !== undefined) return { eventName: ['INSERT'], ...matchKeys([{ prefix }]) };
  return onlyIds && matchKeys(onlyIds);
}

/** CDK's provider for buckets that empty themselves, if the stack has one. */
export const findEmptyingProvider = (stack: Stack): IConstruct | undefined =>
  stack.node.tryFindChild('Custom::S3AutoDeleteObjectsCustomResourceProvider');

const failuresKept = Duration.days(90);

export class Triggers extends Construct {
  /** Stores stream records without retries left, with the reason: one object per batch. */
  readonly failures: Bucket;
  readonly mappings: readonly StreamMapping[];
  private readonly keys: RelayKeys;
  private readonly onFailure = { bind: () => ({ destination: this.failures.bucketArn }) };

  constructor(scope: Construct, id: string, props: TriggersProps) {
    super(scope, id);
    this.keys = props.keys;
    this.failures = new Bucket(this, 'Failures', {
      blockPublicAccess: BlockPublicAccess.BLOCK_ALL,
      objectOwnership: ObjectOwnership.BUCKET_OWNER_ENFORCED,
      ...configureBucketEncryption(props.keys.buckets),
      enforceSSL: true,
      lifecycleRules: [{ expiration: failuresKept, abortIncompleteMultipartUploadAfter: Duration.days(1) }],
      // Failed records are evidence when money is disputed, so the bucket outlives the stack. CloudFormation generates its name, so a
      // later stack can't collide with it.
      removalPolicy: keepAfterCreation(props.disposable),
      // Only an empty bucket can be deleted.
      autoDeleteObjects: props.disposable,
    });
    if (props.disposable) this.logsOfEmptying();
    const mappings: StreamMapping[] = [];
    for (const [name, { lambda, live = lambda }] of props.functions.byName) {
      const { streams = [], everyMinutes, eventSecondsMax } = functionDescriptions[name];
      for (const stream of streams) {
        const mapping = this.mapping(name, live, stream, props.tables.streamArn(stream.table));
        mappings.push({ function: name, mapping });
      }
      if (everyMinutes !== undefined) this.schedule(name, everyMinutes, { lambda, live });
      if (eventSecondsMax === undefined) continue;
      // Responses and reservations survive a lost event, so nothing is retried.
      for (const statement of this.failureGrants()) lambda.addToRolePolicy(statement);
      lambda.configureAsyncInvoke({
        retryAttempts: 0,
        maxEventAge: Duration.seconds(eventSecondsMax),
        onFailure: this.onFailure,
      });
    }
    this.mappings = mappings;
  }

  /**
   * Gives the function that empties the bucket a log group of the stack. Lambda would create one that nobody
   * deletes.
   */
  private logsOfEmptying(): void {
    const handler = findEmptyingProvider(Stack.of(this))?.node.tryFindChild('Handler');
    if (!CfnResource.isCfnResource(handler)) throw new Error('CDK empties buckets by another function now');
    const logGroup = new LogGroup(this, 'EmptyingLogs', {
      retention: RetentionDays.ONE_DAY,
      ...(this.keys.logs && { encryptionKey: this.keys.logs }),
      removalPolicy: RemovalPolicy.DESTROY,
    });
    handler.addPropertyOverride('LoggingConfig', { LogGroup: logGroup.logGroupName });
  }

  /** CDK's target would give the permission a logical id that depends on the alias. */
  private schedule(
    name: FunctionName,
    everyMinutes: number,
    called: { lambda: IFunction; live: IFunction },
  ): void {
    const rule = new Rule(this, `${name}Schedule`, {
      description: `Runs function ${name}`,
      schedule: Schedule.rate(Duration.minutes(everyMinutes)),
    });
    const { functionArn } = called.live;
    rule.addTarget({ bind: () => ({ arn: functionArn }) });
    called.live.addPermission(`AllowEventRule${Names.nodeUniqueId(called.lambda.node)}`, {
      principal: new ServicePrincipal('events.amazonaws.com'),
      sourceArn: rule.ruleArn,
      scope: rule,
    });
  }

  private mapping(
    name: FunctionName,
    lambda: IFunction,
    stream: StreamTrigger,
    streamArn: string,
  ): EventSourceMapping {
    const filter = filterOf(stream);
    const id = `${stream.table}Stream`;
    // Replaces CDK's event source, whose role may list all streams and read and write the whole bucket.
    const read = ['DescribeStream', 'GetRecords', 'GetShardIterator', 'ListStreams'];
    lambda.addToRolePolicy(allow('dynamodb', read, streamArn));
    if (stream.keepsFailures) for (const statement of this.failureGrants()) lambda.addToRolePolicy(statement);
    // The first reader of a table keeps its old id. A new id would replace its mapping.
    return new EventSourceMapping(this, this.node.tryFindChild(id) ? `${id}Of${name}` : id, {
      target: lambda,
      eventSourceArn: streamArn,
      // Starts at the oldest record, so that it also reads records that are older than the function.
      startingPosition: StartingPosition.TRIM_HORIZON,
      batchSize: stream.recordsAtOnce,
      ...(stream.gathersSeconds !== undefined && {
        maxBatchingWindow: Duration.seconds(stream.gathersSeconds),
      }),
      reportBatchItemFailures: true,
      ...(filter && { filters: [FilterCriteria.filter(filter)] }),
      bisectBatchOnError: true,
      retryAttempts: stream.retries,
      maxRecordAge: Duration.hours(stream.maxAgeHours),
      ...(stream.keepsFailures && { onFailure: this.onFailure }),
      // AWS bills each of these metrics ($0.30 a month), so only a mapping that an alarm reads gets them.
      ...(stream.countsEvents && { metricsConfig: { metrics: [MetricType.EVENT_COUNT] } }),
    });
  }

  private failureGrants(): PolicyStatement[] {
    return [
      allow('s3', ['ListBucket'], this.failures.bucketArn),
      allow('s3', ['PutObject'], this.failures.arnForObjects('*')),
      ...grantKeyUse(Stack.of(this), this.keys.buckets, ['s3'], ['GenerateDataKey']),
    ];
  }
}
