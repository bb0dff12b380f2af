/** Alarm definitions that give up a deployment: one for each function with a URL, on its newest version alone. */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, Stats, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import { versionMetrics, type VersionMetrics } from '../rollout/version-metrics.ts';
import type { AlarmDefinition } from './alarm-definition.ts';

const period = Duration.minutes(5);
/** From so many calls on a ratio is trusted. */
const callsMin = 50;
/** So many failures are enough where nothing but failures was seen: a new version may get few calls. */
const onlyFailuresMin = 5;
const failurePercentMax = 10;

export const versionAlarmId = (name: FunctionName): string => `${name}NewVersion`;

/** Of a function that writes no line for CloudWatch to count: runs that end in an error, minute by minute. */
const minutes = { looked: 5, bad: 3 };

export function versionAlarms(relayName: string, functions: RelayFunctions): AlarmDefinition[] {
  const alarms = [];
  for (const [name, { live }] of functions.byName)
    if (live !== undefined) alarms.push(versionAlarm(name, versionMetrics({ relayName, name, live })));
  return alarms;
}

function versionAlarm(name: FunctionName, { errors, calls, failures }: VersionMetrics): AlarmDefinition {
  const common = {
    id: versionAlarmId(name),
    severity: 'ticket',
    description: `The newest version of function ${name} fails, and the deployment is rolled back: its log group says why`,
  } as const;
  if (calls && failures) {
    const metric = failurePercent({ errors, calls, failures });
    return { ...common, metric, threshold: failurePercentMax };
  }
  return {
    ...common,
    // Lambda says 1 for a run with an error, else 0. Were it to say nothing then, these were the minutes with an error.
    metric: errors.with({ statistic: Stats.AVERAGE, period: Duration.minutes(1) }),
    threshold: failurePercentMax / 100,
    periods: minutes.looked,
    periodsMin: minutes.bad,
  };
}

function failurePercent({ errors, calls, failures }: Required<VersionMetrics>): IMetric {
  const sum = (usingMetrics: Record<string, IMetric>): IMetric =>
    new MathExpression({
      expression: `SUM([${Object.keys(usingMetrics)
        .map((id) => `FILL(${id}, 0)`)
        .join(', ')}])`,
      usingMetrics,
      period,
    });
  return new MathExpression({
    expression: `IF(all >= ${callsMin}, 100 * bad / all, IF(bad >= ${onlyFailuresMin} AND bad >= all, 100, 0))`,
    usingMetrics: {
      bad: sum({ failures, errors }),
      // A call whose function dies writes no line, so it is added.
      all: sum({ calls, errors }),
    },
    label: 'failures of the newest version in a hundred calls',
    period,
  });
}
