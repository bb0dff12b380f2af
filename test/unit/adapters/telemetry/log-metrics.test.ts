import { describe, expect, test } from 'vitest';
import {
  createConfigMetrics,
  outcomeOf,
  createRequestMetrics,
  createBackgroundMetrics,
  createJsonLog,
} from '../../../../shared/adapters/telemetry/log.ts';
import type { RequestLog } from '../../../../shared/relay/ports/telemetry.ts';
import { linesOf, metricsOf, type MetricValue } from '../../../support/embedded-metrics.ts';

const answered: RequestLog = {
  request_id: 'id-1',
  endpoint: 'chat',
  status: 200,
  end: 'completed',
  duration_ms: 900,
  key_hint: 'sk-...abc',
  account: 'acme',
  model: 'gpt-4o',
  channel: 'second',
  attempts: [
    { channel: 'first', outcome: 'upstream_status_500' },
    { channel: 'second', outcome: 'answered' },
  ],
  first_content_ms: 250,
  prompt_tokens: 10,
  completion_tokens: 20,
  usage_estimated: false,
  charge: '0.000050001',
};
const refused: RequestLog = {
  request_id: 'id-2',
  endpoint: 'chat',
  status: 401,
  end: 'refused',
  duration_ms: 3,
  code: 'invalid_api_key',
};

async function lineOf(entry: RequestLog): Promise<string> {
  const lines = await linesOf(() =>
    createJsonLog('1.2.3', createRequestMetrics('relay-beta')).request(entry),
  );
  expect(lines).toHaveLength(1);
  return lines[0] ?? '';
}

const named = (values: MetricValue[]): Record<string, number> =>
  Object.fromEntries(values.map(({ name, value }) => [name, value]));

const byDimensions = (values: MetricValue[], ...names: string[]): MetricValue[] =>
  values.filter(({ dimensions }) => Object.keys(dimensions).join() === names.join());

describe('the line of a request', () => {
  test('contains the request and its metrics', async () => {
    const line = await lineOf(answered);
    const { first_content_ms: _first, charge: _charge, end: _end, ...said } = answered;
    expect(JSON.parse(line)).toMatchObject({ level: 'INFO', message: 'request', ...said });
    const values = metricsOf(line);
    expect(named(byDimensions(values, 'stack'))).toEqual({
      Requests: 1,
      CallFailed: 0,
      FailedAttempts: 1,
      FirstContentMs: 250,
      ChargeYuan: 0.000050001,
    });
    expect(byDimensions(values, 'stack', 'channel', 'outcome')).toMatchObject([
      { name: 'Requests', value: 1, dimensions: { channel: 'second', outcome: 'completed' } },
    ]);
    expect(byDimensions(values, 'stack', 'channel')).toMatchObject([
      { name: 'FirstContentMs', value: 250, unit: 'Milliseconds', dimensions: { channel: 'second' } },
    ]);
    expect(new Set(values.map(({ namespace }) => namespace))).toEqual(new Set(['relay']));
    expect(Math.abs(Date.now() - Number(values[0]?.atMs))).toBeLessThan(60_000);
  });

  test('repeats nothing, and omits the defaults of an uneventful answer', async () => {
    const attempts = [{ channel: 'second', outcome: 'answered' }];
    const plain = await lineOf({ ...answered, attempts, upstream_status: 200 });
    const members = Object.keys(JSON.parse(plain) as object);
    expect(
      members.filter((name) => /^(end|attempts|upstream_status|charge|first_content_ms)$/.test(name)),
    ).toEqual([]);
    const { first_content_ms: _first, charge: _charge, ...rest } = answered;
    const failed = {
      ...rest,
      status: 502,
      end: 'failed',
      upstream_status: 500,
      code: 'upstream_unavailable',
    };
    expect(JSON.parse(await lineOf(failed))).toMatchObject({ outcome: 'failed', upstream_status: 500 });
    const cut = { ...answered, end: 'failed', code: 'context_length_exceeded' };
    expect(JSON.parse(await lineOf(cut))).toMatchObject({ outcome: 'refused', end: 'failed' });
  });

  test("has a single zero metric for a successful call, so that the metric's count is the number of calls", async () => {
    const outcomesOf = async (entry: Partial<RequestLog>) =>
      Object.keys(named(metricsOf(await lineOf({ ...refused, code: undefined, ...entry }))));
    expect(await outcomesOf({ end: 'completed', status: 200 })).toEqual(['Requests', 'CallFailed']);
    expect(await outcomesOf({ end: 'failed', status: 500, code: 'internal' })).toEqual([
      'Requests',
      'Failures',
      'CallFailed',
      'InternalErrors',
      'NeedsAPerson',
    ]);
    expect(await outcomesOf({ end: 'completed', status: 200, usage_estimated: true })).toEqual([
      'Requests',
      'CallFailed',
      'EstimatedUsage',
    ]);
  });

  test.each<[number | undefined, Partial<RequestLog>]>([
    [0, { end: 'completed', status: 200 }],
    [0, { end: 'client_gone', status: 200 }],
    [1, { end: 'failed', status: 502, code: 'upstream_unavailable' }],
    [1, { end: 'failed', status: 200, code: 'upstream_unavailable' }],
    [1, { end: 'failed', status: 429, code: 'rate_limit_exceeded', reason: 'all_channels_cooling' }],
    [undefined, { end: 'refused', status: 401, code: 'invalid_api_key' }],
    [undefined, { end: 'refused', status: 429, code: 'rate_limit_exceeded', reason: 'limit_rate' }],
  ])('counts %s for the availability of %j', async (failed, entry) => {
    const values = metricsOf(await lineOf({ ...refused, code: undefined, ...entry }));
    expect(values.find(({ name }) => name === 'CallFailed')?.value).toBe(failed);
  });

  test('never uses an account, a key or a model as a dimension', async () => {
    for (const entry of [answered, refused]) {
      const text = JSON.stringify(metricsOf(await lineOf(entry)));
      for (const value of ['acme', 'sk-...abc', 'gpt-4o', 'id-1']) expect(text).not.toContain(value);
    }
  });
});

