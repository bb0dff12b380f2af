/**
 * Alarms on how fast the error budget of an objective burns. A burn rate of 1 spends the budget in exactly 30 days; one
 * alarm looks for outages that spend it in two days, the other for faults that spend it in ten.
 */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Stats, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import type { AlarmDefinition, Severity } from './alarm-definition.ts';
import { answering } from './function-alarms.ts';
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

/** A weak objective allows so much that its budget cannot burn 14.4 times as fast: this share triggers in any case. */
const percentMax = 90;

export function objectiveAlarms(parts: ObjectiveParts): AlarmDefinition[] {
  return windows.flatMap((window) => [availability(parts, window), firstContent(parts, window)]);
}

const suffix = ({ severity }: Window): string => (severity === 'page' ? 'Page' : 'Ticket');

/** 100 - 99.9 is not 0.1. */
const rounded = (percent: number): number => Number(percent.toFixed(6));

/** Percent of calls that may not be as the objective wants them, and percent that triggers. */
function sharesOf(objectivePercent: number, { burnRate }: Window): { budget: number; trigger: number } {
  const budget = rounded(100 - objectivePercent);
  return { budget, trigger: Math.min(rounded(burnRate * budget), percentMax) };
}

function availability({ relayName, functions, objectives }: ObjectiveParts, of: Window): AlarmDefinition {
  const { availabilityPercent = 99.5 } = objectives;
  const { severity, window, callsMin } = of;
  const { budget, trigger } = sharesOf(availabilityPercent, of);
  // A call whose function dies writes no line. Each such call makes a ticket anyway, when the sweeper closes it.
  const dying = severity === 'page' ? answering(functions) : [];
  const died = Object.fromEntries(
    dying.map((name) => [
      `${name}Died`,
      functions.get(name).lambda.metricErrors({ period: window, statistic: Stats.SUM }),
    ]),
  );
  // 1 or 0 for each call that was not refused: a flood of wrong keys would hide an outage.
  const calls = (statistic: string): IMetric =>
    relayMetric(relayName, 'CallFailed', statistic).with({ period: window });
  // A metric without any value is left out of a SUM.
  const withDied = (id: string, metric: IMetric): IMetric =>
    new MathExpression({
      expression: `SUM([${[id, ...Object.keys(died)].map((each) => `FILL(${each}, 0)`).join(', ')}])`,
      usingMetrics: { [id]: metric, ...died },
      period: window,
    });
  return {
    id: `Availability${suffix(of)}`,
    severity,
    description: `Of a hundred calls ${trigger} fail, and ${availabilityPercent} % availability allows ${budget}: the dashboard says on which channels, ops channel list how they are`,
    metric: new MathExpression({
      expression: `IF(calls >= ${callsMin}, 100 * bad / calls, 0)`,
      usingMetrics: {
        calls: withDied('answered', calls(Stats.SAMPLE_COUNT)),
        bad: withDied('failed', calls(Stats.SUM)),
      },
      label: 'failures in a hundred calls',
      period: window,
    }),
    threshold: trigger,
  };
}

/**
 * By a percentile, which is one metric to pay for: that 72 of 100 answers are late and that the 28th percentile is late
 * are the same.
 */
function firstContent({ relayName, objectives }: ObjectiveParts, of: Window): AlarmDefinition {
  const { firstContentPercent = 95, firstContentSeconds = 10 } = objectives;
  const { severity, window } = of;
  const { budget, trigger } = sharesOf(firstContentPercent, of);
  const percentile = rounded(100 - trigger);
  return {
    id: `FirstContent${suffix(of)}`,
    severity,
    description: `Of a hundred answers ${trigger} begin after ${firstContentSeconds} s or later, and the objective allows ${budget}: the dashboard says on which channels`,
    metric: relayMetric(relayName, 'FirstContentMs', Stats.percentile(percentile)).with({ period: window }),
    threshold: firstContentSeconds * 1000,
    wantsManyValues: true,
  };
}
