/** Alarm definitions for requests and tables. */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Metric, Stats, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import { physicalTableName, type TableName } from '../../../shared/tables/table-names.ts';
import { relayMetric } from './relay-metric.ts';
import type { AlarmDefinition } from './function-alarms.ts';

const period = Duration.minutes(5);

/** With fewer requests the ratio is meaningless: one failure in two requests is not an outage. */
const requestsMin = 20;
const failurePercentMax = 10;

/** Failures as a percentage of requests; 0 below the minimum of requests. */
export function failurePercent(relayName: string): IMetric {
  return new MathExpression({
    expression: `IF(requests >= ${requestsMin}, 100 * FILL(failures, 0) / requests, 0)`,
    usingMetrics: {
      requests: relayMetric(relayName, 'Requests', Stats.SUM),
      failures: relayMetric(relayName, 'Failures', Stats.SUM),
    },
    label: 'failures in a hundred requests',
    period,
  });
}

/** Metrics of `shared/adapters/telemetry/request-metrics.ts` whose first occurrence triggers an alarm. */
const oneIsTooMany = {
  InternalErrors:
    'A bug of the relay ended a request: look for fault in the logs of functions chat and responses',
  SettleLost:
    'A charge could not be written: look for settle_lost, and replay the lines with npm run ops -- audit --repair',
  ReserveUnknown:
    'It is not known whether a reservation was applied: look for reserve_unknown; function sweeper closes it if it was',
  ChargedAboveReserve:
    'A call cost more than was reserved for it, so a balance may be below zero: look for charged_above_reserve, whose line names the channel',
  SweepFailed:
    'An expired reservation could not be closed: look for sweep_failed in the log of function sweeper, which tries again each minute',
};

export function requestAlarms(relayName: string): AlarmDefinition[] {
  return [
    {
      id: 'FailureRatio',
      description:
        'Of a hundred requests ten or more fail: the dashboard says on which channels, ops channel list how they are',
      metric: failurePercent(relayName),
      threshold: failurePercentMax,
    },
    ...Object.entries(oneIsTooMany).map(([name, description]) => ({
      id: name,
      description,
      metric: relayMetric(relayName, name, Stats.SUM),
      threshold: 1,
    })),
    {
      id: 'ConfigFormatUnknown',
      description:
        'A function serves an old configuration, as it does not know the form of the newest: deploy the version that wrote it',
      metric: relayMetric(relayName, 'ConfigFormatUnknown', Stats.SUM),
      threshold: 1,
      // Both versions may run during a deployment.
      periods: 2,
    },
    {
      id: 'TurnStateLost',
      description:
        'The state of ten turns was lost, so agents may be refused or reason anew: look for turn_state_lost in the logs of functions chat and responses',
      metric: relayMetric(relayName, 'TurnStateLost', Stats.SUM),
      // A single throttled write harms one turn of one conversation.
      threshold: 10,
    },
    {
      id: 'ImplausibleUsage',
      description:
        'Upstreams reported counts that cannot be true, ten times or more, and estimates were charged: query Implausible usage by channel names channels and reasons',
      metric: relayMetric(relayName, 'ImplausibleUsage', Stats.SUM),
      // An estimate may be wrong about a single odd text.
      threshold: 10,
    },
    {
      id: 'SweeperStopped',
      description:
        'Function sweeper did not end a run for ten minutes, so balances stay held: its schedule is off, or its log says why',
      // A failed run writes no metric, so this counts the successful runs.
      metric: relayMetric(relayName, 'OpenReservations', Stats.SAMPLE_COUNT),
      threshold: 1,
      triggers: 'below',
      periods: 2,
    },
  ];
}

/** Tables that a request waits for, or whose rows record money. */
const tablesWithAlarm = ['keys', 'accounts', 'quotas', 'ledger', 'runtime'] as const satisfies TableName[];

/** On-demand tables throttle when one item is written too often, or when traffic doubles within minutes. */
export function tableAlarms(relayName: string): AlarmDefinition[] {
  return tablesWithAlarm.map((name) => ({
    id: `${name}TableThrottles`,
    description: `DynamoDB throttled table ${name}: one account has too many requests at once, or traffic doubled at once`,
    metric: tableThrottles(relayName, name),
    threshold: 10,
  }));
}

/** Throttled reads and writes of a table. */
export function tableThrottles(relayName: string, name: TableName): IMetric {
  const events = (metricName: string): Metric =>
    new Metric({
      namespace: 'AWS/DynamoDB',
      metricName,
      dimensionsMap: { TableName: physicalTableName(relayName, name) },
      statistic: Stats.SUM,
      period,
    });
  return new MathExpression({
    expression: `FILL(${name}Reads, 0) + FILL(${name}Writes, 0)`,
    // Names must be unique in a graph of several tables.
    usingMetrics: {
      [`${name}Reads`]: events('ReadThrottleEvents'),
      [`${name}Writes`]: events('WriteThrottleEvents'),
    },
    label: name,
    period,
  });
}
