/**
 * The relay's own metrics, which functions write to their log in `shared/adapters/telemetry/*-metrics.ts`.
 */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Metric, SearchExpression } from 'aws-cdk-lib/aws-cloudwatch';
import { relayNamespace } from '../rollout/version-metrics.ts';

/** A metric of the whole stack. The statistic has CloudWatch's name: `Sum`, `p95`. */
export const relayMetric = (relayName: string, metricName: string, statistic: string): Metric =>
  new Metric({
    namespace: relayNamespace,
    metricName,
    dimensionsMap: { stack: relayName },
    statistic,
    period: Duration.minutes(5),
  });

/**
 * One line per channel. Channels are table rows, so the template cannot list them and CloudWatch searches for
 * them. Alarms cannot use a search.
 */
export function ofEachChannel(relayName: string, metricName: string, statistic: string): SearchExpression {
  const search = `{relay,stack,channel} MetricName="${metricName}" stack="${relayName}"`;
  return new SearchExpression({
    expression: `SEARCH('${search}', '${statistic}')`,
    label: '',
    period: Duration.minutes(1),
  });
}

/** Number of requests of all channels with this outcome. */
export function requestsThat(relayName: string, outcome: string): MathExpression {
  const search = `{relay,stack,channel,outcome} MetricName="Requests" stack="${relayName}" outcome="${outcome}"`;
  return new MathExpression({
    expression: `SUM(SEARCH('${search}', 'Sum'))`,
    usingMetrics: {},
    label: outcome,
    period: Duration.minutes(1),
  });
}
