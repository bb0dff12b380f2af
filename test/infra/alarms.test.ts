import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { linesOf, metricsOf } from '../support/embedded-metrics.ts';
import { readPage } from '../docs/pages.ts';
import { CloudWatch, keyOf } from '../rollout/cloud-watch.ts';
import { metricPaths, setFunctionEnvironment } from './metric-paths.ts';
import { resourcesOf, synthesize, type Resource } from './synthesize.ts';

interface AlarmMetric {
  MetricName: string;
  Namespace: string;
  Dimensions: { Name: string; Value: unknown }[];
}

const everyOption = {
  alarmEmail: 'ops@example.com',
  pageEmail: 'night@example.com',
  canary: { model: 'demo', key: 'ssm:/relay/relay/canary' },
  region: 'us-east-1',
  edgeAlarms: true,
};
const { template } = synthesize(everyOption);
const all = resourcesOf(template, 'AWS::CloudWatch::Alarm');
/** The alarm at the edge, which looks at CloudFront, is in test/infra/edge.test.ts. */
const byId = new Map(
  all
    .filter(([id]) => id.startsWith('Alarms'))
    .map(([id, { Properties }]) => [/^Alarms(\w+)[0-9A-F]{8}$/.exec(id)?.[1] ?? id, Properties]),
);
const alarms = [...byId.values()];

/** What an alarm looks at, one by one when it reckons with several. */
function metricsOfAlarm(alarm: Resource['Properties']): AlarmMetric[] {
  if (alarm.MetricName !== undefined) return [alarm as unknown as AlarmMetric];
  const parts = alarm.Metrics as { MetricStat?: { Metric: AlarmMetric } }[];
  return parts.flatMap(({ MetricStat }) => MetricStat?.Metric ?? []);
}

const own = alarms.flatMap(metricsOfAlarm).filter(({ Namespace }) => Namespace === 'relay');

/** Events that have no alarm of their own, and the metric that counts them too. */
const countedAs = new Map(
  Object.entries({
    MoneyWrong: [
      'ConservationBroken',
      'SettleLost',
      'LedgerPoisoned',
      'GrantPoisoned',
      'ReservationPoisoned',
    ],
    NeedsAPerson: [
      'InternalErrors',
      'ReserveUnknown',
      'ChargedAboveReserve',
      'SweepFailed',
      'AlertUndelivered',
      'PaymentParked',
      'ConfigCompileFailed',
    ],
    TurnStateLost: ['TurnStateLost', 'ResponsesNotStored'],
  }).flatMap(([metric, events]) => events.map((event) => [event, metric] as const)),
);
/** Made of log lines by metric filters: test/rollout runs them. */
const filtered = new Set(['VersionCalls', 'VersionFailures']);

