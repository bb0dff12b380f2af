/** Dashboard widgets for AWS metrics of functions and tables. */
import { Duration } from 'aws-cdk-lib';
import { Stats, type IMetric, type IWidget } from 'aws-cdk-lib/aws-cloudwatch';
import { tableNames } from '../../../shared/tables/table-schemas.ts';
import { graph } from './dashboard-relay.ts';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import { tableThrottles } from './request-alarms.ts';

const period = Duration.minutes(1);

export function hostWidgets(
  relayName: string,
  functions: RelayFunctions,
  streamReaders: readonly FunctionName[],
): IWidget[][] {
  const ofEach = (
    metricName: string,
    statistic: string,
    names: readonly FunctionName[] = [...functions.byName.keys()],
  ): IMetric[] =>
    names.map((name) => functions.get(name).lambda.metric(metricName, { statistic, label: name, period }));
  return [
    [
      graph({ title: 'Throttled calls of functions', width: 8, left: ofEach('Throttles', Stats.SUM) }),
      graph({
        title: 'Throttled calls of tables',
        width: 8,
        left: tableNames.map((name) => tableThrottles(relayName, name)),
      }),
      graph({
        title: 'Age of streams (ms)',
        width: 8,
        left: ofEach('IteratorAge', Stats.MAXIMUM, streamReaders),
      }),
    ],
    [
      graph({ title: 'Errors of functions', width: 8, left: ofEach('Errors', Stats.SUM) }),
      graph({
        title: 'Answers under way',
        width: 8,
        left: ofEach('ConcurrentExecutions', Stats.MAXIMUM, ['chat', 'responses']),
      }),
      graph({
        title: 'Run time of functions, p95 (ms)',
        width: 8,
        left: ofEach('Duration', Stats.percentile(95)),
      }),
    ],
  ];
}
