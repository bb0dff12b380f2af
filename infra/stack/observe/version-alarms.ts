/** Alarm definitions that give up a deployment: one for each function with a URL, on its newest version alone. */
import { Duration } from 'aws-cdk-lib';
import { MathExpression, type IMetric } from 'aws-cdk-lib/aws-cloudwatch';
import type { FunctionName } from '../constructs/function-descriptions.ts';
import type { RelayFunctions } from '../constructs/relay-functions.ts';
import { versionMetrics } from '../rollout/version-metrics.ts';
import type { AlarmDefinition } from './alarm-definition.ts';

const period = Duration.minutes(5);
/** From so many calls on a ratio is trusted. */
const callsMin = 50;
/** So many failures are enough where nothing but failures was seen: a new version may get few calls. */
const onlyFailuresMin = 5;
const failurePercentMax = 10;

export const versionAlarmId = (name: FunctionName): string => `${name}NewVersion`;

export function versionAlarms(relayName: string, functions: RelayFunctions): AlarmDefinition[] {
  return [...functions.byName].flatMap(([name, { live }]) => {
    if (live === undefined) return [];
    return {
      id: versionAlarmId(name),
      severity: 'ticket',
      description: `The newest version of function ${name} fails, and the deployment is rolled back: its log group says why`,
      metric: failurePercent(versionMetrics({ relayName, name, live })),
      threshold: failurePercentMax,
    };
  });
}

function failurePercent({ errors, invocations, calls, failures }: Record<string, IMetric>): IMetric {
  const sum = (metrics: Record<string, IMetric | undefined>): IMetric => {
    const known = Object.entries(metrics).flatMap(([id, metric]) => (metric ? [[id, metric] as const] : []));
    return new MathExpression({
      expression: `SUM([${known.map(([id]) => `FILL(${id}, 0)`).join(', ')}])`,
      usingMetrics: Object.fromEntries(known),
      period,
    });
  };
  return new MathExpression({
    expression: `IF(all >= ${callsMin}, 100 * bad / all, IF(bad >= ${onlyFailuresMin} AND bad >= all, 100, 0))`,
    usingMetrics: {
      bad: sum({ failures, errors }),
      // A call whose function dies writes no line, so it is added; without lines Lambda's own count has both.
      all: invocations ? sum({ invocations }) : sum({ calls, errors }),
    },
    label: 'failures of the newest version in a hundred calls',
    period,
  });
}
