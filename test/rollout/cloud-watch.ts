/**
 * A double of CloudWatch for one template: records what log lines and Lambda report, by virtual minute, and evaluates the
 * template's alarms. Metrics come only from log lines: embedded metrics and metric filters.
 */
import { createResolver, type ResolveReference } from '../../infra/local/template/template.ts';
import { resourcesOf, type Resource, type Template } from '../infra/synthesize.ts';
import { metricsOf } from '../support/embedded-metrics.ts';
import { evaluate, type Value } from './metric-math.ts';

interface Metric {
  Namespace: string;
  MetricName: string;
  Dimensions?: { Name: string; Value: string }[];
}

interface Query {
  Id: string;
  Expression?: string;
  MetricStat?: { Metric: Metric; Period: number; Stat: string };
  Period?: number;
  ReturnData?: boolean;
}

interface Point {
  minute: number;
  value: number;
}

interface MetricFilter {
  FilterPattern: string;
  LogGroupName: string;
  MetricTransformations: {
    MetricNamespace: string;
    MetricName: string;
    MetricValue: string;
    Dimensions?: { Key: string; Value: string }[];
  }[];
}

export interface CloudWatchParts {
  template: Template;
  /** The number that each version gets when it is published, by logical id. */
  versionOf: (logicalId: string) => string;
}

export class CloudWatch {
  /** Minutes since the deployment started, set by the test. */
  minute = 0;
  readonly #template: Template;
  readonly #resolve: ResolveReference;
  readonly #filters: MetricFilter[];
  readonly #points = new Map<string, Point[]>();
  readonly #inAlarm = new Set<string>();
  readonly #hadData = new Set<string>();

  constructor({ template, versionOf }: CloudWatchParts) {
    this.#template = template;
    this.#resolve = createResolver({
      ref: (id) => id,
      attribute: (id, name) => (name === 'Version' ? versionOf(id) : `${id}.${name}`),
      secret: () => '',
    });
    this.#filters = resourcesOf(template, 'AWS::Logs::MetricFilter').map(
      ([, { Properties }]) => this.#resolve(Properties) as MetricFilter,
    );
  }

  /** A log line of the function whose log group has this logical id. */
  line(logGroup: string, text: string): void {
    const line = parsed(text);
    if (line === undefined) return;
    for (const { namespace, name, dimensions, value } of metricsOf(text))
      this.put(keyOf(namespace, name, dimensions), value);
    for (const { FilterPattern, LogGroupName, MetricTransformations } of this.#filters) {
      if (LogGroupName !== logGroup || !matches(FilterPattern, line)) continue;
      for (const { MetricNamespace, MetricName, MetricValue, Dimensions = [] } of MetricTransformations) {
        const dimensions = Dimensions.map(({ Key, Value: path }) => [Key, line[path.slice('$.'.length)]]);
        // As in CloudWatch, a line that lacks a dimension counts for no metric.
        if (dimensions.some(([, value]) => value === undefined)) continue;
        const key = keyOf(MetricNamespace, MetricName, Object.fromEntries(dimensions));
        this.put(key, Number(MetricValue));
      }
    }
  }

  put(key: string, value: number): void {
    const points = this.#points.get(key) ?? [];
    points.push({ minute: this.minute, value });
    this.#points.set(key, points);
  }

  /** True if the alarm notifies its receivers now: it is in the state ALARM, or its data stopped. */
  triggers(alarmId: string): boolean {
    const alarm = this.#template.Resources[alarmId];
    if (alarm?.Type !== 'AWS::CloudWatch::Alarm') throw new Error(`no alarm ${alarmId}`);
    if (this.#keepsState(alarm.Properties)) return this.#inAlarm.has(alarmId);
    if (this.#lacksData(alarm.Properties)) return this.#hadData.has(alarmId);
    this.#hadData.add(alarmId);
    const results = new Set([true, false].map((fills) => this.#breaches(alarm.Properties, fills)));
    // The result must not depend on FILL's undocumented behaviour.
    if (results.size > 1) throw new Error(`${alarmId} depends on how FILL treats a metric without data`);
    if (results.has(true)) this.#inAlarm.add(alarmId);
    else this.#inAlarm.delete(alarmId);
    return results.has(true);
  }

  /** CloudWatch evaluates a percentile only with ten values on its smaller side, or if there are no values at all. */
  #keepsState(properties: Resource['Properties']): boolean {
    const percent = percentOf(String(properties['ExtendedStatistic']));
    if (percent === undefined || properties['EvaluateLowSampleCountPercentile'] !== 'ignore') return false;
    const metric = this.#resolve(properties) as Metric;
    const count = this.#statistic(metric, { Period: Number(properties['Period']), Stat: 'SampleCount' });
    return count !== undefined && count < 1000 / Math.min(percent, 100 - percent);
  }

  /** An alarm starts in the state INSUFFICIENT_DATA, and notifies only when its state changes. */
  #lacksData(properties: Resource['Properties']): boolean {
    const ages = Array.from({ length: Number(properties['EvaluationPeriods']) }, (_, age) => age);
    const isMissing = properties['TreatMissingData'] === 'missing';
    return isMissing && ages.every((age) => this.value(properties, { age }) === undefined);
  }

  #breaches(properties: Resource['Properties'], fillsUnknown: boolean): boolean {
    const { Threshold, ComparisonOperator, TreatMissingData } = properties;
    const periods = Number(properties['EvaluationPeriods']);
    const values = Array.from({ length: periods }, (_, age) => this.value(properties, { fillsUnknown, age }));
    const breaching = values.filter((value) => {
      if (value === undefined) return TreatMissingData === 'breaching';
      return ComparisonOperator === 'LessThanThreshold'
        ? value < Number(Threshold)
        : value >= Number(Threshold);
    });
    return breaching.length >= Number(properties['DatapointsToAlarm'] ?? periods);
  }

  /** The value that the alarm compares with its threshold, `age` periods ago. */
  value(properties: Resource['Properties'], { fillsUnknown = true, age = 0 } = {}): Value {
    const { Metrics } = this.#resolve(properties) as { Metrics?: Query[] };
    if (Metrics === undefined) {
      const { Statistic, ExtendedStatistic, Period } = properties;
      const metric = this.#resolve(properties) as Metric;
      const Stat = String(Statistic ?? ExtendedStatistic);
      return this.#statistic(metric, { Period: Number(Period), Stat }, age);
    }
    const named = (id: string): Value => {
      const query = Metrics.find(({ Id }) => Id === id);
      if (query?.MetricStat) return this.#statistic(query.MetricStat.Metric, query.MetricStat, age);
      if (query?.Expression === undefined) throw new Error(`no metric ${id}`);
      return evaluate(query.Expression, named, fillsUnknown);
    };
    const shown = Metrics.find(({ ReturnData }) => ReturnData !== false);
    return named(shown?.Id ?? '');
  }

  #statistic(
    { Namespace, MetricName, Dimensions = [] }: Metric,
    { Period, Stat }: { Period: number; Stat: string },
    age = 0,
  ): Value {
    const dimensions = Object.fromEntries(Dimensions.map(({ Name, Value: value }) => [Name, value]));
    const last = this.minute - (age * Period) / 60;
    const values = (this.#points.get(keyOf(Namespace, MetricName, dimensions)) ?? []).flatMap(
      ({ minute, value }) => (minute > last - Period / 60 && minute <= last ? value : []),
    );
    return values.length === 0 ? undefined : statisticOf(Stat, values);
  }
}

