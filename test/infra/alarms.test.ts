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

const everyOption = {
  alarmEmail: 'ops@example.com',
  pageEmail: 'night@example.com',
  canary: { model: 'demo', key: 'ssm:/relay/relay/canary' },
  region: 'us-east-1',
  edgeAlarms: true,
};
const { template } = synthesize(everyOption);
/** The usual deployment. */
const plain = synthesize().template;
const all = resourcesOf(template, 'AWS::CloudWatch::Alarm');
/** test/infra/edge.test.ts covers the alarm at the edge, which watches CloudFront. */
const byId = new Map(
  all
    .filter(([id]) => id.startsWith('Alarms'))
    .map(([id, { Properties }]) => [/^Alarms(\w+)[0-9A-F]{8}$/.exec(id)?.[1] ?? id, Properties]),
);
const alarms = [...byId.values()];

/** The metrics of an alarm: several if it uses an expression. */
function metricsOfAlarm(alarm: Resource['Properties']): AlarmMetric[] {
  if (alarm.MetricName !== undefined) return [alarm as unknown as AlarmMetric];
  const parts = alarm.Metrics as { MetricStat?: { Metric: AlarmMetric } }[];
  return parts.flatMap(({ MetricStat }) => MetricStat?.Metric ?? []);
}

const own = alarms.flatMap(metricsOfAlarm).filter(({ Namespace }) => Namespace === 'relay');

/** Events without their own alarm, by the metric that also counts them. */
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
      'ExpiredReservations',
      'AlertUndelivered',
      'PaymentParked',
      'ConfigCompileFailed',
    ],
    Oddities: ['TurnStateLost', 'ImplausibleUsage', 'ConfigFormatUnknown', 'ResponsesNotStored'],
  }).flatMap(([metric, events]) => events.map((event) => [event, metric] as const)),
);
/** Metric filters derive these from log lines; test/rollout runs them. */
const filtered = new Set(['VersionCalls', 'VersionFailures']);

describe('the metrics of alarms', () => {
  let emulator: Emulator;

  beforeAll(async () => {
    emulator = await startEmulator();
    setFunctionEnvironment(emulator.endpoint);
  });
  afterAll(() => emulator.stop());

  test('are all emitted by code that this file runs, and the table lists no others', () => {
    const names = own.map(({ MetricName }) => MetricName).filter((name) => !filtered.has(name));
    const counting = new Set(countedAs.values());
    const expected = new Set([...names.filter((name) => !counting.has(name)), ...countedAs.keys()]);
    expect(Object.keys(metricPaths).toSorted()).toEqual([...expected].toSorted());
  });

  test.each(Object.entries(metricPaths))(
    'the relay writes %s with the name and dimensions that the alarm reads',
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
  /** AWS bills each metric of an expression; two statistics of one metric count as two. */
  const billed = ({ Properties }: Resource): number =>
    Properties.MetricName !== undefined
      ? 1
      : (Properties.Metrics as { MetricStat?: object }[]).filter(({ MetricStat }) => MetricStat).length;
  const billedOf = (alarms: [string, Resource][]): number =>
    alarms.reduce((sum, [, alarm]) => sum + billed(alarm), 0);

  test('each read at most 10 metrics, the limit of an alarm, and use no SEARCH', () => {
    expect(Math.max(...all.map(([, alarm]) => billed(alarm)))).toBeLessThanOrEqual(10);
    expect(JSON.stringify(alarms)).not.toContain('SEARCH');
  });

  test('on the scheduled call and on the edge use one metric each: AWS bills an alarm by its metrics', () => {
    expect(billedOf(all)).toBe(billedOf(resourcesOf(plain, 'AWS::CloudWatch::Alarm')) + 2);
  });

  test('name their urgency and the first thing to check, and pages use their own topic', () => {
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
});
