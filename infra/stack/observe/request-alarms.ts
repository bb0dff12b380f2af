/** Alarm definitions for what the relay itself reports, and for its tables. */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Metric, Stats, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import { physicalTableName, type TableName } from '../../../shared/tables/table-names.ts';
import type { StreamMapping } from '../constructs/triggers.ts';
import type { AlarmDefinition } from './alarm-definition.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import { combined, diedAlone, givenUp } from './function-alarms.ts';
import { relayMetric } from './relay-metric.ts';

const period = Duration.minutes(5);

/** `shared/adapters/telemetry/embedded-metric.ts` says which events count in the first two. */
export function relayAlarms(
  relayName: string,
  functions: RelayFunctions,
  mappings: readonly StreamMapping[],
): AlarmDefinition[] {
  const metric = (name: string, statistic: string): Metric => relayMetric(relayName, name, statistic);
  return [
    {
      id: 'MoneyWrong',
      severity: 'page',
      description:
        'An account does not balance, a charge was lost, an item of money cannot be read, or records of a stream were given up: query Events that need a person names it, the bucket of stream failures has the records',
      metric: combined('SUM', { wrong: metric('MoneyWrong', Stats.SUM), ...givenUp(mappings) }),
      threshold: 1,
    },
    {
      id: 'NeedsAPerson',
      severity: 'ticket',
      description:
        'Something happened that the relay cannot mend by itself: query Events that need a person, or Faults, names it; or function background died, as its log says',
      metric: combined('SUM', { needed: metric('NeedsAPerson', Stats.SUM), ...diedAlone(functions) }),
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
      description: 'Rows have mistakes and are not used as they are: each says so in its attribute _problem',
      metric: metric('BadRows', Stats.MAXIMUM),
      threshold: 1,
      staysUntilMeasured: true,
    },
    {
      id: 'Oddities',
      severity: 'ticket',
      description:
        'Ten times within five minutes the state of a turn or a response was not kept, or an upstream reported counts that cannot be true, or a function did not know the form of the configuration: look for turn_state_lost, response_not_stored and config_format_unknown, run the query Implausible usage by channel',
      // A single throttled write harms one turn of one conversation; an estimate may be wrong about a single odd text.
      metric: new MathExpression({
        expression: 'MAX([FILL(turnsLost, 0), FILL(implausible, 0), 10 * FILL(unknownFormat, 0)])',
        usingMetrics: {
          turnsLost: metric('TurnStateLost', Stats.SUM),
          implausible: metric('ImplausibleUsage', Stats.SUM),
          unknownFormat: metric('ConfigFormatUnknown', Stats.SUM),
        },
        label: 'lost turns, implausible counts, configurations that are not read',
        period,
      }),
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

/** What requests do to tables that they wait for, or whose rows record money. */
const watched = {
  keys: ['ReadThrottleEvents'],
  accounts: ['ReadThrottleEvents'],
  quotas: ['ReadThrottleEvents', 'WriteThrottleEvents'],
  ledger: ['ReadThrottleEvents', 'WriteThrottleEvents'],
  runtime: ['ReadThrottleEvents', 'WriteThrottleEvents'],
} as const satisfies Partial<Record<TableName, string[]>>;

/** On-demand tables throttle when one item is written too often, or when traffic doubles within minutes. */
function tableAlarm(relayName: string): AlarmDefinition {
  const metrics = Object.fromEntries(
    Object.entries(watched).flatMap(([name, events]) =>
      events.map((event) => [`${name}${event[0]}`, throttles(relayName, name as TableName, event)]),
    ),
  );
  return {
    id: 'TableThrottles',
    severity: 'ticket',
    description:
      'DynamoDB throttled a table: one account has too many requests at once, or traffic doubled at once; the graph Throttled calls of tables says which',
    metric: combined('SUM', metrics),
    threshold: 10,
  };
}

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