test.each<[string, Partial<RequestLog>]>([
  ['completed', { end: 'completed', status: 200 }],
  ['client_gone', { end: 'client_gone', status: 200 }],
  ['refused', { end: 'refused', status: 403, code: 'relay_closed' }],
  ['refused', { end: 'refused', status: 429, code: 'insufficient_quota' }],
  ['refused', { end: 'refused', status: 429, code: 'rate_limit_exceeded', reason: 'limit_rate' }],
  ['refused', { end: 'failed', status: 400, code: 'context_length_exceeded' }],
  ['refused', { end: 'failed', status: 200, code: 'context_length_exceeded' }],
  ['limited', { end: 'failed', status: 429, code: 'rate_limit_exceeded', reason: 'all_channels_cooling' }],
  ['limited', { end: 'failed', status: 200, code: 'rate_limit_exceeded', reason: 'upstream_status_429' }],
  ['failed', { end: 'refused', status: 503, code: 'unavailable' }],
  ['failed', { end: 'failed', status: 502, code: 'upstream_unavailable' }],
  ['failed', { end: 'failed', status: 200, code: 'upstream_unavailable' }],
  ['failed', { end: 'failed', status: 200, code: 'internal' }],
])('a request counts as %s when it is %j', (outcome, entry) => {
  expect(outcomeOf({ ...refused, code: undefined, ...entry })).toBe(outcome);
});

test('an event that needs a person is a metric too, and any other event only a line', async () => {
  const log = createJsonLog('1.2.3', createRequestMetrics('relay-beta'));
  const [lost = '', late = ''] = await linesOf(() => {
    log.event('settle_lost', { request_id: 'id-3', charge_nano: 5n });
    log.event('settle_late', { request_id: 'id-4' });
  });
  expect(JSON.parse(lost)).toMatchObject({ level: 'WARN', message: 'settle_lost', charge_nano: '5' });
  expect(metricsOf(lost)).toMatchObject([
    { name: 'SettleLost', value: 1, unit: 'Count', dimensions: { stack: 'relay-beta' } },
    { name: 'MoneyWrong', value: 1, dimensions: { stack: 'relay-beta' } },
  ]);
  expect(metricsOf(late)).toEqual([]);
});

test('oddities count one each, and an unknown configuration format counts as ten', async () => {
  const log = createJsonLog('1.2.3', createRequestMetrics('relay-beta'));
  const lines = await linesOf(() => {
    log.event('turn_state_lost', {});
    log.event('config_format_unknown', {});
    log.request({ ...answered, usage_implausible: true });
  });
  const oddities = lines.map((line) => metricsOf(line).filter(({ name }) => name === 'Oddities'));
  expect(oddities).toMatchObject([1, 10, 1].map((value) => [{ value, dimensions: { stack: 'relay-beta' } }]));
});

test('the background jobs of money and configuration each write their count as a metric of the stack', async () => {
  const reservations = createBackgroundMetrics('relay-beta');
  const config = createConfigMetrics('relay-beta');
  const lines = await linesOf(() => {
    reservations.count('ConservationBroken');
    reservations.countSweep({ open: 3, expired: 1 });
    config.compiled({ badRows: 2, warnedRows: 0, unpricedModels: 4 });
    config.badRows(1);
    config.failed();
    // Idle.
    reservations.countSweep({ open: 0, expired: 0 });
    config.compiled({ badRows: 0, warnedRows: 0, unpricedModels: 0 });
  });
  expect(lines).toHaveLength(7);
  const values = lines.flatMap(metricsOf);
  expect(values.map(({ name, value }) => [name, value])).toEqual([
    ['ConservationBroken', 1],
    ['MoneyWrong', 1],
    ['OpenReservations', 3],
    ['ExpiredReservations', 1],
    ['NeedsAPerson', 1],
    // Models without a price need an edit, like rows with a problem.
    ['BadRows', 6],
    ['UnpricedModels', 4],
    ['BadRows', 1],
    ['ConfigCompileFailed', 1],
    ['NeedsAPerson', 1],
    // Zero is a metric only for alarms, because each metric costs money.
    ['OpenReservations', 0],
    ['BadRows', 0],
  ]);
  for (const value of values)
    expect(value).toMatchObject({ namespace: 'relay', unit: 'Count', dimensions: { stack: 'relay-beta' } });
});
