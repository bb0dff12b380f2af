/** Evaluates the stack's alarms on a double of CloudWatch that receives the metrics. */
import { describe, expect, test } from 'vitest';
import { answeringFunctions } from '../../infra/stack/constructs/function-descriptions.ts';
import { createJsonLog, createRequestMetrics } from '../../shared/adapters/telemetry/log.ts';
import { linesOf } from '../support/embedded-metrics.ts';
import { CloudWatch, keyOf } from '../rollout/cloud-watch.ts';
import { resourcesOf, synthesize } from './synthesize.ts';

const { template } = synthesize();

/** The logical id of an alarm or a function in the template. */
function logicalId(type: string, start: string): string {
  const found = resourcesOf(template, type).find(([name]) => name.startsWith(start));
  return found?.[0] ?? '';
}
const nameOfAlarm = (id: string): string => /^Alarms(\w+)[0-9A-F]{8}$/.exec(id)?.[1] ?? id;
const alarmId = (id: string): string => logicalId('AWS::CloudWatch::Alarm', `Alarms${id}`);

/** Whether the alarm triggers on these values of the relay's metrics within its window. */
function triggers(id: string, values: Record<string, number[]>): boolean {
  const cloudWatch = new CloudWatch({ template, versionOf: () => '1' });
  putAll(cloudWatch, values);
  return cloudWatch.triggers(alarmId(id));
}

function putAll(cloudWatch: CloudWatch, values: Record<string, number[]>): void {
  for (const [name, points] of Object.entries(values))
    for (const point of points) cloudWatch.put(keyOf('relay', name, { stack: 'relay' }), point);
}

/** Puts a Lambda metric this many times. */
function putLambda(cloudWatch: CloudWatch, name: string, metric: string, times: number): void {
  const FunctionName = logicalId('AWS::Lambda::Function', `Functions${name}F`);
  for (let time = 0; time < times; time += 1)
    cloudWatch.put(keyOf('AWS/Lambda', metric, { FunctionName }), 1);
}

const calls = (all: number, failed: number): Record<string, number[]> => ({
  CallFailed: Array.from({ length: all }, (_, index) => Number(index < failed)),
});

describe('the alarm on rows', () => {
  test('triggers when one of three runs of function config finds an invalid row', () => {
    const schedule = resourcesOf(template, 'AWS::Events::Rule').find(([id]) => id.includes('config'));
    expect(schedule?.[1].Properties).toMatchObject({ ScheduleExpression: 'rate(5 minutes)' });
    expect(triggers('BadRows', { BadRows: [0, 0, 0] })).toBe(false);
    expect(triggers('BadRows', { BadRows: [0, 1, 0] })).toBe(true);
    const { Properties } = template.Resources[alarmId('BadRows')] ?? {};
    expect(Properties).toMatchObject({ Period: 900, EvaluationPeriods: 1 });
  });
});

