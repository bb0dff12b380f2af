/** The package as adopters use it: installed from its tarball, type-checked and synthesized without this repository's build. */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { fencesOf, readPage } from '../docs/pages.ts';
import { AdopterApp, type SynthesizedStack } from './adopter.ts';
import { takenNames } from './physical-names.ts';
import { resourcesOf, type Resource } from './synthesize.ts';

const [tenLines = '', platform = ''] = fencesOf('docs/construct.md')
  .filter(({ language }) => language === 'ts')
  .map(({ code }) => code);

/** A relay outside us-east-1, the only region that CloudFront reads web ACLs from. */
const edge = `import { App, Stack, Stage } from 'aws-cdk-lib';
import { Relay } from 'relay';
import { RelayEdge } from 'relay/edge';

const env = { account: '123456789012', region: 'eu-central-1' };
const app = new App();
const live = new Stage(app, 'live', { env });

const edge = new RelayEdge(live, { relayName: 'models', region: env.region, requestsPerMinute: 300 });
const stack = new Stack(live, 'Models');
stack.addStackDependency(edge); // addDependency in older versions of CDK

new Relay(stack, 'Relay', { name: 'models', webAclArn: edge.webAclArn });
`;
const network = readPage('examples/private-api/app.ts');

/** CloudFormation's rules take most of a synthesis. Only the ten lines run with them. */
const withoutRules = '{ builtinCloudFormationValidation: false }';

/** CommonJS, as in apps created by `cdk init`. */
const common = `const { App, Stack } = require('aws-cdk-lib');
const { Relay } = require('relay');
new Relay(new Stack(new App({ outdir: 'common.out', ...${withoutRules} }), 'Models'), 'Relay').node.root.synth();
`;

const strict = {
  target: 'es2022',
  // CDK's own types use `Disposable`.
  lib: ['es2023', 'esnext.disposable'],
  module: 'nodenext',
  moduleResolution: 'nodenext',
  strict: true,
  noUncheckedIndexedAccess: true,
  noEmit: true,
  types: [],
};

let app: AdopterApp;

beforeAll(async () => {
  app = new AdopterApp();
  await app.install();
  app.write('ten-lines.ts', tenLines);
  app.write('platform.ts', platform.replace('new App()', `new App(${withoutRules})`));
  app.write('edge.ts', edge.replace('new App()', `new App(${withoutRules})`));
  app.write('network.ts', network.replace('new App()', `new App(${withoutRules})`));
  // Without this the CDK command would ask AWS for zones, which this test cannot reach.
  app.write(
    'cdk.context.json',
    JSON.stringify({
      'availability-zones:account=123456789012:region=eu-central-1': ['eu-central-1a', 'eu-central-1b'],
    }),
  );
  app.write('common.cjs', common);
  app.write(
    'common.cts',
    `import { Relay, type RelayProps } from 'relay';\nexport const props: RelayProps = {};\nexport { Relay };\n`,
  );
}, 180_000);

afterAll(() => app?.remove());

