/** Synthesizes the stack in this process with empty bundles, because these tests check only the template. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { App } from 'aws-cdk-lib';
import type { CloudAssembly } from 'aws-cdk-lib/cx-api';
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

/** Synthesized templates as text, by options: many test files of one worker use the same stacks. */
const synthesized = new Map<string, string>();

/**
 * Synthesizes the stack of a stage (undefined for the default one) with these options; each caller gets its own copy.
 * Validation takes most of the time, so only validation.test.ts enables it.
 */
export function synthesize(options: Record<string, unknown> = {}): Synthesis {
  // The toolkit passes the target region in the environment.
  const { CDK_DEFAULT_ACCOUNT, CDK_DEFAULT_REGION } = process.env;
  const input = JSON.stringify([options, CDK_DEFAULT_ACCOUNT, CDK_DEFAULT_REGION, import.meta.dirname]);
  const text = synthesized.get(input) ?? shareAmongWorkers(input, () => synthesizeAnew(options));
  synthesized.set(input, text);
  return JSON.parse(text) as Synthesis;
}

/** Reads the synthesis of another worker of this run, or stores it for the others. */
function shareAmongWorkers(input: string, synthesis: () => Synthesis): string {
  const folder = process.env['RELAY_SYNTHESES'];
  if (folder === undefined) return JSON.stringify(synthesis());
  const file = join(folder, createHash('sha256').update(input).digest('hex'));
  if (existsSync(file)) return readFileSync(file, 'utf8');
  const text = JSON.stringify(synthesis());
  // Other workers must never read a partial file.
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
    const assembly = synthesizeApp(app);
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

export function synthesizeApp(app: App): CloudAssembly {
  const stop = hashFunctionsOnce();
  try {
    return app.synth();
  } finally {
    stop();
  }
}

const require = createRequire(import.meta.url);
const hashes = require(
  join(require.resolve('aws-cdk-lib/package.json'), '../aws-lambda/lib/function-hash.js'),
) as { calculateFunctionHash: (of: object, mixins?: string) => string };

/**
 * CDK hashes each function again at each reference to its version, 52 times, which takes a quarter of a synthesis. No function changes
 * after the aspects ran, so this hashes each once. Returns a function that restores CDK's own.
 */
export function hashFunctionsOnce(): () => void {
  const { calculateFunctionHash } = hashes;
  const known = new Map<object, Map<string, string>>();
  hashes.calculateFunctionHash = (of, mixins = '') => {
    const ofFunction = known.get(of) ?? new Map<string, string>();
    known.set(of, ofFunction);
    const hash = ofFunction.get(mixins) ?? calculateFunctionHash(of, mixins);
    ofFunction.set(mixins, hash);
    return hash;
  };
  return () => {
    hashes.calculateFunctionHash = calculateFunctionHash;
  };
}

/** Returns the folder with an empty bundle for every function. */
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

/** A template value as readable text: `{Ref: X}` becomes `<X>`, `{Fn::GetAtt: [X, Arn]}` `<X.Arn>`. */
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
