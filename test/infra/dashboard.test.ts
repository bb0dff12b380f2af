/** Dashboard and saved queries read only what the relay writes, and docs/observability.md names all that they show. */
import { beforeAll, expect, test } from 'vitest';
import {
  outcomes,
  createConfigMetrics,
  createBackgroundMetrics,
} from '../../shared/adapters/telemetry/log.ts';
import { metricNames } from '../../shared/relay/ports/telemetry.ts';
import { linesOf, metricsOf } from '../support/embedded-metrics.ts';
import { readPage } from '../docs/pages.ts';
import { answeredRequest, metricPaths } from './metric-paths.ts';
import { readable, resourcesOf, synthesize } from './synthesize.ts';

interface Widget {
  properties: {
    title?: string;
    query?: string;
    /** Metrics as `[namespace, metric, dimension, value, ..., options]`, or one `{expression}`. */
    metrics?: [string | { expression?: string }, ...unknown[]][];
  };
}

const { template } = synthesize();
const [[, dashboard] = []] = resourcesOf(template, 'AWS::CloudWatch::Dashboard');
const { widgets } = JSON.parse(readable(dashboard?.Properties.DashboardBody)) as { widgets: Widget[] };
const queries = resourcesOf(template, 'AWS::Logs::QueryDefinition').map(([, { Properties }]) => ({
  name: String(Properties.Name),
  text: String(Properties.QueryString),
  parameters: ((Properties.Parameters ?? []) as { Name: string }[]).map(({ Name }) => Name),
}));

/** Metrics that the relay writes: `name dimension dimension`. */
const emitted = new Set<string>();
/** Fields of a request's log line. */
const members = new Set<string>();

beforeAll(async () => {
  const unused = undefined as never;
  const names = 'CallFailed SettleLost ReserveUnknown ImplausibleUsage ChargedAboveReserve InternalErrors';
  const lines = await linesOf(async () => {
    await answeredRequest();
    for (const name of names.split(' ')) await metricPaths[name]?.(unused);
    const reservations = createBackgroundMetrics('relay');
    for (const name of metricNames) reservations.count(name);
    reservations.countSweep({ open: 1, expired: 1 });
    const config = createConfigMetrics('relay');
    config.compiled({ badRows: 1, warnedRows: 1, unpricedModels: 1 });
    config.failed();
  });
  for (const { name, dimensions } of lines.flatMap(metricsOf))
    emitted.add([name, ...Object.keys(dimensions)].join(' '));
  for (const line of lines.filter((each) => each.includes('"message":"request"')))
    for (const member of Object.keys(JSON.parse(line) as object)) members.add(member);
});

/** The relay's own metrics in a widget, in the format of `emitted`. */
const drawnBy = ({ properties }: Widget): string[] =>
  (properties.metrics ?? []).flatMap(([first, name, dimension]) => {
    if (first === 'relay') return `${String(name)} ${String(dimension)}`;
    const { expression = '' } = typeof first === 'string' ? {} : first;
    const search = /\{relay,([\w,]+)\} MetricName="(\w+)" stack="relay"/.exec(expression);
    return search ? `${search[2]} ${String(search[1]).replaceAll(',', ' ')}` : [];
  });
const drawn = new Set(widgets.flatMap(drawnBy));

test('the dashboard draws only metrics that the relay writes', () => {
  expect([...drawn].filter((metric) => !emitted.has(metric))).toEqual([]);
  for (const metric of ['Requests stack channel outcome', 'FirstContentMs stack channel', 'ChargeYuan stack'])
    expect(drawn).toContain(metric);
});

test('the dashboard counts each way in which a request can end', () => {
  const text = JSON.stringify(widgets.find(({ properties }) => properties.title === 'Requests by outcome'));
  const counted = [...text.matchAll(/outcome=\\+"(\w+)\\+"/g)].map(([, outcome]) => outcome);
  expect(counted).toEqual(outcomes);
});

test('the dashboard draws at most 50 metrics by name, the limit of a free one', () => {
  const named = widgets
    .flatMap(({ properties }) => properties.metrics ?? [])
    .filter(([first]) => typeof first === 'string')
    .map((entry) => JSON.stringify(entry.filter((part) => typeof part === 'string')));
  expect(new Set(named).size).toBeGreaterThan(30);
  expect(new Set(named).size).toBeLessThanOrEqual(50);
});

/** Keywords of Logs Insights. */
const words = new Set(
  'and as asc avg bin by count desc fields filter in ispresent limit m or pct sort stats sum'.split(' '),
);

test('queries of requests use fields of their log lines, and declare their parameters', () => {
  const ofWidgets = widgets.flatMap(({ properties: { query = '' } }) => query);
  const texts = [...queries.map(({ text }) => text), ...ofWidgets].filter((text) =>
    text.includes('message = "request"'),
  );
  expect(texts.length).toBeGreaterThan(6);
  for (const text of texts) {
    const bare = text.replaceAll(/"[^"]*"|^SOURCE .*$/gm, '').replaceAll(/\d+m\b|SOURCE [^|]*/g, '');
    const aliases = new Set([...bare.matchAll(/ as (\w+)/g)].map(([, alias]) => alias));
    const named = bare.match(/(?<!@)\b[A-Za-z]\w*/g) ?? [];
    const unknown = named.filter((name) => !members.has(name) && !words.has(name) && !aliases.has(name));
    expect(unknown).toEqual([]);
  }
  for (const { text, parameters } of queries)
    expect([...new Set([...text.matchAll(/"\{\{(\w+)\}\}"/g)].map(([, name]) => name))]).toEqual(parameters);
});

test('docs/observability.md names every alarm, every metric, every field of a request’s line, and every query', () => {
  const page = readPage('docs/observability.md');
  const inCode = new Set([...page.matchAll(/`(\w+)`/g)].map(([, word]) => String(word)));
  const alarms = resourcesOf(template, 'AWS::CloudWatch::Alarm').map(
    ([id]) => /^Alarms(\w+)[0-9A-F]{8}$/.exec(id)?.[1] ?? id,
  );
  const always = new Set(['level', 'message', 'timestamp', 'service', 'version', '_aws']);
  const metrics = [...drawn, ...emitted].map((metric) => metric.split(' ')[0] ?? '');
  const all = [...alarms, ...metrics, ...[...members].filter((name) => !always.has(name))];
  expect(all.filter((name) => !inCode.has(name))).toEqual([]);
  const listed = page.split('**Saved queries**')[1];
  for (const { name } of queries) expect(listed).toContain(name.replace('relay/', ''));
});
