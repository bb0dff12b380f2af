/** What an alarm is made from: a metric and its threshold, what it covers, and whom it wakes. */
import type { IMetric } from 'aws-cdk-lib/aws-cloudwatch';

/** `page`: customers are harmed now, so somebody is woken. `ticket`: somebody looks on the next working day. */
export type Severity = 'page' | 'ticket';

export interface AlarmDefinition {
  id: string;
  severity: Severity;
  description: string;
  metric: IMetric;
  /** The value per period of the metric that triggers the alarm. */
  threshold: number;
  /** `below`: values under the threshold and missing data trigger. Absent: values at or above it trigger. */
  triggers?: 'below';
  /** True: missing data triggers too. For metrics that somebody writes at least once in each period. */
  missingTriggers?: boolean;
  /** The last periods that are looked at. Default: 1. */
  periods?: number;
  /** How many of them must trigger. Default: all. */
  periodsMin?: number;
  /** Of a percentile. True: the alarm keeps its state while there are too few values for it. */
  wantsManyValues?: boolean;
}
