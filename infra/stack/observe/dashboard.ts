/**
 * The CloudWatch dashboard: requests, revenue, reservations, functions, tables and alarm states, by row; a row is 24 units
 * wide. Three dashboards are free, each with at most 50 metrics, so metrics that only alarms need are not drawn.
 */
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
import { answeringFunctions, type FunctionName, type LogsOf } from '../constructs/function-descriptions.ts';
import type { RelayService } from '../constructs/relay-service.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { Triggers } from '../constructs/triggers.ts';
import { searchEachChannel, createRelayMetric, searchRequests, sumTableThrottles } from './relay-metric.ts';
import type { TableName } from '../../../shared/tables/table-names.ts';

interface DashboardProps {
  relayName: string;
  functions: RelayFunctions;
  triggers: Triggers;
  alarms: Alarms;
  service: RelayService | undefined;
  logsOf: LogsOf;
}

export class Dashboard extends Construct {
  readonly page: CloudWatchDashboard;

  constructor(scope: Construct, id: string, props: DashboardProps) {
    super(scope, id);
    const { all } = props.alarms;
    const states = new AlarmStatusWidget({ title: 'Alarms', alarms: all, width: 24, height: 4 });
    this.page = new CloudWatchDashboard(this, 'Dashboard', {
      // An account has one list of dashboards for all regions.
      dashboardName: `${props.relayName}-${Stack.of(this).region}`,
      defaultInterval: Duration.hours(3),
      widgets: [...layOutRows(props), ...(all.length > 0 ? [[states]] : [])],
    });
  }
}

const minute = Duration.minutes(1);

/** The tables that calls and their rows write to, and the busiest ones that they read. */
const busyTables = ['quotas', 'ledger', 'runtime', 'keys'] as const satisfies TableName[];

/**
 * The outcomes of `shared/adapters/telemetry/log.ts` with their colours. Failures of the relay or its upstreams are
 * red.
 */
const outcomes = {
  completed: '#2ca02c',
  client_gone: '#7f7f7f',
  refused: '#ff9f1c',
  limited: '#9467bd',
  failed: '#d62728',
};

const createGraph = (title: string, left: IMetric[], more: GraphWidgetProps = {}): IWidget =>
  new GraphWidget({ title, left, width: 8, height: 6, leftYAxis: { min: 0, showUnits: false }, ...more });

/** Sums over the selected time range. */
const createTotal = (title: string, metric: IMetric): IWidget =>
  new SingleValueWidget({
    title,
    width: 6,
    height: 4,
    metrics: [metric],
    setPeriodToTimeRange: true,
    sparkline: false,
  });

