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

const minuteMetrics =
  (stackName: string) =>
  (name: string, statistic: string, label: string): IMetric =>
    relayMetric(stackName, name, statistic).with({ label, period: minute });

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

/** Totals of the time range on show. */
export function totalWidgets(stackName: string): IWidget[] {
  const metric = minuteMetrics(stackName);
  return [
    total('Requests', metric('Requests', Stats.SUM, 'requests')),
    total('Failures', metric('Failures', Stats.SUM, 'failed or limited')),
    total('Revenue', metric('ChargeYuan', Stats.SUM, 'yuan')),
    total('Time to first content', metric('FirstContentMs', Stats.percentile(50), 'ms, p50')),
  ];
}

export function requestWidgets(stackName: string): IWidget[][] {
  const metric = minuteMetrics(stackName);
  const firstContent = (statistic: string) => [ofEachChannel(stackName, 'FirstContentMs', statistic)];
  const byOutcome = Object.entries(outcomes).map(([outcome, color]) =>
    requestsThat(stackName, outcome).with({ color }),
  );
  const failed = [
    metric('Failures', Stats.SUM, 'requests that failed'),
    metric('FailedAttempts', Stats.SUM, 'attempts on a channel that failed'),
    metric('InternalErrors', Stats.SUM, 'bugs of the relay'),
  ];
  return [
    [
      graph({ title: 'Requests by outcome', width: 12, left: byOutcome, stacked: true }),
      graph({ title: 'Failed requests and attempts', width: 12, left: failed }),
    ],
    [
      graph({ title: 'Time to first content by channel, p50 (ms)', width: 8, left: firstContent('p50') }),
      graph({ title: 'Time to first content by channel, p95 (ms)', width: 8, left: firstContent('p95') }),
      graph({ title: 'Answers by channel', width: 8, left: firstContent('SampleCount'), stacked: true }),
    ],
  ];
}

export function earningWidgets(stackName: string): IWidget[] {
  const metric = minuteMetrics(stackName);
  const tokens = [
    metric('PromptTokens', Stats.SUM, 'prompt'),
    metric('CompletionTokens', Stats.SUM, 'completion'),
  ];
  return [
    graph({ title: 'Revenue (yuan)', width: 8, left: [metric('ChargeYuan', Stats.SUM, 'charged')] }),
    graph({ title: 'Tokens', width: 8, left: tokens }),
    graph({
      title: 'Share of answers with estimated usage',
      width: 8,
      left: [metric('EstimatedUsage', Stats.AVERAGE, 'estimated')],
      leftYAxis: { min: 0, max: 1, showUnits: false },
    }),
  ];
}

export function reservationWidgets(stackName: string): IWidget[] {
  const metric = minuteMetrics(stackName);
  const open = [
    metric('OpenReservations', Stats.MAXIMUM, 'open'),
    metric('ExpiredReservations', Stats.SUM, 'expired'),
  ];
  const broken = [
    metric('ConservationBroken', Stats.SUM, 'does not balance'),
    metric('SettleLost', Stats.SUM, 'settle lost'),
    metric('ReserveUnknown', Stats.SUM, 'reserve unknown'),
    ...['LedgerPoisoned', 'GrantPoisoned', 'ReservationPoisoned'].map((name) =>
      metric(name, Stats.SUM, name.replace('Poisoned', ' unreadable').toLowerCase()),
    ),
  ];
  const rows = [
    metric('BadRows', Stats.MAXIMUM, 'rows with a problem'),
    metric('WarnedRows', Stats.MAXIMUM, 'rows with a warning'),
    metric('UnpricedModels', Stats.MAXIMUM, 'models without a price'),
    metric('ConfigCompileFailed', Stats.SUM, 'compiles that failed'),
  ];
  return [
    graph({ title: 'Open reservations', width: 8, left: open }),
    graph({ title: 'Money: anything above zero needs a person', width: 8, left: broken }),
    graph({ title: 'Rows that operators edit', width: 8, left: rows }),
  ];
}
