/** Creates the CDK app with its single relay stack. The caller synthesizes it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { App, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { readStackOptions } from './options/stack-options.ts';
import { RelayStack } from './relay-stack.ts';

const projectFolder = join(import.meta.dirname, '..', '..');

export interface AppSettings {
  /** Receives templates and assets. */
  outputFolder: string;
  /** The build's output: one folder per function. */
  bundlesFolder?: string;
  /** Overrides `cdk.json`; context values of the CLI override both. */
  context?: Record<string, unknown>;
  /** Runs CloudFormation's rules and cdk-nag, which take most of the time of a synthesis. Default: true. */
  validate?: boolean;
}

/** Throws an Error for people to read when a context value is invalid. */
export function createApp(settings: AppSettings): { app: App; stack: RelayStack } {
  const validate = settings.validate ?? true;
  const app = new App({
    outdir: settings.outputFolder,
    // The CLI passes the context of cdk.json itself. Without the CLI this line supplies its feature flags.
    context: { ...featureFlags(), ...settings.context },
    analyticsReporting: false,
    builtinCloudFormationValidation: validate,
  });
  const stack = new RelayStack(app, {
    options: readStackOptions(app.node),
    ...(settings.bundlesFolder !== undefined && { bundlesFolder: settings.bundlesFolder }),
  });
  if (validate) Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return { app, stack };
}

function featureFlags(): Record<string, unknown> {
  const { context } = JSON.parse(readFileSync(join(projectFolder, 'cdk.json'), 'utf8')) as {
    context: Record<string, unknown>;
  };
  return context;
}