function statisticOf(name: string, values: number[]): number {
  const sum = values.reduce((total, value) => total + value, 0);
  if (name === 'SampleCount') return values.length;
  if (name === 'Sum') return sum;
  if (name === 'Average') return sum / values.length;
  if (name === 'Maximum') return Math.max(...values);
  const percent = percentOf(name);
  if (percent === undefined) throw new Error(`not known: ${name}`);
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil((percent / 100) * values.length) - 1] ?? Number.NaN;
}

/** `p28` */
function percentOf(statistic: string): number | undefined {
  const text = /^p([\d.]+)$/.exec(statistic)?.[1];
  return text === undefined ? undefined : Number(text);
}

export const keyOf = (namespace: string, name: string, dimensions: Record<string, unknown>): string =>
  JSON.stringify([namespace, name, Object.entries(dimensions).toSorted(([a], [b]) => (a < b ? -1 : 1))]);

type Line = Record<string, unknown>;

function parsed(text: string): Line | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Line) : undefined;
  } catch {
    return undefined;
  }
}

/** `{ ($.a = "b") && ($.c != "d") }`: one comparison, or several with the same word between them. */
function matches(pattern: string, line: Line): boolean {
  const inner = /^\{ (.*) \}$/.exec(pattern)?.[1];
  if (inner === undefined) throw new Error(`not known: ${pattern}`);
  const any = inner.includes(' || ');
  const results = inner.split(any ? ' || ' : ' && ').map((part) => {
    const [, member, operator, wanted] = /^\(?\$\.(\w+) (=|!=) "([^"]*)"\)?$/.exec(part) ?? [];
    if (member === undefined) throw new Error(`not known: ${part}`);
    // An absent member matches neither operator.
    return line[member] !== undefined && (line[member] === wanted) === (operator === '=');
  });
  return any ? results.some(Boolean) : results.every(Boolean);
}
