/** Alarm definitions for what the relay itself reports, and for its tables. */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Metric, Stats, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import { physicalTableName, type TableName } from '../../../shared/tables/table-names.ts';
import type { StreamMapping } from '../constructs/triggers.ts';
import type { AlarmDefinition } from './alarm-definition.ts';
import { givenUp, sumOf } from './function-alarms.ts';
import { relayMetric } from './relay-metric.ts';

const period = Duration.minutes(5);

/** `shared/adapters/telemetry/embedded-metric.ts` says which events count in the first, the second and the last but one. */
export function relayAlarms(relayName: string, mappings: readonly StreamMapping[]): AlarmDefinition[] {
  const metric = (name: string, statistic: string): Metric => relayMetric(relayName, name, statistic);
  return [
    {
      id: 'MoneyWrong',
      severity: 'page',
      description:
        'An account does not balance, a charge was lost, an item of money cannot be read, or records of the stream of quotas were given up: query Events that need a person names it, the bucket of stream failures has the records',
      // Grants that were given up are applied by the schedule, or count as MoneyWrong.
      metric: sumOf({ wrong: metric('MoneyWrong', Stats.SUM), givenUp: givenUp(mappings) }),
      threshold: 1,
    },
    {
      id: 'NeedsAPerson',
      severity: 'ticket',
      description:
        'Something happened that the relay cannot mend by itself: query Events that need a person, or Faults, names it',
      metric: metric('NeedsAPerson', Stats.SUM),
      threshold: 1,
    },
    {
      id: 'SweeperStopped',
      severity: 'page',
      description:
        'Function sweeper did not end a run for ten minutes, so balances stay held: its schedule is off, or its log says why',
      // A failed run writes no metric, so this counts the successful runs.
      metric: metric('OpenReservations', Stats.SAMPLE_COUNT),
      threshold: 1,
      triggers: 'below',
      periods: 2,
    },
    {
      id: 'BadRows',
      severity: 'ticket',
      description:
        'Rows have mistakes and are not used as they are: each says so in its attribute _problem. Or a channel serves a model that no rule prices (UnpricedModels): its calls are refused, or free. Or function config did not end a run for a quarter of an hour, so edits are not live: its log says why',
      // A run writes the count, also 0, and the schedule has three runs in the period.
      metric: metric('BadRows', Stats.MAXIMUM).with({ period: Duration.minutes(15) }),
      threshold: 1,
      missingTriggers: true,
    },
    {
      id: 'Oddities',
      severity: 'ticket',
      description:
        'Ten times within five minutes the state of a turn or a response was not kept or an upstream reported counts that cannot be true, or a function did not know the form of the configuration: look for turn_state_lost, response_not_stored and config_format_unknown, run the query Implausible usage by channel',
      // Apart from NeedsAPerson, which a channel that never reports counts would keep in alarm for good.
      metric: metric('Oddities', Stats.SUM),
      threshold: 10,
    },
    tableAlarm(relayName),
  ];
}

/** The scheduled call writes 1 for an answer and 0 for none; if it does not run at all, it writes nothing. */
export const canaryAlarm = (relayName: string): AlarmDefinition => ({
  id: 'CanaryFailed',
  severity: 'page',
  description:
    'The scheduled call was not answered for a quarter of an hour: the log of function canary says what failed',
  metric: relayMetric(relayName, 'CanarySuccesses', Stats.SUM).with({ period: Duration.minutes(15) }),
  threshold: 1,
  triggers: 'below',
});

/**
 * Calls that this table throttles are answered with 503, but those of one account alone are too few for the objective. Of
 * the other tables docs/observability.md says what sees them.
 */
const tableAlarm = (relayName: string): AlarmDefinition => ({
  id: 'TableThrottles',
  severity: 'ticket',
  description:
    'DynamoDB throttled writes to quotas: one account has too many requests at once, or traffic doubled at once; the graph Throttled calls of tables says what else is throttled',
  metric: throttles(relayName, 'quotas', 'WriteThrottleEvents'),
  threshold: 10,
});

const throttles = (relayName: string, name: TableName, metricName: string): Metric =>
  new Metric({
    namespace: 'AWS/DynamoDB',
    metricName,
    dimensionsMap: { TableName: physicalTableName(relayName, name) },
    statistic: Stats.SUM,
    period,
  });

/** Throttled reads and writes of a table. */
export function tableThrottles(relayName: string, name: TableName): IMetric {
  return new MathExpression({
    expression: `FILL(${name}Reads, 0) + FILL(${name}Writes, 0)`,
    // Names must be unique in a graph of several tables.
    usingMetrics: {
      [`${name}Reads`]: throttles(relayName, name, 'ReadThrottleEvents'),
      [`${name}Writes`]: throttles(relayName, name, 'WriteThrottleEvents'),
    },
    label: name,
    period,
  });
}
