import { beforeAll, describe, expect, test } from 'vitest';
import { noticePrefix } from '../../shared/adapters/dynamodb/alerts/alert-store.ts';
import { readable, resourcesOf, synthesize, type Resource, type Template } from './synthesize.ts';

let template: Template;

beforeAll(() => {
  ({ template } = synthesize({ stage: 'test' }));
});

const propertiesOf = (type: string): Resource['Properties'][] =>
  resourcesOf(template, type).map(([, { Properties }]) => Properties);

function failures(): [string, Resource] {
  const [bucket, ...others] = resourcesOf(template, 'AWS::S3::Bucket');
  expect(others).toEqual([]);
  if (bucket === undefined) throw new Error('no bucket');
  return bucket;
}

/** Table name behind `<Tablesquotas....StreamArn>`. */
const tableOf = (streamArn: unknown): unknown =>
  template.Resources[/^<(\w+)\.StreamArn>$/.exec(readable(streamArn))?.[1] ?? '']?.Properties.TableName;

const functionOf = (name: unknown): string =>
  readable(name).replace(/^<Functions([a-z]+)Function\w+?(\.Arn)?>$/, '$1');

interface Looked {
  Metric: { MetricName: string; Dimensions: unknown };
  Stat: string;
}

/** The alarms that look at metrics with this name, among others, and these metrics. */
const alarmsOn = (name: string): { alarm: Resource['Properties']; looked: Looked[] }[] =>
  propertiesOf('AWS::CloudWatch::Alarm').flatMap((alarm) => {
    const queries = (alarm.Metrics ?? []) as { MetricStat?: Looked }[];
    const looked = queries.flatMap(({ MetricStat }) =>
      MetricStat?.Metric.MetricName === name ? MetricStat : [],
    );
    return looked.length > 0 ? [{ alarm, looked }] : [];
  });

describe('the streams', () => {
  test('of tables each invoke their function', () => {
    const pairs = propertiesOf('AWS::Lambda::EventSourceMapping').map(
      ({ EventSourceArn, FunctionName }) => `${String(tableOf(EventSourceArn))} ${functionOf(FunctionName)}`,
    );
    expect(pairs.toSorted()).toEqual([
      'relay-test-accounts config',
      'relay-test-channels config',
      'relay-test-charges config',
      'relay-test-grants grants',
      'relay-test-keys config',
      'relay-test-plans config',
      'relay-test-quotas alerts',
      'relay-test-quotas ledger',
      'relay-test-runtime config',
      'relay-test-runtime notify',
      'relay-test-settings config',
    ]);
  });

  test.each([
    ['ledger', 100, 100, 43_200],
    ['grants', 25, 10, 3_600],
    ['notify', 10, 100, 43_200],
  ])('%s is tried again, halved and at last kept in the bucket', (name, batch, retries, ageSeconds) => {
    const mapping = propertiesOf('AWS::Lambda::EventSourceMapping').find(
      ({ FunctionName }) => functionOf(FunctionName) === name,
    );
    expect(mapping).toMatchObject({
      StartingPosition: 'TRIM_HORIZON',
      BatchSize: batch,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      BisectBatchOnFunctionError: true,
      MaximumRetryAttempts: retries,
      MaximumRecordAgeInSeconds: ageSeconds,
      DestinationConfig: { OnFailure: { Destination: { 'Fn::GetAtt': [failures()[0], 'Arn'] } } },
    });
  });

  test('of the table that functions write for each other are read for learned facts and new notices alone', () => {
    const filtered = propertiesOf('AWS::Lambda::EventSourceMapping').flatMap(
      ({ FilterCriteria, EventSourceArn, FunctionName }) =>
        FilterCriteria === undefined
          ? []
          : [[tableOf(EventSourceArn), functionOf(FunctionName), FilterCriteria] as const],
    );
    const filter = (pattern: string) => ({ Filters: [{ Pattern: pattern }] });
    expect(filtered).toEqual([
      ['relay-test-runtime', 'config', filter('{"dynamodb":{"Keys":{"id":{"S":["learned"]}}}}')],
      [
        'relay-test-runtime',
        'notify',
        filter(`{"eventName":["INSERT"],"dynamodb":{"Keys":{"id":{"S":[{"prefix":"${noticePrefix}"}]}}}}`),
      ],
    ]);
  });

  test('that had one reader before keep its mapping, so that a deploy reads nothing twice', () => {
    const ids = resourcesOf(template, 'AWS::Lambda::EventSourceMapping').map(([id]) => id);
    expect(ids.map((id) => id.replace(/[0-9A-F]{8}$/, ''))).toEqual(
      expect.arrayContaining([
        'TriggersquotasStream',
        'TriggersquotasStreamOfalerts',
        'TriggersruntimeStream',
      ]),
    );
  });

  test('of balances gather their records for some seconds', () => {
    const [ledger, alerts] = ['ledger', 'alerts'].map((name) =>
      propertiesOf('AWS::Lambda::EventSourceMapping').find(
        ({ FunctionName }) => functionOf(FunctionName) === name,
      ),
    );
    // As docs/cost.md reckons.
    const gathered = { MaximumBatchingWindowInSeconds: 5, BatchSize: 100 };
    expect(ledger).toMatchObject(gathered);
    expect(alerts).toMatchObject(gathered);
    expect(alerts).not.toHaveProperty('DestinationConfig');
  });

  test('of balances trigger an alarm when they are behind, and when records were given up', () => {
    const behind = propertiesOf('AWS::CloudWatch::Alarm').filter(
      ({ MetricName }) => MetricName === 'IteratorAge',
    );
    expect(behind).toMatchObject([{ Threshold: 300_000, Statistic: 'Maximum', Period: 300 }]);
    const dimensions = (behind[0]?.Dimensions ?? []) as { Value: unknown }[];
    expect(dimensions.map(({ Value }) => functionOf(Value))).toEqual(['ledger']);
    const mappings = resourcesOf(template, 'AWS::Lambda::EventSourceMapping');
    for (const [, { Properties }] of mappings)
      expect(Properties.MetricsConfig).toEqual({ Metrics: ['EventCount'] });
    const [givenUp] = alarmsOn('OnFailureDestinationDeliveredEventCount');
    expect(givenUp?.alarm).toMatchObject({ Threshold: 1 });
    const kept = mappings.filter(([, { Properties }]) => Properties.DestinationConfig !== undefined);
    const byReader = new Map(kept.map(([id, { Properties }]) => [functionOf(Properties.FunctionName), id]));
    // What the streams of the two others gave up is done by their schedules.
    expect([...byReader.keys()]).toEqual(['ledger', 'grants', 'notify']);
    expect(givenUp?.looked.map(({ Metric }) => Metric.Dimensions)).toEqual([
      [{ Name: 'EventSourceMappingUUID', Value: { Ref: byReader.get('ledger') } }],
    ]);
  });

  test('of the configuration are given up soon and keep nothing: a later compile takes in all there is', () => {
    const mappings = propertiesOf('AWS::Lambda::EventSourceMapping').filter(
      ({ FunctionName }) => functionOf(FunctionName) === 'config',
    );
    expect(mappings).toHaveLength(7);
    for (const mapping of mappings) {
      expect(mapping).toMatchObject({ MaximumRetryAttempts: 5, MaximumRecordAgeInSeconds: 3_600 });
      expect(mapping).not.toHaveProperty('DestinationConfig');
    }
  });
});