describe('a burn rate', () => {
  test.each([
    ['AvailabilityPage', calls(1000, 72), true],
    ['AvailabilityPage', calls(1000, 71), false],
    ['AvailabilityPage', calls(19, 19), false],
    ['AvailabilityPage', calls(20, 20), true],
    ['AvailabilityPage', {}, false],
    ['AvailabilityTicket', calls(1000, 15), true],
    ['AvailabilityTicket', calls(1000, 14), false],
    ['AvailabilityTicket', calls(49, 49), false],
    ['AvailabilityTicket', {}, false],
  ])('%s does not trigger on single failures', (id, values, expected) => {
    expect(triggers(id, values)).toBe(expected);
  });

  test('of availability is not hidden by a flood of refused calls', async () => {
    const log = createJsonLog('test', createRequestMetrics('relay'));
    const ended = { request_id: 'id', endpoint: 'chat', duration_ms: 1 };
    const lines = await linesOf(() => {
      for (let call = 0; call < 100; call += 1)
        log.request({ ...ended, status: call < 8 ? 502 : 200, end: call < 8 ? 'failed' : 'completed' });
      for (let call = 0; call < 10_000; call += 1)
        log.request({ ...ended, status: 401, end: 'refused', code: 'invalid_api_key' });
    });
    const cloudWatch = new CloudWatch({ template, versionOf: () => '1' });
    for (const line of lines) cloudWatch.line('', line);
    expect(cloudWatch.triggers(alarmId('AvailabilityPage'))).toBe(true);
  });

  test('of availability does not mistake failures of the previous version for all of its calls', () => {
    expect(triggers('AvailabilityPage', { ...calls(100, 1), Failures: Array(50).fill(1) as number[] })).toBe(
      false,
    );
  });

  test.each(answeringFunctions)(
    'of availability counts calls whose function %s died, though they write no log line',
    (name) => {
      const cloudWatch = new CloudWatch({ template, versionOf: () => '1' });
      putLambda(cloudWatch, name, 'Errors', 20);
      expect(cloudWatch.triggers(alarmId('AvailabilityPage'))).toBe(true);
      putAll(cloudWatch, calls(1000, 0));
      expect(cloudWatch.triggers(alarmId('AvailabilityPage'))).toBe(false);
    },
  );

  const answers = (all: number, late: number): Record<string, number[]> => ({
    FirstContentMs: Array.from({ length: all }, (_, index) => (index < late ? 10_001 : 9_999)),
  });

  test.each([
    ['FirstContentPage', answers(1000, 722), true],
    ['FirstContentPage', answers(1000, 718), false],
    ['FirstContentPage', answers(35, 35), false],
    ['FirstContentPage', answers(36, 36), true],
    ['FirstContentTicket', answers(1000, 152), true],
    ['FirstContentTicket', answers(1000, 148), false],
    ['FirstContentTicket', answers(66, 66), false],
    ['FirstContentTicket', answers(67, 67), true],
    ['FirstContentTicket', {}, false],
  ])('%s does not trigger on single late answers', (id, values, expected) => {
    expect(triggers(id, values)).toBe(expected);
  });

  test('of the first content keeps its state while answers are few, and clears without answers', () => {
    const cloudWatch = new CloudWatch({ template, versionOf: () => '1' });
    putAll(cloudWatch, answers(100, 100));
    expect(cloudWatch.triggers(alarmId('FirstContentPage'))).toBe(true);
    cloudWatch.minute += 60;
    putAll(cloudWatch, answers(3, 0));
    expect(cloudWatch.triggers(alarmId('FirstContentPage'))).toBe(true);
    cloudWatch.minute += 60;
    expect(cloudWatch.triggers(alarmId('FirstContentPage'))).toBe(false);
  });

  test('uses the objectives of the option', () => {
    const objectives = { availabilityPercent: 99.9, firstContentPercent: 99.9, firstContentSeconds: 3 };
    const found = new Map(
      resourcesOf(synthesize({ objectives }).template, 'AWS::CloudWatch::Alarm').map(
        ([id, { Properties }]) => [nameOfAlarm(id), Properties],
      ),
    );
    expect(found.get('AvailabilityPage')?.Threshold).toBe(1.44);
    expect(found.get('AvailabilityTicket')?.Threshold).toBe(0.3);
    expect(found.get('FirstContentPage')).toMatchObject({ ExtendedStatistic: 'p98.56', Threshold: 3000 });
    expect(found.get('FirstContentTicket')).toMatchObject({ ExtendedStatistic: 'p99.7', Threshold: 3000 });
  });
});

describe('an alarm on the runs of a schedule', () => {
  const { template: withCanary } = synthesize({
    canary: { model: 'm', key: 'ssm:/relay/relay/canary/key' },
    alarmEmail: 'a@example.com',
    pageEmail: 'b@example.com',
  });
  const byName = new Map(
    resourcesOf(withCanary, 'AWS::CloudWatch::Alarm').flatMap(([id, { Properties }]) =>
      Properties['TreatMissingData'] === 'missing' ? [[nameOfAlarm(id), { id, Properties }] as const] : [],
    ),
  );
  const runs = { SweeperStopped: 'OpenReservations', BadRows: 'BadRows', CanaryFailed: 'CanarySuccesses' };

  test('exists for each schedule whose failure shows only as missing runs', () => {
    expect([...byName.keys()].toSorted()).toEqual(Object.keys(runs).toSorted());
  });

  test.each(Object.entries(runs))(
    '%s does not trigger before the first run of a new stack, but does when runs stop',
    (name, metric) => {
      const { id = '', Properties = {} } = byName.get(name) ?? {};
      expect(Properties['InsufficientDataActions']).toEqual(Properties['AlarmActions']);
      expect(Properties['AlarmActions']).toHaveLength(1);
      const cloudWatch = new CloudWatch({ template: withCanary, versionOf: () => '1' });
      expect(cloudWatch.triggers(id)).toBe(false);
      putAll(cloudWatch, { [metric]: [name === 'BadRows' ? 0 : 1] });
      expect(cloudWatch.triggers(id)).toBe(false);
      cloudWatch.minute += 15;
      expect(cloudWatch.triggers(id)).toBe(true);
    },
  );
});

