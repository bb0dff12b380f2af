/** Refuses props of the construct that the options of a stage could not say either, and regions where answers cannot stream. */
import { Stack, Token } from 'aws-cdk-lib';
import type { Construct } from 'constructs';
import { propProblems } from './options/prop-problems.ts';
import { regionProblem, withoutEdgeLogs } from './options/streaming-regions.ts';

/** Those that an option has too. */
const checkedNames = [
  'originSecrets',
  'sealKeys',
  'objectives',
  'canary',
  'memory',
  'reservedConcurrency',
  'compute',
  'defaultLimits',
  'tracing',
  'bedrockModels',
  'alertSender',
  'webAclArn',
] as const;

type CheckedProps = Readonly<Partial<Record<(typeof checkedNames)[number], unknown>>> & {
  domain?: { name: string };
  accessLog?: unknown;
};

/** Throws an Error that names every such prop. */
export function refuseProps(construct: Construct, props: CheckedProps): void {
  const { region } = Stack.of(construct);
  const where = Token.isUnresolved(region) ? undefined : regionProblem(region);
  const checked = [
    ...checkedNames.map((name) => [name, props[name]] as const),
    ['domain', props.domain?.name] as const,
  ];
  const known = Object.fromEntries(checked.filter(([, value]) => isKnown(value)));
  const logless = props.accessLog === true && withoutEdgeLogs.has(region);
  const problems = [
    ...(where === undefined ? [] : [where]),
    ...(logless
      ? [`accessLog: CloudFront delivers no log to a bucket in ${region}: give one in another region`]
      : []),
    ...propProblems(known),
  ];
  if (problems.length > 0)
    throw new Error(problems.map((each) => `${construct.node.path}: ${each}`).join('\n'));
}

/** Not only to CloudFormation. */
const isKnown = (value: unknown): boolean =>
  !Token.isUnresolved(value) &&
  (typeof value !== 'object' || value === null || Object.values(value).every(isKnown));
