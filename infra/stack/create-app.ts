/** Makes the CDK app with the one relay stack in it; synthesizing is up to the caller. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { App, Validations } from 'aws-cdk-lib';
import { AwsSolutionsChecks } from 'cdk-nag';
import { readStackOptions } from './options/stack-options.ts';
import { RelayStack } from './relay-stack.ts';

const projectFolder = join(import.meta.dirname, '..', '..');

export interface AppSettings {
  /** Where templates and assets go. */
  outputFolder: string;
  /** The build's output: one folder per function. */
  bundlesFolder?: string;
  /** Stronger than `cdk.json`; what the CLI passes is stronger still. */
  context?: Record<string, unknown>;
  /** CloudFormation's rules and cdk-nag: most of the time of a synthesis. On unless said otherwise. */
  validate?: boolean;
}

/** Throws an Error in plain words when the context is wrong. */
export function createApp(settings: AppSettings): { app: App; stack: RelayStack } {
  const validate = settings.validate ?? true;
  const app = new App({
    outdir: settings.outputFolder,
    // The CLI passes the context of cdk.json by itself; without the CLI the feature flags come from here.
    context: { ...readJson('cdk.json').context, ...settings.context },
    analyticsReporting: false,
    builtinCloudFormationValidation: validate,
  });
  const stack = new RelayStack(app, {
    options: readStackOptions(app.node),
    version: String(readJson('package.json').version),
    bundlesFolder: settings.bundlesFolder ?? join(projectFolder, 'dist'),
  });
  if (validate) Validations.of(app).addPlugins(new AwsSolutionsChecks(app));
  return { app, stack };
}

function readJson(name: string): { context?: Record<string, unknown>; version?: string } {
  return JSON.parse(readFileSync(join(projectFolder, name), 'utf8')) as {
    context?: Record<string, unknown>;
    version?: string;
  };
}