describe('failures of functions that do not answer model calls', () => {
  test.each([
    ['catalog', 5, true],
    ['catalog', 4, false],
    ['payments', 1, true],
  ])('of %s, %i within an hour: %s', (name, times, expected) => {
    const cloudWatch = new CloudWatch({ template, versionOf: () => '1' });
    putLambda(cloudWatch, name, 'Url5xxCount', times);
    cloudWatch.minute += 59;
    expect(cloudWatch.triggers(alarmId('ServerErrors'))).toBe(expected);
  });

  test.each(['grants', 'alerts', 'notify'])('of %s each open a ticket', (name) => {
    const cloudWatch = new CloudWatch({ template, versionOf: () => '1' });
    expect(cloudWatch.triggers(alarmId('FunctionErrors'))).toBe(false);
    putLambda(cloudWatch, name, 'Errors', 1);
    expect(cloudWatch.triggers(alarmId('FunctionErrors'))).toBe(true);
  });
});

describe('a new version of a function whose log lines are not counted', () => {
  /** @param minutes runs and errors of consecutive minutes */
  function rolledBack(name: string, minutes: { runs: number; errors: number }[]): boolean {
    const cloudWatch = new CloudWatch({ template, versionOf: () => '7' });
    const FunctionName = logicalId('AWS::Lambda::Function', `Functions${name}F`);
    const dimensions = { FunctionName, Resource: `${FunctionName}:live`, ExecutedVersion: '7' };
    return minutes.some(({ runs, errors }) => {
      cloudWatch.minute += 1;
      for (let run = 0; run < runs; run += 1)
        cloudWatch.put(keyOf('AWS/Lambda', 'Errors', dimensions), Number(run < errors));
      return cloudWatch.triggers(alarmId(`${name}NewVersion`));
    });
  }
  const times = (count: number, minute: { runs: number; errors: number }) =>
    Array.from({ length: count }, () => minute);

  test.each(['catalog', 'payments'])('%s is rolled back when it fails in three of five minutes', (name) => {
    expect(rolledBack(name, times(3, { runs: 1, errors: 1 }))).toBe(true);
    expect(rolledBack(name, times(3, { runs: 100, errors: 10 }))).toBe(true);
  });

  test.each(['ledger', 'grants', 'sweeper', 'config'])(
    '%s is rolled back when it fails in two of five minutes, or when money is wrong, but not for one failure',
    (name) => {
      const silent = times(3, { runs: 0, errors: 0 });
      const failing = { runs: 1, errors: 1 };
      expect(rolledBack(name, [failing, ...silent, failing])).toBe(true);
      expect(rolledBack(name, [failing, ...silent, ...silent])).toBe(false);
      const group = resourcesOf(template, 'AWS::CodeDeploy::DeploymentGroup').find(([id]) =>
        id.startsWith(`Shift${name}`),
      );
      expect(JSON.stringify(group?.[1].Properties['AlarmConfiguration'])).toContain(alarmId('MoneyWrong'));
    },
  );

  test('is not rolled back for one out-of-memory run, for a few failures of many runs, or without runs', () => {
    const well = { runs: 1, errors: 0 };
    expect(rolledBack('catalog', [{ runs: 1, errors: 1 }, ...times(9, well)])).toBe(false);
    expect(rolledBack('catalog', times(10, { runs: 1000, errors: 5 }))).toBe(false);
    expect(rolledBack('catalog', times(10, { runs: 0, errors: 0 }))).toBe(false);
  });
});
