/** Dashboard widgets for the relay's own metrics, by row; a row is 24 units wide. */
import { Duration } from 'aws-cdk-lib';
import {
  GraphWidget,
  LogQueryVisualizationType,
  LogQueryWidget,
  MathExpression,
  SingleValueWidget,
  Stats,
  type GraphWidgetProps,
  type IMetric,
  type IWidget,
} from 'aws-cdk-lib/aws-cloudwatch';
import { ofEachChannel, relayMetric, requestsThat } from './relay-metric.ts';

const minute = Duration.minutes(1);

/**
 * The outcomes of `shared/adapters/telemetry/request-metrics.ts` with their colours. Red: failures of the
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
export type MinuteMetric = (name: string, statistic: string, label: string) => IMetric;

export const minuteMetrics =
  (relayName: string): MinuteMetric =>
  (name, statistic, label) =>
    relayMetric(relayName, name, statistic).with({ label, period: minute });

export const graph = (props: GraphWidgetProps): IWidget =>
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
export const totalWidgets = (metric: MinuteMetric): IWidget[] => [
  total('Requests', metric('Requests', Stats.SUM, 'requests')),
  total('Failures', metric('Failures', Stats.SUM, 'failed or limited')),
  total('Revenue', metric('ChargeYuan', Stats.SUM, 'yuan')),
  total('Time to first content', metric('FirstContentMs', Stats.percentile(50), 'ms, p50')),
];

export const outcomeWidgets = (metric: MinuteMetric, relayName: string): IWidget[] => [
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

export function channelWidgets(relayName: string): IWidget[] {
  const firstContent = (statistic: string) => [ofEachChannel(relayName, 'FirstContentMs', statistic)];
  return [
    graph({ title: 'Time to first content by channel, p50 (ms)', width: 8, left: firstContent('p50') }),
    graph({ title: 'Time to first content by channel, p95 (ms)', width: 8, left: firstContent('p95') }),
    graph({ title: 'Answers by channel', width: 8, left: firstContent('SampleCount'), stacked: true }),
  ];
}

export const earningWidgets = (metric: MinuteMetric, logGroupNames: string[]): IWidget[] => [
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

export const reservationWidgets = (metric: MinuteMetric): IWidget[] => [
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
