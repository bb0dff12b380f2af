/**
 * Apps as teams have them: the output of `cdk init` over the years, with the oldest supported CDK and the newest.
 * Their tools are listed in test/teams, and installed when this file first runs.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { root } from '../docs/pages.ts';
import { AdopterApp } from '../infra/adopter.ts';

const locked = path.join(root, 'test', 'teams');
/** Outside the source tree, because tools and other tests walk that. */
const installed = path.join(root, 'node_modules', '.cache', 'teams');
const modules = path.join(installed, 'node_modules');
const inModules = (...parts: string[]): string => path.join(modules, ...parts);

/** All apps share the tools; each version has its own peers. */
const tools = ['@swc', '@types', 'jest', 'ts-jest'].map((name) => inModules(name));
const versions = {
  'the oldest CDK': [inModules('aws-cdk-lib'), inModules('constructs')],
  'the newest CDK': ['aws-cdk-lib', 'constructs'].map((name) => path.join(root, 'node_modules', name)),
};

const stack = `import * as cdk from 'aws-cdk-lib';
import { Construct } from 'constructs';
import { Relay, type RelayProps } from 'relay';
import { RelayEdge } from 'relay/edge';

export class ModelsStack extends cdk.Stack {
  readonly edge?: RelayEdge;
  constructor(scope: Construct, id: string, props: RelayProps & cdk.StackProps = {}) {
    super(scope, id, { env: props.env });
    new Relay(this, 'Relay', { name: 'models', alarmEmail: 'ops@example.com' });
  }
}
`;
const spec = `import * as cdk from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { ModelsStack } from '../lib/models-stack';

test('answers are streamed from functions of the package', () => {
  const template = Template.fromStack(new ModelsStack(new cdk.App(), 'Models'));
  template.hasResourceProperties('AWS::Lambda::Url', { InvokeMode: 'RESPONSE_STREAM' });
  template.resourceCountIs('AWS::CloudFront::Distribution', 1);
});
`;
const withoutTypes = (code: string): string =>
  code
    .replaceAll(/import \* as (\w+) from ('[^']+');/g, 'const $1 = require($2);')
    .replaceAll(/import \{ (\w+)(?:, type \w+)? \} from ('[^']+');/g, 'const { $1 } = require($2);')
    .replace(/ {2}readonly .*\n/, '')
    .replace(/\(scope: .*\{$/m, '(scope, id) {')
    .replace('super(scope, id, { env: props.env })', 'super(scope, id)')
    .replace('export class ModelsStack', 'module.exports.ModelsStack = class ModelsStack');

const jest = (transform: Record<string, unknown>): string =>
  `module.exports = ${JSON.stringify({ testEnvironment: 'node', roots: ['<rootDir>/test'], transform })};\n`;

interface Shape {
  files: Record<string, string>;
  /** Absent if nothing is compiled. */
  compiler?: string;
}

const compiled = (compilerOptions: object, transform: string): Record<string, string> => ({
  'lib/models-stack.ts': stack,
  'test/models.test.ts': spec,
  'jest.config.js': jest({ '^.+\\.tsx?$': transform }),
  'tsconfig.json': JSON.stringify({
    compilerOptions: {
      lib: ['es2022'],
      strict: true,
      types: ['jest', 'node'],
      noEmit: true,
      ...compilerOptions,
    },
  }),
});
const nodeNext = { target: 'ES2022', module: 'NodeNext', moduleResolution: 'NodeNext' };
const older = inModules('typescript', 'bin', 'tsc');

const shapes: Record<string, Shape> = {
  'in TypeScript of 2024, whose resolution is node10': {
    files: compiled({ target: 'ES2020', module: 'commonjs', moduleResolution: 'node10' }, 'ts-jest'),
    compiler: older,
  },
  'in TypeScript of 2025, with ts-jest': {
    files: compiled({ ...nodeNext, skipLibCheck: true }, 'ts-jest'),
    compiler: older,
  },
  'in TypeScript of today, with the compiler of today and swc': {
    files: compiled({ ...nodeNext, skipLibCheck: true, isolatedModules: true }, '@swc/jest'),
    compiler: path.join(root, 'node_modules', '.bin', 'tsc'),
  },
  'in JavaScript': {
    files: {
      'lib/models-stack.js': withoutTypes(stack),
      'test/models.test.js': withoutTypes(spec),
      'jest.config.js': jest({}),
    },
  },
};

const esModule = `import { App, Stack } from 'aws-cdk-lib';
import { Relay } from 'relay';
import { RelayEdge } from 'relay/edge';

const app = new App({ outdir: 'cdk.out' });
const env = { account: '123456789012', region: 'eu-central-1' };
const edge = new RelayEdge(app, { relayName: 'models', region: env.region, requestsPerMinute: 300 });
new Relay(new Stack(app, 'Models', { env }), 'Relay', { name: 'models', webAclArn: edge.webAclArn });
app.synth();
`;

const examples = readdirSync(path.join(root, 'examples')).filter((name) =>
  existsSync(path.join(root, 'examples', name, 'app.ts')),
);

const installedLock = inModules('.package-lock.json');
const lockText = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');

function install(): void {
  const copy = path.join(installed, 'package-lock.json');
  if (existsSync(installedLock) && lockText(copy) === lockText(path.join(locked, 'package-lock.json')))
    return;
  rmSync(installed, { recursive: true, force: true });
  mkdirSync(installed, { recursive: true });
  cpSync(locked, installed, { recursive: true });
  execFileSync('npm', ['ci'], { cwd: installed, stdio: ['ignore', 'ignore', 'inherit'] });
}

let first: AdopterApp | undefined;

beforeAll(() => {
  install();
  first = new AdopterApp();
}, 600_000);

afterAll(() => first?.remove());

describe.each(Object.entries(versions))('in %s', (_, peers) => {
  let app: AdopterApp;

  beforeAll(async () => {
    app = new AdopterApp(first?.packed);
    await app.install([...peers, ...tools]);
  }, 180_000);

  afterAll(() => app?.remove());

  test.each(Object.entries(shapes))(
    'an app %s compiles, and its test of the template passes',
    async (name, shape) => {
      const folder = name.replaceAll(/\W+/g, '-');
      const files = { 'package.json': JSON.stringify({ name: 'models', private: true }), ...shape.files };
      for (const [file, text] of Object.entries(files)) app.write(path.join(folder, file), text);
      if (shape.compiler !== undefined)
        expect(await app.run('node', [shape.compiler, '-p', folder])).toBe('');
      const output = await app.run('node', [
        inModules('jest', 'bin', 'jest.js'),
        '--config',
        `${folder}/jest.config.js`,
      ]);
      expect(output).toContain('answers are streamed from functions of the package');
      expect(output).toMatch(/Tests: +1 passed, 1 total/);
    },
  );

  test('an app of ES modules is synthesized, with its stack at the edge', async () => {
    app.write('app.mjs', esModule);
    await app.run('node', ['app.mjs']);
    const stacks = app.stacks('cdk.out');
    expect(stacks.map(({ region }) => region).toSorted()).toEqual(['eu-central-1', 'us-east-1']);
    const relay = JSON.stringify(stacks.find(({ region }) => region === 'eu-central-1')?.template);
    expect(relay).toContain('"WebACLId":{"Fn::GetStackOutput":');
    expect(relay).toContain('nodejs24.x');
  });

  test.each(examples)('the example %s compiles and is synthesized', async (name) => {
    const from = path.join(root, 'examples', name);
    cpSync(from, path.join(app.folder, name), { recursive: true });
    const checks = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'nodenext'];
    await app.run('node', [older, ...checks, '--types', 'node', path.join(name, 'app.ts')]);
    await app.run('node', [path.join(name, 'app.ts')], { CDK_OUTDIR: path.join(name, 'out') });
    expect(app.stacks(path.join(name, 'out')).length).toBeGreaterThan(0);
  });
});