describe('the metrics of alarms', () => {
  let emulator: Emulator;

  beforeAll(async () => {
    emulator = await startEmulator();
    setFunctionEnvironment(emulator.endpoint);
  });
  afterAll(() => emulator.stop());

  test('are all emitted by code that is run here, and nothing else is in the table', () => {
    const names = own.map(({ MetricName }) => MetricName).filter((name) => !filtered.has(name));
    const counting = new Set(countedAs.values());
    const expected = new Set([...names.filter((name) => !counting.has(name)), ...countedAs.keys()]);
    expect(Object.keys(metricPaths).toSorted()).toEqual([...expected].toSorted());
  });

  test.each(Object.entries(metricPaths))(
    '%s is written by the relay as the alarm looks for it',
    async (name, metricPath) => {
      const client = emulatorClient(emulator.endpoint);
      const lines = await linesOf(() => metricPath(client));
      client.destroy();
      const looked = countedAs.get(name) ?? name;
      const written = lines
        .map(metricsOf)
        .filter((metrics) => metrics.some((metric) => metric.name === name && metric.value > 0))
        .flatMap((metrics) => metrics.filter((metric) => metric.name === looked))
        .filter((metric) => Object.keys(metric.dimensions).length === 1);
      expect(written.length).toBeGreaterThan(0);
      const wanted = own.find(({ MetricName }) => MetricName === looked);
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

describe('alarms', () => {
  test('are 20 at most with every option, and look at 61 metrics, which AWS bills', () => {
    expect(all.length).toBeLessThanOrEqual(20);
    const looked = alarms.map(
      (alarm) => new Set(metricsOfAlarm(alarm).map((metric) => JSON.stringify(metric))).size,
    );
    expect(Math.max(...looked)).toBeLessThanOrEqual(10);
    expect(looked.reduce((sum, count) => sum + count, 0)).toBe(61);
    expect(JSON.stringify(alarms)).not.toContain('SEARCH');
  });

  test('say how urgent they are and what to look at, and pages go to a topic of their own', () => {
    const topics = new Map<string, Set<string>>();
    for (const { AlarmDescription, AlarmActions } of alarms) {
      const [, severity = '', text = ''] = /^\[(page|ticket)\] (.*)$/.exec(String(AlarmDescription)) ?? [];
      expect(text.length).toBeGreaterThan(40);
      expect(AlarmActions).toHaveLength(1);
      topics.set(severity, (topics.get(severity) ?? new Set()).add(JSON.stringify(AlarmActions)));
    }
    expect([...topics.values()].map(({ size }) => size)).toEqual([1, 1]);
    expect(new Set([...topics.values()].flatMap((names) => Array.from(names))).size).toBe(2);
  });

  test('all go to one topic without pageEmail', () => {
    const { template: own } = synthesize({ alarmEmail: 'ops@example.com' });
    expect(resourcesOf(own, 'AWS::SNS::Topic')).toHaveLength(1);
    for (const [, { Properties }] of resourcesOf(own, 'AWS::CloudWatch::Alarm'))
      expect(Properties.AlarmActions).toHaveLength(1);
  });

  test('on the sweeper trigger when no run succeeded for ten minutes', () => {
    expect(byId.get('SweeperStopped')).toMatchObject({
      Statistic: 'SampleCount',
      Threshold: 1,
      ComparisonOperator: 'LessThanThreshold',
      Period: 300,
      EvaluationPeriods: 2,
      TreatMissingData: 'breaching',
    });
  });

  test('on the scheduled call trigger when it was not answered for a quarter of an hour, or does not run', () => {
    expect(byId.get('CanaryFailed')).toMatchObject({
      MetricName: 'CanarySuccesses',
      Threshold: 1,
      ComparisonOperator: 'LessThanThreshold',
      Period: 900,
      TreatMissingData: 'breaching',
    });
  });
});

/** The state of an alarm, were these the values of the relay's metrics within its window. */
function triggers(id: string, values: Record<string, number[]>): boolean {
  const cloudWatch = new CloudWatch({ template, versionOf: () => '1' });
  for (const [name, points] of Object.entries(values))
    for (const point of points) cloudWatch.put(keyOf('relay', name, { stack: 'relay' }), point);
  const [logicalId = ''] =
    resourcesOf(template, 'AWS::CloudWatch::Alarm').find(([name]) => name.startsWith(`Alarms${id}`)) ?? [];
  return cloudWatch.triggers(logicalId);
}

const requests = (all: number, failed: number, refused = 0): Record<string, number[]> => ({
  Requests: Array.from({ length: all }, () => 1),
  Failures: Array.from({ length: all }, (_, index) => Number(index < failed)),
  Refusals: Array.from({ length: all }, (_, index) => Number(index >= all - refused)),
});

describe('a burn rate', () => {
  test.each([
    ['AvailabilityPage', requests(1000, 72), true],
    ['AvailabilityPage', requests(1000, 71), false],
    ['AvailabilityPage', requests(19, 19), false],
    ['AvailabilityPage', requests(20, 20), true],
    ['AvailabilityTicket', requests(1000, 15), true],
    ['AvailabilityTicket', requests(1000, 14), false],
    ['AvailabilityTicket', {}, false],
  ])('%s is apart from single failures', (id, values, expected) => {
    expect(triggers(id, values)).toBe(expected);
  });

  test('of availability is not hidden by a flood of refused calls', () => {
    expect(triggers('AvailabilityPage', requests(10_000, 100, 9_000))).toBe(true);
  });

  test('of availability counts calls whose function died, though they write no line', () => {
    const cloudWatch = new CloudWatch({ template, versionOf: () => '1' });
    const [page = ''] =
      resourcesOf(template, 'AWS::CloudWatch::Alarm').find(([id]) =>
        id.startsWith('AlarmsAvailabilityPage'),
      ) ?? [];
    const [chat = ''] =
      resourcesOf(template, 'AWS::Lambda::Function').find(([id]) => id.startsWith('FunctionschatF')) ?? [];
    for (let died = 0; died < 20; died += 1)
      cloudWatch.put(keyOf('AWS/Lambda', 'Errors', { FunctionName: chat }), 1);
    expect(cloudWatch.triggers(page)).toBe(true);
  });

  const answers = (all: number, late: number): Record<string, number[]> => ({
    FirstContentMs: Array.from({ length: all }, (_, index) => (index < late ? 10_001 : 10_000)),
  });

  test.each([
    ['FirstContentPage', answers(100, 72), true],
    ['FirstContentPage', answers(100, 71), false],
    ['FirstContentTicket', answers(100, 15), true],
    ['FirstContentTicket', answers(100, 14), false],
    ['FirstContentTicket', answers(49, 49), false],
  ])('%s is apart from single late answers', (id, values, expected) => {
    expect(triggers(id, values)).toBe(expected);
  });

  test('has the objectives of the option', () => {
    const objectives = { availabilityPercent: 99.9, firstContentPercent: 99, firstContentSeconds: 3 };
    const text = JSON.stringify(
      resourcesOf(synthesize({ objectives }).template, 'AWS::CloudWatch::Alarm').map(
        ([, { Properties }]) => Properties,
      ),
    );
    expect(text).toContain('100 * bad / calls / 0.1,');
    expect(text).toContain('(100 - inTime) / 1,');
    expect(text).toContain('PR(:3000)');
  });
});

/** An alarm's metrics in the words of `alarms-before.json`: resources by the short names of functions. */
function shortMetrics(alarm: Resource['Properties']): string[] {
  return metricsOfAlarm(alarm).map(({ Namespace, MetricName, Dimensions }) => {
    const values = Dimensions.map(({ Value }) => {
      const text = JSON.stringify(Value);
      const [, name] =
        /Functions([a-z]+)Function/.exec(text) ?? /Triggers(\w+?)[0-9A-F]{8}"/.exec(text) ?? [];
      return name ?? String(Value);
    });
    return [Namespace, MetricName, ...values].join(' ');
  });
}

describe('the causes that had alarms of their own', () => {
  const before = JSON.parse(
    readFileSync(path.join(import.meta.dirname, 'alarms-before.json'), 'utf8'),
  ) as Record<string, string[]>;
  /** Cause -> names in the column of alarms. */
  const rows = new Map(
    [...readPage('docs/observability.md').matchAll(/^\| (`.*?`) +\| (.*?`) .*\|$/gm)].flatMap(([line]) => {
      const [causes = '', now = ''] = line.split('|').slice(1);
      return [...causes.matchAll(/`(\w+)`/g)].map(
        ([, cause]) => [cause, [...now.matchAll(/`(\w+)`/g)].map(([, id]) => String(id))] as const,
      );
    }),
  );

  /** What is seen by another metric now: the page says by which. */
  const seenOtherwise = (metric: string): boolean =>
    /^AWS\/Lambda Throttles (config|ledger|grants|sweeper|alerts|notify)$/.test(metric) ||
    /^AWS\/Lambda Url5xxCount (chat|responses)$/.test(metric) ||
    // Only operators write these.
    /^AWS\/DynamoDB WriteThrottleEvents relay-(keys|accounts)$/.test(metric);

  test.each(Object.entries(before))('%s is in an alarm, and the page says in which', (cause, metrics) => {
    const ids = (rows.get(cause) ?? []).filter((id) => byId.has(id));
    expect(ids.length).toBeGreaterThan(0);
    const looked = new Set(ids.flatMap((id) => shortMetrics(byId.get(id) ?? {})));
    const wanted = metrics.map((metric) => {
      const [namespace, name = '', ...dimensions] = metric.split(' ');
      return [namespace, countedAs.get(name) ?? name, ...dimensions].join(' ');
    });
    expect(wanted.filter((metric) => !looked.has(metric) && !seenOtherwise(metric))).toEqual([]);
  });
});
