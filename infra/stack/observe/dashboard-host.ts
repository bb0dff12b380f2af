/** Dashboard widgets of AWS's own metrics: functions and tables. */
import { Duration } from 'aws-cdk-lib';
import { Stats, type IMetric, type IWidget } from 'aws-cdk-lib/aws-cloudwatch';
import { tableNames } from '../../../shared/tables/table-schemas.ts';
import { graph } from './dashboard-relay.ts';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import { tableThrottles } from './request-alarms.ts';

const period = Duration.minutes(1);

export function hostWidgets(
  stackName: string,
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
      graph('Throttled calls of functions', 8, ofEach('Throttles', Stats.SUM)),
      graph(
        'Throttled calls of tables',
        8,
        tableNames.map((name) => tableThrottles(stackName, name)),
      ),
      graph('Age of streams (ms)', 8, ofEach('IteratorAge', Stats.MAXIMUM, streamReaders)),
    ],
    [
      graph('Errors of functions', 8, ofEach('Errors', Stats.SUM)),
      graph('Answers under way', 8, ofEach('ConcurrentExecutions', Stats.MAXIMUM, ['chat', 'responses'])),
      graph('Run time of functions, p95 (ms)', 8, ofEach('Duration', Stats.percentile(95))),
    ],
  ];
}
