/**
 * Dashboard widgets for AWS metrics of functions and tables. A dashboard of more than 50 metrics is none of the three that
 * are free of charge, so what only alarms need is not drawn.
 */
import { Duration } from 'aws-cdk-lib';
import { Stats, type IMetric, type IWidget } from 'aws-cdk-lib/aws-cloudwatch';
import type { TableName } from '../../../shared/tables/table-names.ts';
import { graph } from './dashboard-relay.ts';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import { tableThrottles } from './request-alarms.ts';

const period = Duration.minutes(1);

const answering = ['chat', 'responses'] as const satisfies FunctionName[];

/** That calls and their rows are written to, and the busiest of those that are read. */
const busyTables = ['quotas', 'ledger', 'runtime', 'keys'] as const satisfies TableName[];

export function hostWidgets(
  relayName: string,
  functions: RelayFunctions,
  streamReaders: readonly FunctionName[],
): IWidget[][] {
  const ofEach = (metricName: string, statistic: string, names: readonly FunctionName[]): IMetric[] =>
    names.map((name) => functions.get(name).lambda.metric(metricName, { statistic, label: name, period }));
  // A dashboard with more metrics is not free. Runs that crash are among the reservations that expire.
  const watched = [...functions.byName.keys()].filter((name) => name !== 'background');
  return [
    [
      graph({
        title: 'Throttled calls of functions',
        width: 8,
        left: ofEach('Throttles', Stats.SUM, answering),
      }),
      graph({
        title: 'Throttled calls of tables',
        width: 8,
        left: busyTables.map((name) => tableThrottles(relayName, name)),
      }),
      graph({
        title: 'Age of streams (ms)',
        width: 8,
        left: ofEach('IteratorAge', Stats.MAXIMUM, streamReaders),
      }),
    ],
    [
      graph({ title: 'Errors of functions', width: 8, left: ofEach('Errors', Stats.SUM, watched) }),
      graph({
        title: 'Answers under way',
        width: 8,
        left: ofEach('ConcurrentExecutions', Stats.MAXIMUM, answering),
      }),
      graph({
        title: 'Run time of functions, p95 (ms)',
        width: 8,
        left: ofEach('Duration', Stats.percentile(95), answering),
      }),
    ],
  ];
}
