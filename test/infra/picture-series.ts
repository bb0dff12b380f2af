/** Works out what a widget of the dashboard shows, from metric values: as CloudWatch does, for the little that it uses. */
import type { MetricValue } from '../support/embedded-metrics.ts';
import type { Widget } from './dashboard-body.ts';

export interface Span {
  fromMs: number;
  steps: number;
  stepMs: number;
}

export interface Series {
  label: string;
  color: string | undefined;
  /** One for each step; undefined: nothing was told in it. */
  points: (number | undefined)[];
}

interface Options {
  label?: string;
  color?: string;
  stat?: string;
  expression?: string;
}

/** None when the widget shows AWS's own metrics: a local run has no such. */
export function seriesOf({ properties }: Widget, values: MetricValue[], span: Span): Series[] {
  return (properties.metrics ?? []).flatMap((entry): Series[] => {
    const options = (typeof entry.at(-1) === 'object' ? entry.at(-1) : {}) as Options;
    const { label = '', color, stat = 'Average', expression } = options;
    if (expression !== undefined) return searched(expression, options, values, span);
    const [namespace, name, ...pairs] = entry.filter((part) => typeof part === 'string');
    if (namespace !== 'relay') return [];
    const dimensions = Object.fromEntries(
      pairs.flatMap((pair, index) => (index % 2 === 0 ? [[pair, pairs[index + 1]]] : [])),
    ) as Record<string, string>;
    const found = values.filter((value) => value.name === name && equal(value.dimensions, dimensions));
    return [{ label, color, points: inSteps(found, stat, span) }];
  });
}

const searchForm =
  /^(SUM\()?SEARCH\('\{relay,([\w,]+)\} MetricName="(\w+)"((?: \w+="[^"]*")*)', '(\w+)'\)\)?$/;

function searched(
  expression: string,
  { label = '', color }: Options,
  values: MetricValue[],
  span: Span,
): Series[] {
  const [, sum, names = '', metric, terms = '', stat = ''] = searchForm.exec(expression) ?? [];
  if (metric === undefined) return [];
  const wanted = [...terms.matchAll(/(\w+)="([^"]*)"/g)].map(
    ([, name = '', value]) => [name, value] as const,
  );
  const found = values.filter(
    ({ name, dimensions }) =>
      name === metric &&
      Object.keys(dimensions).join() === names &&
      wanted.every(([dimension, value]) => dimensions[dimension] === value),
  );
  if (sum !== undefined) return [{ label, color, points: inSteps(found, stat, span) }];
  const groups = Object.groupBy(found, ({ dimensions }) => Object.values(dimensions).slice(1).join(' '));
  return Object.entries(groups)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, group = []]) => ({ label: name, color: undefined, points: inSteps(group, stat, span) }));
}

const equal = (a: Record<string, string>, b: Record<string, string>): boolean =>
  JSON.stringify(Object.entries(a)) === JSON.stringify(Object.entries(b));

function inSteps(values: MetricValue[], stat: string, { fromMs, steps, stepMs }: Span): Series['points'] {
  const buckets = Array.from({ length: steps }, (): number[] => []);
  for (const { atMs, value } of values) buckets[Math.floor((atMs - fromMs) / stepMs)]?.push(value);
  return buckets.map((bucket) => (bucket.length === 0 ? undefined : statistic(bucket, stat)));
}

function statistic(values: number[], stat: string): number {
  const sum = values.reduce((total, value) => total + value, 0);
  if (stat === 'Sum') return sum;
  if (stat === 'SampleCount') return values.length;
  if (stat === 'Maximum') return Math.max(...values);
  if (stat === 'Average') return sum / values.length;
  const percentile = Number(/^p(\d+)$/.exec(stat)?.[1] ?? Number.NaN);
  const sorted = values.toSorted((a, b) => a - b);
  const value = sorted[Math.min(sorted.length - 1, Math.floor((percentile / 100) * sorted.length))];
  if (value === undefined || Number.isNaN(percentile)) throw new Error(`statistic ${stat}`);
  return value;
}
