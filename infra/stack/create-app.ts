/** Creates the CDK app of one stage. The caller synthesizes it. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { App, Validations, type IStackSynthesizer, type Stack } from 'aws-cdk-lib';
import {
  refuseOptionsInContext,
  readStage,
  readOptions,
  readStageFile,
  valueOf,
} from './options/read-options.ts';
import { hasDistribution } from './options/front-door.ts';
import { findRegionProblem } from './options/streaming-regions.ts';
import { RelayEdge, RelayEdgeAlarms, edgeRegion } from './edge/relay-edge.ts';
import { RelayStack, type RelayStackProps } from './relay-stack.ts';

const require = createRequire(import.meta.url);
const projectFolder = join(import.meta.dirname, '..', '..');

interface AppSettings {
  /** Receives templates and assets. */
  outputFolder: string;
  /** The build's output: one folder per function. */
  bundlesFolder?: string;
  /** Overrides `cdk.json`; context values of the CLI override both. */
  context?: Record<string, unknown>;
  /** Content of the stage's file. By default the file is read. */
  options?: unknown;
  /** The environment's region. Used if the stage's file names none. */
  region?: string | undefined;
  /** Synthesizer of the relay's stack. CDK's by default. */
  synthesizer?: IStackSynthesizer;
  /** Runs CloudFormation's rules and cdk-nag, which take most of the time of a synthesis. Default: true. */
  validate?: boolean;
}

/** Throws a readable Error if the stage or an option is invalid. */
export function createApp(settings: AppSettings): CreatedStacks & { app: App } {
  const { bundlesFolder, synthesizer, validate = true } = settings;
  const app = new App({
    outdir: settings.outputFolder,
    // The CLI passes the context of cdk.json itself. Without the CLI this line supplies its feature flags.
    context: { ...readFeatureFlags(), ...(!validate && withoutReport), ...settings.context },
    analyticsReporting: false,
    builtinCloudFormationValidation: validate,
    treeMetadata: validate,
  });
  const stage = readStage(app.node);
  refuseOptionsInContext(app.node, stage);
  const options =
    settings.options === undefined
      ? readStageFile(projectFolder, stage)
      : readOptions(stage, settings.options);
  const problem = options.region === undefined ? findRegionProblem(settings.region ?? '') : undefined;
  if (problem !== undefined) throw new Error(`AWS_REGION: ${problem}`);
  const stacks = addStacks(app, { ...stage, options, bundlesFolder, ...(synthesizer && { synthesizer }) });
  if (validate) addNag(app);
  return { app, ...stacks };
}

/** Loads cdk-nag late: that takes 0.2 s, and the local stack and tests synthesize without it. */
function addNag(app: App): void {
  const { AwsSolutionsChecks } = require('cdk-nag') as typeof import('cdk-nag');
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
}

/** Disables data that only the validation report reads. With the construct tree they take a fifth of the time of a synthesis. */
export const withoutReport = {
  '@aws-cdk/core:annotationsInValidationReport': false,
  'aws:cdk:disable-creation-stack-traces': true,
};

function readFeatureFlags(): Record<string, unknown> {
  const { context } = JSON.parse(readFileSync(join(projectFolder, 'cdk.json'), 'utf8')) as {
    context: Record<string, unknown>;
  };
  return context;
}

// The stacks of a stage: the relay, and its edge stacks.

interface CreatedStacks {
  stack: RelayStack;
  /** The edge stacks, in us-east-1. */
  edge: readonly Stack[];
}

type StackParts = Pick<RelayStackProps, 'stackName' | 'options' | 'bundlesFolder' | 'synthesizer'>;

/** Creates the ACL first, because the distribution names it, then the relay, then the alarms on its distribution. */
export function addStacks(app: App, { stackName, options, ...own }: StackParts): CreatedStacks {
  const { region = '', webAcl, edgeAlarms, alarmEmail } = options;
  const isElsewhere = region !== edgeRegion;
  const place = { relayName: stackName, region };
  const requestsPerMinute = valueOf(options, 'webAclRequestsPerMinute');
  const before =
    webAcl === true && isElsewhere && hasDistribution(valueOf(options, 'frontDoor'))
      ? new RelayEdge(app, { ...place, requestsPerMinute })
      : undefined;
  const stack = new RelayStack(app, { stackName, options, ...own, webAclArn: before?.webAclArn });
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
