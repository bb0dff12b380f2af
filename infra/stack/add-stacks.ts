/** The stacks of a stage: the relay, and what is beside it at the edge. */
import type { App, Stack } from 'aws-cdk-lib';
import { RelayEdge, RelayEdgeAlarms, edgeRegion } from './edge/relay-edge.ts';
import { valueOf } from './options/read-options.ts';
import { RelayStack, type RelayStackProps } from './relay-stack.ts';

export interface CreatedStacks {
  stack: RelayStack;
  /** The stacks beside it, in us-east-1. */
  edge: readonly Stack[];
}

type StackParts = Pick<RelayStackProps, 'stackName' | 'options' | 'bundlesFolder'>;

/** The relay, after the ACL that its distribution names, and before the alarms that name its distribution. */
export function addStacks(app: App, { stackName, options, bundlesFolder }: StackParts): CreatedStacks {
  const { region = '', webAcl, edgeAlarms, alarmEmail } = options;
  const isElsewhere = region !== edgeRegion;
  const place = { relayName: stackName, region };
  const requestsPerMinute = valueOf(options, 'webAclRequestsPerMinute');
  const before =
    webAcl === true && isElsewhere ? new RelayEdge(app, { ...place, requestsPerMinute }) : undefined;
  const stack = new RelayStack(app, { stackName, options, bundlesFolder, webAclArn: before?.webAclArn });
  if (before) stack.addStackDependency(before);
  if (!edgeAlarms || !isElsewhere) return { stack, edge: before ? [before] : [] };
  const after = new RelayEdgeAlarms(app, {
    ...place,
    relayStackName: stackName,
    ...(typeof edgeAlarms === 'string' ? { topicArn: edgeAlarms } : { email: alarmEmail }),
  });
  after.addStackDependency(stack);
  return { stack, edge: [...(before ? [before] : []), after] };
}