function layOutRows({ relayName, functions, triggers, service, logsOf }: DashboardProps): IWidget[][] {
  const own = (name: string, statistic: string, label: string): IMetric =>
    createRelayMetric(relayName, name, statistic).with({ label, period: minute });
  const measureFirstContent = (statistic: string) => [
    searchEachChannel(relayName, 'FirstContentMs', statistic),
  ];
  const measureEach = (metric: string, statistic: string, names: readonly FunctionName[]): IMetric[] =>
    names.map((label) => functions.get(label).lambda.metric(metric, { statistic, label, period: minute }));
  const streamReaders = [...new Set(triggers.mappings.map((mapping) => mapping.function))];
  // More metrics would cost money. Expired reservations already show crashed runs, and the alarm ServerErrors counts the 5xx of
  // account endpoints.
  const watched = [...functions.byName.keys()].filter(
    (name) => name !== 'background' && name !== 'selfservice',
  );
  return [
    [
      createTotal('Requests', own('Requests', Stats.SUM, 'requests')),
      createTotal('Failures', own('Failures', Stats.SUM, 'failed or limited')),
      createTotal('Revenue', own('ChargeYuan', Stats.SUM, 'yuan')),
      createTotal('Time to first content', own('FirstContentMs', Stats.percentile(50), 'ms, p50')),
    ],
    [
      createGraph(
        'Requests by outcome',
        Object.entries(outcomes).map(([outcome, color]) =>
          searchRequests(relayName, outcome).with({ color }),
        ),
        { width: 12, stacked: true },
      ),
      createGraph(
        'Failed requests and attempts',
        [
          own('Failures', Stats.SUM, 'requests that failed'),
          own('FailedAttempts', Stats.SUM, 'attempts on a channel that failed'),
          own('InternalErrors', Stats.SUM, 'bugs of the relay'),
        ],
        { width: 12 },
      ),
    ],
    [
      createGraph('Time to first content by channel, p50 (ms)', measureFirstContent('p50')),
      createGraph('Time to first content by channel, p95 (ms)', measureFirstContent('p95')),
      createGraph('Answers by channel', measureFirstContent('SampleCount'), { stacked: true }),
    ],
    [
      createGraph('Revenue (yuan)', [own('ChargeYuan', Stats.SUM, 'charged')]),
      new LogQueryWidget({
        title: 'Tokens',
        width: 8,
        height: 6,
        view: LogQueryVisualizationType.LINE,
        logGroupNames: logsOf(answeringFunctions).map(({ logGroupName }) => logGroupName),
        queryLines: [
          'filter message = "request"',
          'stats sum(prompt_tokens) as prompt, sum(completion_tokens) as completion by bin(5m)',
        ],
      }),
      createGraph(
        'Share of answers with estimated usage',
        [
          new MathExpression({
            expression: 'FILL(estimated, 0) / answers',
            usingMetrics: {
              estimated: own('EstimatedUsage', Stats.SUM, 'answers'),
              // Each call that reached an upstream has a charge, even if it is 0.
              answers: own('ChargeYuan', Stats.SAMPLE_COUNT, 'answers'),
            },
            label: 'estimated',
            period: minute,
          }),
        ],
        { leftYAxis: { min: 0, max: 1, showUnits: false } },
      ),
    ],
    [
      createGraph('Open reservations', [
        own('OpenReservations', Stats.MAXIMUM, 'open'),
        own('ExpiredReservations', Stats.SUM, 'expired'),
      ]),
      createGraph('Money: anything above zero needs a person', [
        own('ConservationBroken', Stats.SUM, 'does not balance'),
        own('SettleLost', Stats.SUM, 'settle lost'),
        own('ReserveUnknown', Stats.SUM, 'reserve unknown'),
        own('ChargedAboveReserve', Stats.SUM, 'charged above reserve'),
        own('LedgerPoisoned', Stats.SUM, 'ledger unreadable'),
        own('GrantPoisoned', Stats.SUM, 'grant unreadable'),
        own('ReservationPoisoned', Stats.SUM, 'reservation unreadable'),
        own('PaymentParked', Stats.SUM, 'payment parked'),
      ]),
      createGraph('Rows that operators edit', [
        own('BadRows', Stats.MAXIMUM, 'invalid rows, unpriced models'),
        own('WarnedRows', Stats.MAXIMUM, 'rows with a warning'),
        own('ConfigCompileFailed', Stats.SUM, 'failed compiles'),
      ]),
    ],
    [
      createGraph(
        'Throttled calls of tables',
        busyTables.map((name) => sumTableThrottles(relayName, name)),
        { width: 12 },
      ),
      createGraph('Age of streams (ms)', measureEach('IteratorAge', Stats.MAXIMUM, streamReaders), {
        width: 12,
      }),
    ],
    [
      createGraph('Errors of functions', measureEach('Errors', Stats.SUM, watched)),
      ...(service
        ? [
            createGraph('Requests in flight', [
              own('RequestsInFlight', Stats.AVERAGE, 'of a task'),
              own('RequestsInFlight', Stats.MAXIMUM, 'of the busiest task'),
            ]),
            createGraph('Servers', [
              service.service.metricCpuUtilization({ label: 'processor (%)', period: minute }),
              service.service.metricMemoryUtilization({ label: 'memory (%)', period: minute }),
              service.unanswered(minute).with({ label: 'unanswered requests' }),
            ]),
          ]
        : [
            createGraph(
              'Calls in flight',
              measureEach('ConcurrentExecutions', Stats.MAXIMUM, answeringFunctions),
            ),
            createGraph(
              'Run time of functions, p95 (ms)',
              measureEach('Duration', Stats.percentile(95), answeringFunctions),
            ),
          ]),
    ],
  ];
}