describe('the tarball', () => {
  test('contains only the construct with its types and the bundles, in less than 4.2 MB', () => {
    const { bytes, files } = app.packed;
    const others = files.filter(
      (file) =>
        !/^(infra\/stack|infra\/access|shared)\/[\w/-]+\.(js|d\.ts)$/.test(file) &&
        !/^dist\/[a-z]+\/[\w-]+\.mjs$/.test(file) &&
        !/^dist\/(console\/(enhance|live)\.js|server\/Dockerfile)$/.test(file),
    );
    expect(others.toSorted()).toEqual(['LICENSE', 'README.md', 'openapi.json', 'package.json']);
    for (const name of functionNames) expect(files).toContain(`dist/${name}/index.mjs`);
    // Code that creates, configures or runs this repository's own app.
    expect(files.filter((file) => /stack\/(app|create-app)|\/(test|local|adapters)\//.test(file))).toEqual(
      [],
    );
    // A third of it is AWS's own client, which each function contains for `awsClient: "sdk"` and loads only then.
    expect(bytes).toBeLessThan(4_200_000);
  });

  test('bundles no packages, and requires CDK as a peer', () => {
    const manifest = JSON.parse(app.read('node_modules/relay/package.json')) as Record<string, unknown>;
    expect(Object.keys(manifest['peerDependencies'] as object)).toEqual(['aws-cdk-lib', 'constructs']);
    for (const member of ['dependencies', 'devDependencies', 'optionalDependencies', 'scripts', 'bin'])
      expect(manifest).not.toHaveProperty(member);
    // The public registry has another package of this name.
    expect(manifest).toMatchObject({ name: 'relay', private: true });
  });

  test('exposes its code and types also to resolvers that ignore exports', () => {
    const manifest = JSON.parse(app.read('node_modules/relay/package.json')) as {
      exports: Record<string, { types: string; default: string }>;
      main: string;
      types: string;
      typesVersions: Record<string, Record<string, string[]>>;
      keywords: string[];
    };
    const { '.': first, ...others } = manifest.exports;
    expect({ types: manifest.types, default: manifest.main }).toEqual(first);
    expect(manifest.typesVersions['*']).toEqual(
      Object.fromEntries(
        Object.entries(others).map(([entry, { types }]) => [entry.replace('./', ''), [types]]),
      ),
    );
    for (const { types, default: code } of Object.values(manifest.exports))
      for (const file of [types, code]) expect(app.packed.files).toContain(file.replace('./', ''));
    expect(manifest.keywords).toContain('aws-cdk');
  });

  test('imports only CDK, constructs and Node', () => {
    const code = app.packed.files
      .filter((file) => /\.(js|d\.ts)$/.test(file))
      .map((file) => app.read(`node_modules/relay/${file}`))
      .join('\n');
    const found = code.matchAll(/\b(?:from |import\(|require\()['"]([^'"]+)['"]/g);
    const imported = Array.from(found, ([, name]) => String(name));
    expect(
      imported.filter((name) => !/^(aws-cdk-lib(\/|$)|constructs$|node:|\.\.?\/[\w./-]+\.js$)/.test(name)),
    ).toEqual([]);
    expect(imported.length).toBeGreaterThan(50);
  });
});

describe('an app with the package', { timeout: 180_000 }, () => {
  test.each([true, false])(
    'compiles strictly, ES module and CommonJS (skipLibCheck: %s)',
    async (skipLibCheck) => {
      app.write(
        'tsconfig.json',
        JSON.stringify({
          compilerOptions: { ...strict, skipLibCheck },
          files: ['ten-lines.ts', 'platform.ts', 'edge.ts', 'network.ts', 'common.cts'],
        }),
      );
      expect(await app.run('tsc', ['-p', '.'])).toBe('');
    },
  );

  test('compiles with the resolution of bundlers', async () => {
    const compilerOptions = { ...strict, module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true };
    app.write(
      'tsconfig.json',
      JSON.stringify({ compilerOptions, files: ['ten-lines.ts', 'platform.ts', 'edge.ts'] }),
    );
    expect(await app.run('tsc', ['-p', '.'])).toBe('');
  });

  test('does not compile with an invalid prop', async () => {
    app.write('wrong.ts', tenLines.replace('alarmEmail:', 'alarmMail:'));
    app.write(
      'tsconfig.json',
      JSON.stringify({ compilerOptions: { ...strict, skipLibCheck: true }, files: ['wrong.ts'] }),
    );
    await expect(app.run('tsc', ['-p', '.'])).rejects.toThrow(
      "'alarmMail' does not exist in type 'RelayProps'",
    );
  });

  test('is synthesized in ten lines, as an ES module and as CommonJS', async () => {
    await Promise.all([
      app.run('cdk', ['synth', '--quiet', '--app', 'node ten-lines.ts', '--output', 'ten-lines.out']),
      app.run('node', ['common.cjs']),
    ]);
    expect(app.stacks('ten-lines.out')).toHaveLength(1);
    expect(app.stacks('common.out')).toHaveLength(1);
  });
});

describe('an app with a web ACL', () => {
  test('deploys it in us-east-1, where the relay’s distribution finds it', { timeout: 180_000 }, async () => {
    await app.run('cdk', ['synth', '--quiet', '--app', 'node edge.ts', '--output', 'edge.out']);
    const [acl, relay] = app.stacks('edge.out').toSorted((a, b) => b.region.localeCompare(a.region));
    expect([acl?.region, relay?.region]).toEqual(['us-east-1', 'eu-central-1']);
    expect(JSON.stringify(acl?.template.Resources)).toContain('AWS::WAFv2::WebACL');
    expect(JSON.stringify(relay?.template.Resources)).toMatch(/"WebACLId":\{"Fn::GetStackOutput":/);
  });
});

test('an app with a VPC runs the relay’s functions in it', { timeout: 180_000 }, async () => {
  await app.run('cdk', ['synth', '--quiet', '--app', 'node network.ts', '--output', 'network.out']);
  const [stack] = app.stacks('network.out');
  const functions = resourcesOf(stack?.template ?? { Resources: {}, Outputs: {} }, 'AWS::Lambda::Function');
  expect(functions.length).toBeGreaterThan(10);
  for (const [, { Properties }] of functions.filter(([id]) => id.includes('RelayFunctions')))
    expect(Properties['VpcConfig']).toMatchObject({ SubnetIds: [{}, {}], SecurityGroupIds: [{}] });
});

describe('the app of a platform team', () => {
  let stacks: SynthesizedStack[];
  let models: SynthesizedStack[];
  const all = (type: string): Resource[] =>
    stacks.flatMap(({ template }) => resourcesOf(template, type).map(([, resource]) => resource));

  beforeAll(async () => {
    await app.run('cdk', ['synth', '--quiet', '--app', 'node platform.ts', '--output', 'platform.out']);
    stacks = app.stacks('platform.out');
    models = stacks.filter(({ name }) => name.includes('models'));
  }, 180_000);

  test('contains two relays in each of its stacks', () => {
    expect(models.map(({ name }) => name).toSorted()).toEqual([
      'beta-models-eu-central-1',
      'beta-models-us-east-1',
      'live-models-eu-central-1',
      'live-models-us-east-1',
    ]);
    for (const { template } of models) {
      expect(resourcesOf(template, 'AWS::CloudFront::Distribution')).toHaveLength(2);
      const baseUrls = Object.keys(template.Outputs).filter((id) => id.includes('BaseUrl'));
      expect(baseUrls).toHaveLength(2);
    }
  });

  test('uses each name once in an account or region, across stages, regions and relays', () => {
    const taken = stacks.flatMap(({ region, template }) => takenNames(template.Resources, region));
    expect(taken.filter((name, index) => taken.indexOf(name) !== index)).toEqual([]);
    for (const type of [
      'GlobalTable us-east-1',
      'GlobalTable eu-central-1',
      'Dashboard account',
      'CachePolicy account',
      'CloudFront::Function account',
      'QueryDefinition us-east-1',
      'RecordSet account',
    ])
      expect(taken.filter((name) => name.includes(type)).length, `names of ${type}`).toBeGreaterThanOrEqual(
        2,
      );
  });

  test('sets its boundary on every role and its bucket for every function', () => {
    expect(all('AWS::IAM::Role').length).toBeGreaterThan(80);
    for (const { Properties } of all('AWS::IAM::Role'))
      expect(JSON.stringify(Properties['PermissionsBoundary'])).toContain('policy/acme-boundary');
    for (const { Properties } of models.flatMap(({ template }) =>
      resourcesOf(template, 'AWS::Lambda::Function').map(([, each]) => each),
    ))
      expect(JSON.stringify(Properties['Code'])).toMatch(/acme-assets-/);
  });

  test('uploads complete bundles', () => {
    const folders = new Set(
      models.flatMap(({ assets }) => assets.filter((asset) => !asset.endsWith('.json'))),
    );
    const bundles = [...folders].filter((folder) => existsSync(path.join(app.folder, folder, 'index.mjs')));
    expect(bundles.length).toBeGreaterThanOrEqual(functionNames.length);
  });

  test('sends every alarm to its topic, in the region of the alarm', () => {
    for (const { region, template } of models) {
      const receivers = resourcesOf(template, 'AWS::CloudWatch::Alarm').map(([, { Properties }]) =>
        JSON.stringify(Properties['AlarmActions'] ?? 'nobody'),
      );
      expect(new Set(receivers)).toEqual(
        new Set([`["arn:aws:sns:${region}:123456789012:alarms"]`, '"nobody"']),
      );
      expect(resourcesOf(template, 'AWS::SNS::Topic')).toEqual([]);
    }
  });

  test('points its name at the distribution, for IPv4 and IPv6, in the existing zone', () => {
    const records = all('AWS::Route53::RecordSet').map(({ Properties }) => Properties);
    expect(records).toHaveLength(8);
    const ofOne = records.filter(({ Name }) => Name === 'live.eu-central-1.api.example.com.');
    expect(ofOne.map(({ Type }) => String(Type)).toSorted()).toEqual(['A', 'AAAA']);
    for (const record of ofOne)
      expect(record).toMatchObject({
        HostedZoneId: 'Z0123456789ABCDEFGHIJ',
        AliasTarget: { DNSName: expect.anything() },
      });
  });

  test('reads a ledger from another stack, and decrypts it with the key', () => {
    const policies = stacks
      .filter(({ name }) => name.includes('reports'))
      .map(({ template }) => JSON.stringify(resourcesOf(template, 'AWS::IAM::Policy')));
    expect(policies).toHaveLength(4);
    for (const policy of policies) {
      expect(policy).toContain('dynamodb:Query');
      expect(policy).toContain('kms:Decrypt');
    }
  });
});
