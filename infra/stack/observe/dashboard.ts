/** The CloudWatch dashboard: requests, revenue, reservations, functions, tables and alarm states. */
import { Duration, Stack } from 'aws-cdk-lib';
import {
  AlarmStatusWidget,
  Dashboard as CloudWatchDashboard,
  type IWidget,
  GraphWidget,
  LogQueryVisualizationType,
  LogQueryWidget,
  MathExpression,
  SingleValueWidget,
  Stats,
  type GraphWidgetProps,
  type IMetric,
} from 'aws-cdk-lib/aws-cloudwatch';
import { Construct } from 'constructs';
import type { Alarms } from './alarms.ts';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { Triggers } from '../constructs/triggers.ts';
import { ofEachChannel, relayMetric, requestsThat } from './relay-metric.ts';
import type { TableName } from '../../../shared/tables/table-names.ts';
import { tableThrottles } from './alarm-definitions.ts';

/** Lines of requests are in their logs. */
const answering = ['chat', 'responses'] as const satisfies FunctionName[];

interface DashboardProps {
  relayName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  alarms: Alarms;
}

export class Dashboard extends Construct {
  readonly page: CloudWatchDashboard;

  constructor(scope: Construct, id: string, { relayName, functions, triggers, alarms }: DashboardProps) {
    super(scope, id);
    const streamReaders = [...new Set(triggers.mappings.map((mapping) => mapping.function))];
    const states = new AlarmStatusWidget({ title: 'Alarms', alarms: alarms.all, width: 24, height: 4 });
    const metric = minuteMetrics(relayName);
    const rows: IWidget[][] = [
      totalWidgets(metric),
      outcomeWidgets(metric, relayName),
      channelWidgets(relayName),
      earningWidgets(
        metric,
        answering.map((name) => functions.get(name).lambda.logGroup.logGroupName),
      ),
      reservationWidgets(metric),
      ...hostWidgets(relayName, functions, streamReaders),
      ...(alarms.all.length > 0 ? [[states]] : []),
    ];
    this.page = new CloudWatchDashboard(this, 'Dashboard', {
      // Dashboards of all regions of an account are in one list.
      dashboardName: `${relayName}-${Stack.of(this).region}`,
      defaultInterval: Duration.hours(3),
      widgets: rows,
    });
  }
}

// Dashboard widgets for the relay's own metrics, by row; a row is 24 units wide.

const minute = Duration.minutes(1);

/**
 * The outcomes of `shared/adapters/telemetry/log.ts` with their colours. Red: failures of the
 * relay or its upstreams.
 */
const outcomes = {
  completed: '#2ca02c',
  client_gone: '#7f7f7f',
  refused: '#ff9f1c',
  limited: '#9467bd',
  failed: '#d62728',
};

/** A metric of the whole stack with a period of one minute. */
type MinuteMetric = (name: string, statistic: string, label: string) => IMetric;

const minuteMetrics =
  (relayName: string): MinuteMetric =>
  (name, statistic, label) =>
    relayMetric(relayName, name, statistic).with({ label, period: minute });

const graph = (props: GraphWidgetProps): IWidget =>
  new GraphWidget({ height: 6, leftYAxis: { min: 0, showUnits: false }, ...props });

function total(title: string, metric: IMetric): IWidget {
  return new SingleValueWidget({
    title,
    width: 6,
    height: 4,
    metrics: [metric],
    setPeriodToTimeRange: true,
    sparkline: false,
  });
}

/** Totals over the selected time range. */
const totalWidgets = (metric: MinuteMetric): IWidget[] => [
  total('Requests', metric('Requests', Stats.SUM, 'requests')),
  total('Failures', metric('Failures', Stats.SUM, 'failed or limited')),
  total('Revenue', metric('ChargeYuan', Stats.SUM, 'yuan')),
  total('Time to first content', metric('FirstContentMs', Stats.percentile(50), 'ms, p50')),
];

