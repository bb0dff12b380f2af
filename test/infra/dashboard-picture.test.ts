import { expect, test } from 'vitest';
import type { MetricValue } from '../support/embedded-metrics.ts';
import type { Widget } from './dashboard-body.ts';
import { drawDashboard } from './picture-svg.ts';
import { seriesOf } from './picture-series.ts';

const span = { fromMs: 0, steps: 3, stepMs: 10 };

const value = (name: string, atMs: number, more: Partial<MetricValue> & { value: number }): MetricValue => ({
  namespace: 'relay',
  unit: 'Count',
  name,
  atMs,
  dimensions: { stack: 'relay' },
  ...more,
});
const of = (channel: string, outcome: string) => ({ stack: 'relay', channel, outcome });
const values = [
  value('Requests', 1, { value: 1, dimensions: of('north', 'completed') }),
  value('Requests', 2, { value: 1, dimensions: of('south', 'completed') }),
  value('Requests', 25, { value: 1, dimensions: of('south', 'failed') }),
  ...[40, 10, 30, 20].map((first) =>
    value('FirstContentMs', 5, { value: first, dimensions: { stack: 'relay', channel: 'north' } }),
  ),
  value('FirstContentMs', 15, { value: 7, dimensions: { stack: 'relay', channel: 'south' } }),
  value('ChargeYuan', 12, { value: 0.5 }),
  value('ChargeYuan', 13, { value: 0.25 }),
];

const widget = (...metrics: unknown[][]): Widget => ({
  type: 'metric',
  x: 0,
  y: 0,
  width: 8,
  height: 6,
  properties: { title: 'A <title>', metrics },
});
const search = (dimensions: string, name: string, terms = ''): string =>
  `SEARCH('{relay,${dimensions}} MetricName="${name}" stack="relay"${terms}', `;

test('a metric is worked out for each step, and is nothing where nothing was told', () => {
  const options = { label: 'yuan', stat: 'Sum' };
  expect(seriesOf(widget(['relay', 'ChargeYuan', 'stack', 'relay', options]), values, span)).toEqual([
    { label: 'yuan', color: undefined, points: [undefined, 0.75, undefined] },
  ]);
});

test('a search has a line for each channel, with its percentile', () => {
  const expression = `${search('stack,channel', 'FirstContentMs')}'p50')`;
  expect(seriesOf(widget([{ expression }]), values, span)).toEqual([
    { label: 'north', color: undefined, points: [30, undefined, undefined] },
    { label: 'south', color: undefined, points: [undefined, 7, undefined] },
  ]);
});

test('a sum over a search is one line', () => {
  const expression = `SUM(${search('stack,channel,outcome', 'Requests', ' outcome="completed"')}'Sum'))`;
  const [series] = seriesOf(widget([{ expression, label: 'completed' }]), values, span);
  expect(series?.points).toEqual([2, undefined, undefined]);
});

test('what AWS measures is not drawn but named', () => {
  const aws = widget(['AWS/Lambda', 'Errors', 'FunctionName', 'chat', { stat: 'Sum' }]);
  expect(seriesOf(aws, values, span)).toEqual([]);
  const own = widget(['relay', 'ChargeYuan', 'stack', 'relay', { stat: 'Sum' }]);
  const picture = drawDashboard([own, { ...aws, y: 6 }], values, span);
  expect(picture.match(/<rect [^>]*stroke/g)).toHaveLength(1);
  expect(picture).toContain('AWS’s own metrics: A &lt;title>');
});
