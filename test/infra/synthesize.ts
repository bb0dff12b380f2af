/** Synthesizes the stack in this process, around bundles that hold nothing: these tests are about the template. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createApp } from '../../infra/stack/create-app.ts';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';

export interface Resource {
  Type: string;
  Properties: Record<string, unknown>;
  DependsOn?: string[];
  DeletionPolicy?: string;
  UpdateReplacePolicy?: string;
  Metadata?: {
    checkov?: { skip: { id: string; comment: string }[] };
    guard?: { SuppressedRules: string[] };
  };
}

export interface Template {
  Resources: Record<string, Resource>;
  Outputs: Record<string, { Value: unknown }>;
}

export interface Synthesis {
  stackName: string;
  template: Template;
  /** Its termination protection. */
  isProtected: boolean;
  /** By name: the stacks beside it, in us-east-1. */
  edge: Record<string, Template>;
}

/** What was synthesized, as text, by options: many test files of one worker look at the same stacks. */
const synthesized = new Map<string, string>();

/**
 * The stack of a stage, undefined for the default one, with these options: a copy of its own for each caller. Validation
 * takes most of the time: validation.test.ts has it on.
 */
export function synthesize(options: Record<string, unknown> = {}): Synthesis {
  // The toolkit says in the environment where it deploys to.
  const { CDK_DEFAULT_ACCOUNT, CDK_DEFAULT_REGION } = process.env;
  const input = JSON.stringify([options, CDK_DEFAULT_ACCOUNT, CDK_DEFAULT_REGION, import.meta.dirname]);
  const text = synthesized.get(input) ?? shareAmongWorkers(input, () => synthesizeAnew(options));
  synthesized.set(input, text);
  return JSON.parse(text) as Synthesis;
}

/** Reads what another worker of this run synthesized, or leaves it for them. */
function shareAmongWorkers(input: string, synthesis: () => Synthesis): string {
  const folder = process.env['RELAY_SYNTHESES'];
  if (folder === undefined) return JSON.stringify(synthesis());
  const file = join(folder, createHash('sha256').update(input).digest('hex'));
  if (existsSync(file)) return readFileSync(file, 'utf8');
  const text = JSON.stringify(synthesis());
  // No other worker may read a part of it.
  writeFileSync(`${file}-${process.pid}`, text);
  renameSync(`${file}-${process.pid}`, file);
  return text;
}

function synthesizeAnew({ stage, ...options }: Record<string, unknown>): Synthesis {
  const folder = mkdtempSync(join(tmpdir(), 'relay-synthesis-'));
  try {
    const bundlesFolder = emptyBundles(join(folder, 'dist'));
    const outputFolder = join(folder, 'out');
    const context = stage === undefined ? {} : { stage };
    const { app, stack, edge } = createApp({
      outputFolder,
      bundlesFolder,
      context,
      options,
      validate: false,
    });
    const assembly = app.synth();
    const templateOf = ({ artifactId }: { artifactId: string }): Template =>
      assembly.getStackArtifact(artifactId).template as Template;
    return {
      stackName: stack.stackName,
      template: templateOf(stack),
      isProtected: stack.terminationProtection ?? false,
      edge: Object.fromEntries(edge.map((each) => [each.stackName, templateOf(each)])),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns the folder, with a bundle for every function that holds nothing. */
export function emptyBundles(folder: string): string {
  for (const name of [...functionNames, 'canary', 'console']) {
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(join(folder, name, 'index.mjs'), `export const handler = '${name}';\n`);
  }
  mkdirSync(join(folder, 'server'));
  writeFileSync(join(folder, 'server', 'Dockerfile'), 'FROM scratch\n');
  return folder;
}

/** Logical id and resource of all of one type, in template order. */
export function resourcesOf(template: Template, type: string): [string, Resource][] {
  return Object.entries(template.Resources).filter(([, resource]) => resource.Type === type);
}

/** A value of the template as one readable text: `{Ref: X}` becomes `<X>`, `{Fn::GetAtt: [X, Arn]}` `<X.Arn>`. */
export function readable(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'object' && value !== null) {
    const [key, content] = Object.entries(value)[0] ?? [];
    if (key === 'Ref') return `<${String(content)}>`;
    if (key === 'Fn::GetAtt' && Array.isArray(content)) return `<${content.join('.')}>`;
    if (key === 'Fn::Join' && Array.isArray(content)) {
      const [separator, parts] = content as [string, unknown[]];
      return parts.map(readable).join(separator);
    }
  }
  return JSON.stringify(value);
}
