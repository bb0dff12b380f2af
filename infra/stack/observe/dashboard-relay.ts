/** Dashboard widgets of the relay's own metrics, row by row; a row is 24 wide. */
import { Duration } from 'aws-cdk-lib';
import {
  GraphWidget,
  SingleValueWidget,
  Stats,
  type GraphWidgetProps,
  type IMetric,
  type IWidget,
} from 'aws-cdk-lib/aws-cloudwatch';
import { ofEachChannel, relayMetric, requestsThat } from './relay-metric.ts';

const minute = Duration.minutes(1);

/** As `shared/adapters/telemetry/request-metrics.ts` names them, with their colours: red is a failure of the relay or its upstreams. */
const outcomes = {
  completed: '#2ca02c',
  client_gone: '#7f7f7f',
  refused: '#ff9f1c',
  limited: '#9467bd',
  failed: '#d62728',
};

const drawn = (stackName: string, name: string, statistic: string, label: string): IMetric =>
  relayMetric(stackName, name, statistic, minute).with({ label });

export function graph(title: string, width: number, left: IMetric[], more: GraphWidgetProps = {}): IWidget {
  return new GraphWidget({ title, width, height: 6, left, leftYAxis: { min: 0, showUnits: false }, ...more });
}

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

/** Totals of the time range on show. */
export const totalWidgets = (stackName: string): IWidget[] => [
  total('Requests', drawn(stackName, 'Requests', Stats.SUM, 'requests')),
  total('Failures', drawn(stackName, 'Failures', Stats.SUM, 'failed or limited')),
  total('Revenue', drawn(stackName, 'ChargeYuan', Stats.SUM, 'yuan')),
  total('Time to first content', drawn(stackName, 'FirstContentMs', Stats.percentile(50), 'ms, p50')),
];

export const requestWidgets = (stackName: string): IWidget[][] => [
  [
    graph(
      'Requests by outcome',
      12,
      Object.entries(outcomes).map(([outcome, color]) => requestsThat(stackName, outcome).with({ color })),
      { stacked: true },
    ),
    graph('Failed requests and attempts', 12, [
      drawn(stackName, 'Failures', Stats.SUM, 'requests that failed'),
      drawn(stackName, 'FailedAttempts', Stats.SUM, 'attempts on a channel that failed'),
      drawn(stackName, 'InternalErrors', Stats.SUM, 'bugs of the relay'),
    ]),
  ],
  [
    graph('Time to first content by channel, p50 (ms)', 8, [
      ofEachChannel(stackName, 'FirstContentMs', 'p50'),
    ]),
    graph('Time to first content by channel, p95 (ms)', 8, [
      ofEachChannel(stackName, 'FirstContentMs', 'p95'),
    ]),
    graph('Answers by channel', 8, [ofEachChannel(stackName, 'FirstContentMs', 'SampleCount')], {
      stacked: true,
    }),
  ],
];

export const earningWidgets = (stackName: string): IWidget[] => [
  graph('Revenue (yuan)', 8, [drawn(stackName, 'ChargeYuan', Stats.SUM, 'charged')]),
  graph('Tokens', 8, [
    drawn(stackName, 'PromptTokens', Stats.SUM, 'prompt'),
    drawn(stackName, 'CompletionTokens', Stats.SUM, 'completion'),
  ]),
  graph(
    'Share of answers with estimated usage',
    8,
    [drawn(stackName, 'EstimatedUsage', Stats.AVERAGE, 'estimated')],
    { leftYAxis: { min: 0, max: 1, showUnits: false } },
  ),
];

export const reservationWidgets = (stackName: string): IWidget[] => [
  graph('Open reservations', 8, [
    drawn(stackName, 'OpenReservations', Stats.MAXIMUM, 'open'),
    drawn(stackName, 'ExpiredReservations', Stats.SUM, 'expired'),
  ]),
  graph('Reservations: anything above zero needs a person', 8, [
    drawn(stackName, 'ConservationBroken', Stats.SUM, 'does not balance'),
    drawn(stackName, 'SettleLost', Stats.SUM, 'settle lost'),
    drawn(stackName, 'ReserveUnknown', Stats.SUM, 'reserve unknown'),
    ...['LedgerPoisoned', 'GrantPoisoned', 'ReservationPoisoned'].map((name) =>
      drawn(stackName, name, Stats.SUM, name.replace('Poisoned', ' unreadable').toLowerCase()),
    ),
  ]),
  graph('Rows that operators edit', 8, [
    drawn(stackName, 'BadRows', Stats.MAXIMUM, 'rows with a problem'),
    drawn(stackName, 'WarnedRows', Stats.MAXIMUM, 'rows with a warning'),
    drawn(stackName, 'UnpricedModels', Stats.MAXIMUM, 'models without a price'),
    drawn(stackName, 'ConfigCompileFailed', Stats.SUM, 'compiles that failed'),
  ]),
];