describe('the bucket of stream failures', () => {
  test('is private, encrypted, and forgets after weeks', () => {
    expect(failures()[1]).toMatchObject({
      DeletionPolicy: 'Retain',
      Properties: {
        BucketEncryption: {
          ServerSideEncryptionConfiguration: [{ ServerSideEncryptionByDefault: { SSEAlgorithm: 'AES256' } }],
        },
        PublicAccessBlockConfiguration: {
          BlockPublicAcls: true,
          BlockPublicPolicy: true,
          IgnorePublicAcls: true,
          RestrictPublicBuckets: true,
        },
        LifecycleConfiguration: { Rules: [{ ExpirationInDays: 90, Status: 'Enabled' }] },
      },
    });
  });

  test('is reached over TLS alone', () => {
    const [policy] = propertiesOf('AWS::S3::BucketPolicy');
    expect(policy?.PolicyDocument).toMatchObject({
      Statement: [{ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } }],
    });
  });

  test('goes with a disposable stack', () => {
    ({ template } = synthesize({ disposable: true }));
    expect(failures()[1].DeletionPolicy).toBe('Delete');
    ({ template } = synthesize({ stage: 'test' }));
  });
});

describe('the clock', () => {
  test('runs the sweeper and the notices every minute, the compile every 5, the grants every 15 and the alerts every hour', () => {
    const schedules = propertiesOf('AWS::Events::Rule').map(({ ScheduleExpression, Targets, State }) => {
      const [target] = Targets as { Arn: unknown }[];
      return `${functionOf(target?.Arn)} ${String(ScheduleExpression)} ${String(State)}`;
    });
    expect(schedules).toEqual([
      'config rate(5 minutes) ENABLED',
      'grants rate(15 minutes) ENABLED',
      'sweeper rate(1 minute) ENABLED',
      'alerts rate(1 hour) ENABLED',
      'notify rate(1 minute) ENABLED',
    ]);
  });
});

const ownAlarms = (): Resource['Properties'][] =>
  propertiesOf('AWS::CloudWatch::Alarm').filter(({ Namespace }) => Namespace === 'relay');

const alarmOf = (name: string) => ownAlarms().find(({ MetricName }) => MetricName === name);

test('bad rows keep their alarm while a compile of the last quarter of an hour found one, or none ran', () => {
  const ofThisStack = { Dimensions: [{ Name: 'stack', Value: 'relay-test' }], Threshold: 1 };
  expect(alarmOf('BadRows')).toMatchObject({
    ...ofThisStack,
    Statistic: 'Maximum',
    Period: 900,
    TreatMissingData: 'breaching',
  });
});