const outcomeWidgets = (metric: MinuteMetric, relayName: string): IWidget[] => [
  graph({
    title: 'Requests by outcome',
    width: 12,
    left: Object.entries(outcomes).map(([outcome, color]) =>
      requestsThat(relayName, outcome).with({ color }),
    ),
    stacked: true,
  }),
  graph({
    title: 'Failed requests and attempts',
    width: 12,
    left: [
      metric('Failures', Stats.SUM, 'requests that failed'),
      metric('FailedAttempts', Stats.SUM, 'attempts on a channel that failed'),
      metric('InternalErrors', Stats.SUM, 'bugs of the relay'),
    ],
  }),
];

function channelWidgets(relayName: string): IWidget[] {
  const firstContent = (statistic: string) => [ofEachChannel(relayName, 'FirstContentMs', statistic)];
  return [
    graph({ title: 'Time to first content by channel, p50 (ms)', width: 8, left: firstContent('p50') }),
    graph({ title: 'Time to first content by channel, p95 (ms)', width: 8, left: firstContent('p95') }),
    graph({ title: 'Answers by channel', width: 8, left: firstContent('SampleCount'), stacked: true }),
  ];
}

const earningWidgets = (metric: MinuteMetric, logGroupNames: string[]): IWidget[] => [
  graph({ title: 'Revenue (yuan)', width: 8, left: [metric('ChargeYuan', Stats.SUM, 'charged')] }),
  new LogQueryWidget({
    title: 'Tokens',
    width: 8,
    height: 6,
    view: LogQueryVisualizationType.LINE,
    logGroupNames,
    queryLines: [
      'filter message = "request"',
      'stats sum(prompt_tokens) as prompt, sum(completion_tokens) as completion by bin(5m)',
    ],
  }),
  graph({
    title: 'Share of answers with estimated usage',
    width: 8,
    left: [
      new MathExpression({
        expression: 'FILL(estimated, 0) / answers',
        usingMetrics: {
          estimated: metric('EstimatedUsage', Stats.SUM, 'answers'),
          // Each call that came to an upstream has a charge, if only of 0.
          answers: metric('ChargeYuan', Stats.SAMPLE_COUNT, 'answers'),
        },
        label: 'estimated',
        period: minute,
      }),
    ],
    leftYAxis: { min: 0, max: 1, showUnits: false },
  }),
];

const reservationWidgets = (metric: MinuteMetric): IWidget[] => [
  graph({
    title: 'Open reservations',
    width: 8,
    left: [
      metric('OpenReservations', Stats.MAXIMUM, 'open'),
      metric('ExpiredReservations', Stats.SUM, 'expired'),
    ],
  }),
  graph({
    title: 'Money: anything above zero needs a person',
    width: 8,
    left: [
      metric('ConservationBroken', Stats.SUM, 'does not balance'),
      metric('SettleLost', Stats.SUM, 'settle lost'),
      metric('ReserveUnknown', Stats.SUM, 'reserve unknown'),
      metric('ChargedAboveReserve', Stats.SUM, 'charged above reserve'),
      ...['LedgerPoisoned', 'GrantPoisoned', 'ReservationPoisoned'].map((name) =>
        metric(name, Stats.SUM, name.replace('Poisoned', ' unreadable').toLowerCase()),
      ),
      metric('PaymentParked', Stats.SUM, 'payment parked'),
    ],
  }),
  graph({
    title: 'Rows that operators edit',
    width: 8,
    left: [
      metric('BadRows', Stats.MAXIMUM, 'bad rows, unpriced models'),
      metric('WarnedRows', Stats.MAXIMUM, 'rows with a warning'),
      metric('UnpricedModels', Stats.MAXIMUM, 'models without a price'),
      metric('ConfigCompileFailed', Stats.SUM, 'compiles that failed'),
    ],
  }),
];

// Dashboard widgets for AWS metrics of functions and tables. A dashboard of more than 50 metrics is none of the three that
// are free of charge, so what only alarms need is not drawn.

const period = Duration.minutes(1);

/** That calls and their rows are written to, and the busiest of those that are read. */
const busyTables = ['quotas', 'ledger', 'runtime', 'keys'] as const satisfies TableName[];

function hostWidgets(
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
