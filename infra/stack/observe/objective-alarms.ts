/**
 * Alarms on how fast the error budget of an objective burns. A burn rate of 1 spends the budget in exactly 30 days; one
 * alarm looks for outages that spend it in two days, the other for faults that spend it in ten.
 */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Stats, type IMetric, type Metric } from 'aws-cdk-lib/aws-cloudwatch';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { AlarmDefinition, Severity } from './alarm-definition.ts';
import { relayMetric } from './relay-metric.ts';

export interface Objectives {
  /** Of a hundred calls, how many must not fail. Default: 99.5. */
  availabilityPercent?: number;
  /** Of a hundred answers, how many must begin in time. Default: 95. */
  firstContentPercent?: number;
  /** What "in time" is, in seconds from the arrival of the call to the first content. Default: 10. */
  firstContentSeconds?: number;
}

export interface ObjectiveParts {
  relayName: string;
  functions: RelayFunctions;
  objectives: Objectives;
}

interface Window {
  severity: Severity;
  window: Duration;
  burnRate: number;
  /** With fewer calls a ratio says nothing: one failure in two calls is not an outage. */
  callsMin: number;
}

const windows: Window[] = [
  { severity: 'page', window: Duration.hours(1), burnRate: 14.4, callsMin: 20 },
  { severity: 'ticket', window: Duration.days(1), burnRate: 3, callsMin: 50 },
];

export function objectiveAlarms(parts: ObjectiveParts): AlarmDefinition[] {
  return windows.flatMap((window) => [availability(parts, window), firstContent(parts, window)]);
}

const suffix = ({ severity }: Window): string => (severity === 'page' ? 'Page' : 'Ticket');

const period = (metric: Metric, window: Duration): Metric => metric.with({ period: window });

function availability({ relayName, functions, objectives }: ObjectiveParts, of: Window): AlarmDefinition {
  const { availabilityPercent = 99.5 } = objectives;
  const { severity, window, burnRate, callsMin } = of;
  // A call whose function dies writes no line. Each such call makes a ticket anyway: FunctionErrors.
  const dying = severity === 'page' ? (['chat', 'responses'] as const) : [];
  const died = Object.fromEntries(
    dying.map((name) => [
      `${name}Died`,
      functions.get(name).lambda.metricErrors({ period: window, statistic: Stats.SUM }),
    ]),
  );
  const allDied = Object.keys(died).map((id) => `FILL(${id}, 0)`);
  const counted = (name: string): IMetric => period(relayMetric(relayName, name, Stats.SUM), window);
  // A metric without any value is left out of a SUM.
  const sum = (terms: string[], metrics: Record<string, IMetric>): IMetric =>
    new MathExpression({
      expression: `SUM([${[...terms, ...allDied].join(', ')}])`,
      usingMetrics: { ...metrics, ...died },
      period: window,
    });
  const burn = new MathExpression({
    expression: `IF(calls >= ${callsMin}, 100 * bad / calls / ${rounded(100 - availabilityPercent)}, 0)`,
    usingMetrics: {
      // Refused calls do not count: a flood of wrong keys would hide an outage.
      calls: sum(['FILL(requests, 0)', '0 - FILL(refusals, 0)'], {
        requests: counted('Requests'),
        refusals: counted('Refusals'),
      }),
      bad: sum(['FILL(failures, 0)'], { failures: counted('Failures') }),
    },
    label: 'burn rate of the availability objective',
    period: window,
  });
  return {
    id: `Availability${suffix(of)}`,
    severity,
    description: `Calls fail ${burnRate} times as fast as ${availabilityPercent} % availability allows: the dashboard says on which channels, ops channel list how they are`,
    metric: burn,
    threshold: burnRate,
  };
}

function firstContent({ relayName, objectives }: ObjectiveParts, of: Window): AlarmDefinition {
  const { firstContentPercent = 95, firstContentSeconds = 10 } = objectives;
  const { severity, window, burnRate, callsMin } = of;
  const measured = (statistic: string): IMetric =>
    period(relayMetric(relayName, 'FirstContentMs', statistic), window);
  return {
    id: `FirstContent${suffix(of)}`,
    severity,
    description: `Answers begin later than ${firstContentSeconds} s, ${burnRate} times as often as the objective of ${firstContentPercent} % allows: the dashboard says on which channels`,
    metric: new MathExpression({
      expression: `IF(answers >= ${callsMin}, (100 - inTime) / ${rounded(100 - firstContentPercent)}, 0)`,
      usingMetrics: {
        answers: measured(Stats.SAMPLE_COUNT),
        inTime: measured(Stats.percentileRank(firstContentSeconds * 1000)),
      },
      label: 'burn rate of the objective on the time to first content',
      period: window,
    }),
    threshold: burnRate,
  };
}

/** 100 - 99.9 is not 0.1. */
const rounded = (percent: number): number => Number(percent.toFixed(6));
