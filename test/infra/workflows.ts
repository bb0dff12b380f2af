/** The workflows of GitHub as data. */
import { createRequire } from 'node:module';
import { readPage } from '../docs/pages.ts';

export interface Job {
  needs?: string | string[];
  permissions?: Record<string, string>;
  'timeout-minutes'?: number;
  strategy?: { matrix: Record<string, string[]> };
  steps: { run?: string; if?: string; uses?: string; with?: Record<string, unknown> }[];
}

export interface Workflow {
  name: string;
  on: string | Record<string, unknown>;
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

/** The parser of aws-cdk-lib. */
export const yaml = createRequire(createRequire(import.meta.url).resolve('aws-cdk-lib/package.json'))(
  'yaml',
) as {
  parse(text: string): unknown;
};

export const workflowOf = (name: string): Workflow =>
  yaml.parse(readPage(`.github/workflows/${name}.yml`)) as Workflow;
