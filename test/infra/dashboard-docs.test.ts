/** docs/observability.md names whatever an operator may meet. */
import { expect, test } from 'vitest';
import { linesOf, metricsOf } from '../support/embedded-metrics.ts';
import { readPage } from '../docs/pages.ts';
import { dashboardOf } from './dashboard-body.ts';
import { answeredRequest, metricPaths } from './metric-paths.ts';
import { resourcesOf, synthesize } from './synthesize.ts';

const page = readPage('docs/observability.md');
const { template } = synthesize();
const inCode = new Set([...page.matchAll(/`(\w+)`/g)].map(([, word]) => String(word)));

const lines = await linesOf(async () => {
  await answeredRequest();
  await metricPaths['CallFailed']?.(undefined as never);
});

test('every alarm is there, with what to do', () => {
  const ids = resourcesOf(template, 'AWS::CloudWatch::Alarm').map(
    ([id]) => /^Alarms(\w+)[0-9A-F]{8}$/.exec(id)?.[1] ?? id,
  );
  expect(ids.filter((id) => !inCode.has(id))).toEqual([]);
});

test('every metric that is drawn is there', () => {
  const drawn = [
    ...JSON.stringify(dashboardOf(template)).matchAll(/"relay","(\w+)","stack"|MetricName=\\+"(\w+)/g),
  ].map(([, plain, searched]) => plain ?? searched ?? '');
  expect(drawn.length).toBeGreaterThan(20);
  expect(drawn.filter((name) => !inCode.has(name))).toEqual([]);
});

test('every metric and every field of a request’s line is there', () => {
  const written = lines.filter((line) => line.includes('"message":"request"'));
  expect(written).toHaveLength(2);
  const always = new Set(['level', 'message', 'timestamp', 'service', 'version']);
  for (const line of written) {
    for (const { name } of metricsOf(line)) expect(inCode).toContain(name);
    const fields = Object.keys(JSON.parse(line) as object).filter((name) => !always.has(name));
    expect(fields.filter((name) => !inCode.has(name))).toEqual([]);
  }
});

test('every saved query is there', () => {
  const firstCells = new Set([...page.matchAll(/^(?:\| |- )(.*?)(?: +\||: | — )/gm)].map(([, cell]) => cell));
  for (const [, { Properties }] of resourcesOf(template, 'AWS::Logs::QueryDefinition'))
    expect(firstCells).toContain(String(Properties.Name).replace('relay/', ''));
});
