import { beforeAll, describe, expect, test } from 'vitest';
import { outcomes, configMetrics, backgroundMetrics } from '../../shared/adapters/telemetry/log.ts';
import { metricNames } from '../../shared/relay/ports/telemetry.ts';
import { linesOf, metricsOf } from '../support/embedded-metrics.ts';
import { dashboardOf, type Widget } from './dashboard-body.ts';
import { answeredRequest, metricPaths } from './metric-paths.ts';
import { readable, resourcesOf, synthesize } from './synthesize.ts';

const { template } = synthesize();
const widgets = dashboardOf(template);

/** Metrics that the relay's code writes: `name dimension dimension`. */
const emitted = new Set<string>();
/** Members of the line of a request. */
const members = new Set<string>();

beforeAll(async () => {
  const lines = await linesOf(async () => {
    await answeredRequest();
    for (const name of [
      'CallFailed',
      'SettleLost',
      'ReserveUnknown',
      'ImplausibleUsage',
      'ChargedAboveReserve',
      'InternalErrors',
    ])
      await metricPaths[name]?.(undefined as never);
    const reservations = backgroundMetrics('relay');
    for (const name of metricNames) reservations.count(name);
    reservations.swept({ open: 1, expired: 1 });
    const config = configMetrics('relay');
    config.compiled({ badRows: 1, warnedRows: 1, unpricedModels: 1 });
    config.failed();
  });
  for (const { name, dimensions } of lines.flatMap(metricsOf))
    emitted.add([name, ...Object.keys(dimensions)].join(' '));
  for (const line of lines) for (const member of Object.keys(JSON.parse(line) as object)) members.add(member);
});

/** What a widget draws of the relay's own metrics, in the words of `emitted`. */
function drawnBy({ properties }: Widget): string[] {
  return (properties.metrics ?? []).flatMap((entry) => {
    const [first] = entry;
    if (first === 'relay') return `${String(entry[1])} ${String(entry[2])}`;
    const search = /\{relay,([\w,]+)\} MetricName="(\w+)" stack="relay"/.exec(
      (first as { expression?: string }).expression ?? '',
    );
    return search ? `${search[2]} ${String(search[1]).replaceAll(',', ' ')}` : [];
  });
}

describe('the dashboard', () => {
  test('is one page with the stack’s name, and its region, as an account has the name once', () => {
    const names = resourcesOf(template, 'AWS::CloudWatch::Dashboard').map(([, { Properties }]) =>
      readable(Properties.DashboardName),
    );
    expect(names).toEqual(['relay-<AWS::Region>']);
  });

  test('draws nothing that the relay does not write', () => {
    const drawn = new Set(widgets.flatMap(drawnBy));
    expect([...drawn].filter((metric) => !emitted.has(metric))).toEqual([]);
    for (const metric of [
      'Requests stack channel outcome',
      'FirstContentMs stack channel',
      'ChargeYuan stack',
    ])
      expect(drawn).toContain(metric);
  });

  test.each([
    'Requests by outcome',
    'Failed requests and attempts',
    'Time to first content by channel, p50 (ms)',
    'Time to first content by channel, p95 (ms)',
    'Revenue (yuan)',
    'Share of answers with estimated usage',
    'Open reservations',
    'Money: anything above zero needs a person',
    'Rows that operators edit',
    'Throttled calls of functions',
    'Throttled calls of tables',
    'Age of streams (ms)',
  ])('has %s', (title) => {
    const widget = widgets.find(({ properties }) => properties.title === title);
    expect(widget?.properties.metrics?.length).toBeGreaterThan(0);
  });

  test('counts each way in which a request can end', () => {
    const text = JSON.stringify(widgets.find(({ properties }) => properties.title === 'Requests by outcome'));
    const counted = [...text.matchAll(/outcome=\\+"(\w+)\\+"/g)].map(([, outcome]) => outcome);
    expect(counted).toEqual(outcomes);
  });

  test('draws at most 50 metrics by name, as AWS asks of a dashboard that is free', () => {
    const drawn = new Set<string>();
    for (const { properties } of widgets)
      for (const entry of properties.metrics ?? [])
        if (typeof entry[0] === 'string')
          drawn.add(JSON.stringify(entry.filter((part) => typeof part === 'string')));
    expect(drawn.size).toBeGreaterThan(30);
    expect(drawn.size).toBeLessThanOrEqual(50);
  });

  test('reads tokens from the lines of requests, where they are', () => {
    const tokens = widgets.find(({ properties }) => properties.title === 'Tokens');
    const { query = '' } = (tokens?.properties ?? {}) as { query?: string };
    for (const [, field] of query.matchAll(/sum\((\w+)\)/g)) expect(members).toContain(field);
    expect(query).toContain('sum(prompt_tokens)');
    expect(query).toContain('message = "request"');
  });

  test('shows the state of every alarm', () => {
    const shown = widgets.flatMap(({ properties }) => properties.alarms ?? []);
    expect(shown).toHaveLength(resourcesOf(template, 'AWS::CloudWatch::Alarm').length);
  });
});

/** Of the language of Logs Insights. */
const words = new Set(
  'and as asc avg by count desc fields filter in ispresent limit or pct sort stats sum'.split(' '),
);

describe('saved queries', () => {
  const queries = resourcesOf(template, 'AWS::Logs::QueryDefinition').map(([, { Properties }]) => ({
    name: String(Properties.Name),
    text: String(Properties.QueryString),
    parameters: ((Properties.Parameters ?? []) as { Name: string }[]).map(({ Name }) => Name),
    groups: (Properties.LogGroupNames as unknown[]).map(readable),
  }));

  test.each(queries.map((query) => [query.name, query] as const))(
    '%s asks for what there is',
    (name, query) => {
      expect(name).toMatch(/^relay\/[A-Z]/);
      expect(query.groups.length).toBeGreaterThan(0);
      for (const group of query.groups) expect(group).toMatch(/^<Functions[a-z]+Logs\w+>$/);
      const asked = [...query.text.matchAll(/"\{\{(\w+)\}\}"/g)].map(([, parameter]) => parameter);
      expect([...new Set(asked)]).toEqual(query.parameters);
    },
  );

  test('of requests name members of their lines', () => {
    const ofRequests = queries.filter(({ text }) => text.includes('message = "request"'));
    expect(ofRequests.length).toBeGreaterThan(5);
    for (const { text } of ofRequests) {
      const bare = text.replaceAll(/"[^"]*"/g, '');
      const aliases = new Set([...bare.matchAll(/ as (\w+)/g)].map(([, alias]) => alias));
      const named = bare.match(/(?<!@)\b[A-Za-z]\w*/g) ?? [];
      const unknown = named.filter((name) => !members.has(name) && !words.has(name) && !aliases.has(name));
      expect(unknown).toEqual([]);
    }
  });
});
