/** Alarm definitions for functions, streams, money and configuration: a metric and its threshold. */
import { Duration } from 'aws-cdk-lib';
import { Metric, Stats, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import { relayMetric } from './relay-metric.ts';
import type { RelayFunction } from '../constructs/relay-function.ts';
import type { StreamMapping } from '../constructs/triggers.ts';

export interface AlarmDefinition {
  id: string;
  description: string;
  metric: IMetric;
  /** The value per five minutes that triggers the alarm. */
  threshold: number;
  /** `below`: values under the threshold and missing data trigger. Absent: values at or above it trigger. */
  triggers?: 'below';
  /** Number of consecutive five-minute periods that must trigger. Default: 1. */
  periods?: number;
  /** True: missing data keeps the alarm's state. For metrics that are measured only occasionally. */
  staysUntilMeasured?: boolean;
}

const period = Duration.minutes(5);
const iteratorAgeMax = Duration.minutes(5);

export function functionAlarms(name: string, relayFunction: RelayFunction): AlarmDefinition[] {
  const { lambda } = relayFunction;
  const serverErrors = {
    id: `${name}ServerErrors`,
    description: `Function ${name} answered with many 5xx: upstreams or tables cannot be reached`,
    metric: lambda.metric('Url5xxCount', { period, statistic: Stats.SUM }),
    threshold: 20,
  };
  return [
    {
      id: `${name}Errors`,
      description: `Function ${name} crashed or timed out: its log group says why`,
      metric: lambda.metricErrors({ period, statistic: Stats.SUM }),
      threshold: 1,
    },
    {
      id: `${name}Throttles`,
      description: `Function ${name} was refused an environment: the account's concurrency is used up`,
      metric: lambda.metricThrottles({ period, statistic: Stats.SUM }),
      threshold: 1,
    },
    ...(relayFunction.url === undefined ? [] : [serverErrors]),
  ];
}

/** Alarms for streams that are read late and for records that failed all retries. */
export function streamAlarms(
  name: string,
  { lambda }: RelayFunction,
  mappings: readonly StreamMapping[],
): AlarmDefinition[] {
  if (mappings.length === 0) return [];
  return [
    {
      id: `${name}IteratorAge`,
      description: `Function ${name} is behind its stream by minutes: its log group says what fails`,
      metric: lambda.metric('IteratorAge', { period, statistic: Stats.MAXIMUM }),
      threshold: iteratorAgeMax.toMilliseconds(),
    },
    ...mappings
      .filter(({ stream }) => stream.keepsFailures)
      .map(({ mapping }) => ({
        id: `${name}GivenUp`,
        description: `Records of the stream of function ${name} were given up: they are in the bucket of stream failures`,
        metric: new Metric({
          namespace: 'AWS/Lambda',
          metricName: 'OnFailureDestinationDeliveredEventCount',
          dimensionsMap: { EventSourceMappingUUID: mapping.eventSourceMappingId },
          period,
          statistic: Stats.SUM,
        }),
        threshold: 1,
      })),
  ];
}

/** Metrics that `shared/relay/ports/stores/ledger-store.ts` names. */
const moneyMetrics = {
  ConservationBroken:
    'An account does not balance: look for conservation_broken in the log of function ledger',
  LedgerPoisoned: 'A record of quotas cannot be read, so a ledger row is missing: look for ledger_poisoned',
  GrantPoisoned: 'A grant can never be applied: look for grant_poisoned in the log of function grants',
  ReservationPoisoned:
    'The open reservations of an account cannot be read: look for reservation_poisoned in the log of function sweeper',
  AlertUndelivered:
    'A notice about an account was given up: look for alert_undelivered in the log of function notify, and for alert_poisoned in that of alerts',
  PaymentParked:
    'A payment came in that no account was granted: npm run ops -- payment list --parked says why, payment assign grants it',
};

export function moneyAlarms(relayName: string): AlarmDefinition[] {
  return Object.entries(moneyMetrics).map(([name, description]) => ({
    id: name,
    description,
    metric: relayMetric(relayName, name, Stats.SUM),
    threshold: 1,
  }));
}

/** Alarms for the metrics that `shared/adapters/telemetry/config-metrics.ts` names. */
export function configAlarms(relayName: string): AlarmDefinition[] {
  return [
    {
      id: 'BadRows',
      description: 'Rows have mistakes and are not used as they are: each says so in its attribute _problem',
      metric: relayMetric(relayName, 'BadRows', Stats.MAXIMUM),
      threshold: 1,
      staysUntilMeasured: true,
    },
    {
      id: 'ConfigCompileFailed',
      description:
        'The configuration could not be published, so edits are not live: the log of function config says why',
      metric: relayMetric(relayName, 'ConfigCompileFailed', Stats.SUM),
      threshold: 1,
    },
  ];
}
