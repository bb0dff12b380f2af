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
  /** Number of consecutive periods that must trigger. Default: 1. */
  periods?: number;
  /** True: missing data keeps the alarm's state. For metrics that are measured only occasionally. */
  staysUntilMeasured?: boolean;
}
