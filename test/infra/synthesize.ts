/** Synthesizes the stack in this process with empty bundles, because these tests check only the template. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stack, type App } from 'aws-cdk-lib';
import type { CloudAssembly } from 'aws-cdk-lib/cx-api';
import type { IConstruct } from 'constructs';
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
 * Validation takes most of the time, so only validation.ts enables it.
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
export function shareAmongWorkers(input: string, synthesis: () => unknown): string {
  const folder = process.env['RELAY_SYNTHESES'];
  if (folder === undefined) return JSON.stringify(synthesis());
  const file = join(folder, createHash('sha256').update(input).digest('hex'));
  const claim = `${file}-claim`;
  try {
    if (!existsSync(file) && isClaimed(claim)) waitWhileClaimed(claim);
    if (existsSync(file)) return readFileSync(file, 'utf8');
    const text = JSON.stringify(synthesis());
    // Other workers must never read a partial file.
    writeFileSync(`${file}-${process.pid}`, text);
    renameSync(`${file}-${process.pid}`, file);
    return text;
  } finally {
    // Whatever happened, the next worker must not wait for it.
    rmSync(claim, { force: true });
  }
}

/** Claims the synthesis for this worker unless another worker is at it. */
function isClaimed(claim: string): boolean {
  try {
    writeFileSync(claim, '', { flag: 'wx' });
    return false;
  } catch {
    return true;
  }
}

/** Two workers that begin at once would otherwise both synthesize every stage. A claim of a worker that died counts for ten seconds. */
function waitWhileClaimed(claim: string): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let tries = 0; tries < 400 && existsSync(claim); tries++) Atomics.wait(pause, 0, 0, 25);
}

function synthesizeAnew({ stage, ...options }: Record<string, unknown>): Synthesis {
  const folder = mkdtempSync(join(tmpdir(), 'relay-synthesis-'));
  try {
    const outputFolder = join(folder, 'out');
    const context = { ...withoutCopies, ...(stage === undefined ? {} : { stage }) };
    const { app, stack, edge } = createApp({
      outputFolder,
      bundlesFolder: sharedBundles(),
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
const cdk = join(require.resolve('aws-cdk-lib/package.json'), '..');
const hashes = require(join(cdk, 'aws-lambda/lib/function-hash.js')) as {
  calculateFunctionHash: (of: object, mixins?: string) => string;
};

// Each acknowledged finding records the stack of its caller, which takes an eighth of a synthesis. No test reads it.
const stackTraces = require(join(cdk, 'core/lib/private/stack-trace.js')) as {
  enhancedStackTrace: () => string[];
};
stackTraces.enhancedStackTrace = () => [];

// CDK looks for references between stacks by resolving every element once more, which takes a fifth.
const references = require(join(cdk, 'core/lib/private/refs.js')) as {
  resolveReferences: (scope: IConstruct) => void;
};
const { resolveReferences } = references;
references.resolveReferences = (scope) => {
  const stacks = scope.node.findAll().filter((each) => Stack.isStack(each));
  if (stacks.length > 1 && !appsWithoutReferences.has(scope)) resolveReferences(scope);
};
const appsWithoutReferences = new WeakSet<IConstruct>();

/** Skips that search in an app whose stacks name each other by their outputs only, as all of `addStacks` do. */
export const skipReferenceSearch = (app: App): unknown => appsWithoutReferences.add(app);

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

/** Context that makes templates name each bundle without a copy of it in the output. */
export const withoutCopies = { 'aws:cdk:disable-asset-staging': true };

let bundles: string | undefined;

/** Returns a folder of empty bundles for all syntheses of this process, because CDK keeps the hashes of a folder's files. */
export function sharedBundles(): string {
  // The run removes its folder. Workers end without the event `exit`.
  bundles ??= emptyBundles(mkdtempSync(join(process.env['RELAY_SYNTHESES'] ?? tmpdir(), 'relay-bundles-')));
  return bundles;
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
