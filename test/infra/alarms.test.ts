import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { linesOf, metricsOf } from '../support/embedded-metrics.ts';
import { metricPaths, setFunctionEnvironment } from './metric-paths.ts';
import { resourcesOf, synthesize, type Resource } from './synthesize.ts';

interface AlarmMetric {
  MetricName: string;
  Namespace: string;
  Dimensions: { Name: string; Value: unknown }[];
}

const alarms = resourcesOf(
  synthesize({ alarmEmail: 'ops@example.com' }).template,
  'AWS::CloudWatch::Alarm',
).map(([, alarm]) => alarm.Properties);

/** What an alarm looks at, one by one when it reckons with several. */
function metricsOfAlarm(alarm: Resource['Properties']): AlarmMetric[] {
  if (alarm.MetricName !== undefined) return [alarm as unknown as AlarmMetric];
  const parts = alarm.Metrics as { MetricStat?: { Metric: AlarmMetric } }[];
  return parts.flatMap(({ MetricStat }) => MetricStat?.Metric ?? []);
}

const own = alarms.flatMap(metricsOfAlarm).filter(({ Namespace }) => Namespace === 'relay');

const alarmOn = (name: string): Resource['Properties'] | undefined =>
  alarms.find((alarm) => metricsOfAlarm(alarm).some(({ MetricName }) => MetricName === name));

describe('the metrics of alarms', () => {
  let emulator: Emulator;

  beforeAll(async () => {
    emulator = await startEmulator();
    setFunctionEnvironment(emulator.endpoint);
  });
  afterAll(() => emulator.stop());

  test('are all emitted by code that is run here, and nothing else is in the table', () => {
    const names = new Set(own.map(({ MetricName }) => MetricName));
    expect(Object.keys(metricPaths).toSorted()).toEqual([...names].toSorted());
  });

  test.each(Object.entries(metricPaths))(
    '%s is written by the relay as the alarm looks for it',
    async (name, path) => {
      const client = emulatorClient(emulator.endpoint);
      const lines = await linesOf(() => path(client));
      client.destroy();
      const written = lines
        .flatMap(metricsOf)
        .filter((metric) => metric.name === name && Object.keys(metric.dimensions).length === 1);
      expect(written.length).toBeGreaterThan(0);
      const wanted = own.find(({ MetricName }) => MetricName === name);
      for (const { namespace, dimensions, value } of written) {
        expect(namespace).toBe(wanted?.Namespace);
        expect(Object.entries(dimensions)).toEqual(
          wanted?.Dimensions.map(({ Name, Value }) => [Name, Value]),
        );
        expect(value).toBeGreaterThan(0);
      }
    },
  );
});

describe('an alarm', () => {
  test('says what to look at, and notifies the topic', () => {
    for (const { AlarmDescription, AlarmActions } of alarms) {
      expect(String(AlarmDescription).length).toBeGreaterThan(40);
      expect(AlarmActions).toHaveLength(1);
    }
  });

  test('on failures triggers from ten in a hundred requests on, and not for few', () => {
    const alarm = alarmOn('Failures');
    const parts = alarm?.Metrics as { Expression?: string; ReturnData?: boolean }[];
    const shown = parts.find(({ ReturnData }) => ReturnData !== false);
    expect(shown?.Expression).toBe('IF(requests >= 20, 100 * FILL(failures, 0) / requests, 0)');
    expect(alarm).toMatchObject({ Threshold: 10, ComparisonOperator: 'GreaterThanOrEqualToThreshold' });
  });

  test('on the sweeper triggers when no run succeeded for ten minutes', () => {
    expect(alarmOn('OpenReservations')).toMatchObject({
      Statistic: 'SampleCount',
      Threshold: 1,
      ComparisonOperator: 'LessThanThreshold',
      Period: 300,
      EvaluationPeriods: 2,
      TreatMissingData: 'breaching',
    });
  });

  test.each(['keys', 'accounts', 'quotas', 'ledger', 'runtime'])(
    'adds up what DynamoDB refused of %s',
    (table) => {
      const watched = alarms
        .map(metricsOfAlarm)
        .find((metrics) => metrics.some(({ Dimensions }) => Dimensions[0]?.Value === `relay-${table}`));
      expect(watched?.map(({ Namespace, MetricName }) => `${Namespace} ${MetricName}`)).toEqual([
        'AWS/DynamoDB ReadThrottleEvents',
        'AWS/DynamoDB WriteThrottleEvents',
      ]);
    },
  );
});
