/** The relay's own metrics, which the functions write into their log lines: `shared/adapters/*-metrics.ts`. */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Metric, SearchExpression } from 'aws-cdk-lib/aws-cloudwatch';

/** A metric of the whole stack. The statistic is in CloudWatch's words: `Sum`, `p95`. */
export const relayMetric = (stackName: string, metricName: string, statistic: string): Metric =>
  new Metric({
    namespace: 'relay',
    metricName,
    dimensionsMap: { stack: stackName },
    statistic,
    period: Duration.minutes(5),
  });

/**
 * One line for each channel. Channels are rows, which a template does not know, so CloudWatch searches for them;
 * alarms cannot use a search.
 */
export function ofEachChannel(stackName: string, metricName: string, statistic: string): SearchExpression {
  const search = `{relay,stack,channel} MetricName="${metricName}" stack="${stackName}"`;
  return new SearchExpression({
    expression: `SEARCH('${search}', '${statistic}')`,
    label: '',
    period: Duration.minutes(1),
  });
}

/** Requests of all channels that ended in this way. */
export function requestsThat(stackName: string, outcome: string): MathExpression {
  const search = `{relay,stack,channel,outcome} MetricName="Requests" stack="${stackName}" outcome="${outcome}"`;
  return new MathExpression({
    expression: `SUM(SEARCH('${search}', 'Sum'))`,
    usingMetrics: {},
    label: outcome,
    period: Duration.minutes(1),
  });
}
