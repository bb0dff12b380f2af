/**
 * Makes a release in a clone, as far as possible without a network: `npm run release`, then the steps of the workflow's build job. Then
 * runs the commands of docs/construct.md unchanged: a deployment of the previous release, the upgrade, and the rollback.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { fencesOf, readPage, root } from '../docs/pages.ts';
import { AdopterApp } from '../infra/adopter.ts';
import { LoopbackAws } from '../infra/loopback/aws.ts';
import type { LoopbackStack } from '../infra/loopback/stacks.ts';
import { runProgram } from '../infra/run-program.ts';
import { workflowOf } from '../infra/workflows.ts';

const line = '- A line that a release needs.\n';
const minutes = 60_000;

/** A clone with the packages of this repository, whose tests pass at once. */
class Clone {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'relay-clone-'));
  readonly #variables: Record<string, string>;

  constructor(commit: string) {
    execFileSync('git', ['clone', '-q', '--no-checkout', '--no-tags', root, this.folder]);
    execFileSync('git', ['checkout', '-q', '-B', 'main', commit], { cwd: this.folder });
    symlinkSync(path.join(root, 'node_modules'), path.join(this.folder, 'node_modules'));
    this.write('.ci/run', '#!/bin/sh\necho tested\n');
    chmodSync(path.join(this.folder, '.ci/run'), 0o755);
    const person = ['AUTHOR', 'COMMITTER'].flatMap((role) => [
      [`GIT_${role}_NAME`, 'a'],
      [`GIT_${role}_EMAIL`, 'a@example.com'],
    ]);
    this.#variables = {
      ...(Object.fromEntries(person) as Record<string, string>),
      GITHUB_SERVER_URL: 'https://github.com',
      GITHUB_REPOSITORY: 'acme/relay',
      npm_config_update_notifier: 'false',
    };
  }

  /** Runs a line as the workflow's shell does. Throws the output if it fails. */
  async run(command: string, variables: Record<string, string> = {}): Promise<string> {
    const env = { PATH: process.env['PATH'], HOME: this.folder, ...this.#variables, ...variables };
    const options = { cwd: this.folder, env, timeout: 10 * minutes };
    const { exitCode, output } = await runProgram('bash', ['-e', '-o', 'pipefail', '-c', command], options);
    if (exitCode !== 0) throw new Error(`${command}: ${exitCode}\n${output}`);
    return output;
  }

  read(file: string): string {
    return readFileSync(path.join(this.folder, file), 'utf8');
  }

  write(file: string, text: string): void {
    writeFileSync(path.join(this.folder, file), text);
  }

  get version(): string {
    return (JSON.parse(this.read('package.json')) as { version: string }).version;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A release: the folder with its files, and its version. */
interface Released {
  folder: string;
  version: string;
}

let before: Clone;
let after: Clone;
let old: Released;
let fresh: Released;
/** The commands that ran, in order. */
const ran: string[] = [];

beforeAll(async () => {
  const tags = execFileSync('git', ['tag', '--merged', 'HEAD', '--sort=-v:refname', '--list', 'v*'], {
    cwd: root,
    encoding: 'utf8',
  });
  // Without a release tag, these sources stand for the previous release.
  before = new Clone(tags.split('\n')[0] || 'HEAD');
  old = { folder: before.folder, version: before.version };
  await before.run('npm run package && npm run package:template');

  after = new Clone('HEAD');
  after.write('docs/CHANGELOG.md', after.read('docs/CHANGELOG.md').replace('## Unreleased\n', `$&\n${line}`));
  ran.push(await after.run('git commit -q -a -m line && npm run release -- minor'));
  const variables = { GITHUB_REF_NAME: `v${after.version}` };
  fresh = { folder: path.join(after.folder, 'release'), version: after.version };
  const steps = workflowOf('release').jobs['build']?.steps.flatMap(({ run = [] }) => run) ?? [];
  // Skips test:long: it takes minutes, and it ran before.
  for (const step of steps.filter((each) => !each.includes('test:long')))
    ran.push(await after.run(step, variables));
}, 20 * minutes);

afterAll(() => {
  before?.remove();
  after?.remove();
});

describe('a release', () => {
  const read = (file: string): Buffer => readFileSync(path.join(fresh.folder, file));

  it('is tested, then tagged in a clean tree with the snapshot of its public names', async () => {
    expect(ran[0]).toContain('tested');
    expect(await after.run('git describe --exact-match && git status --porcelain -uno')).toBe(
      `v${fresh.version}\n`,
    );
    expect(readdirSync(path.join(after.folder, 'test/compatibility'))).toContain(`${fresh.version}.json`);
    expect(after.read('docs/construct.md')).not.toContain(`relay-${old.version}`);
  });

  it('contains the tarball, the template with its assets, the OpenAPI document, a bill of materials and checksums, named after its version', () => {
    const name = `relay-${fresh.version}`;
    expect(readdirSync(fresh.folder).toSorted()).toEqual([
      'SHA256SUMS',
      'notes.md',
      `${name}-assets.zip`,
      `${name}.cdx.json`,
      `${name}.openapi.json`,
      `${name}.template.json`,
      `${name}.tgz`,
    ]);
    // The notes may contain other unreleased lines.
    expect(String(read('notes.md'))).toContain(line);
    const { info } = JSON.parse(String(read(`${name}.openapi.json`))) as { info: { version: string } };
    expect(info.version).toBe(fresh.version);
    expect(String(read(`${name}.template.json`))).toContain(`"RELAY_VERSION": "${fresh.version}"`);
  });

  it('contains the checksum of each file', () => {
    const sums = String(read('SHA256SUMS'))
      .trim()
      .split('\n')
      .map((each) => each.split(/ +\*?/));
    expect(sums.map(([, file]) => file)).toEqual(
      readdirSync(fresh.folder)
        .filter((file) => file.startsWith('relay-'))
        .toSorted(),
    );
    for (const [sum, file = ''] of sums)
      expect(createHash('sha256').update(read(file)).digest('hex')).toBe(sum);
  });

  it('lists every package whose code is in a bundle, with its hash', () => {
    const bill = JSON.parse(String(read(`relay-${fresh.version}.cdx.json`))) as {
      bomFormat: string;
      components: { 'bom-ref': string; hashes: { alg: string }[] }[];
      dependencies: { ref: string; dependsOn: string[] }[];
    };
    expect(bill.bomFormat).toBe('CycloneDX');
    const names = bill.components.map((each) => each['bom-ref']);
    const { dependencies } = JSON.parse(readPage('package.json')) as { dependencies: Record<string, string> };
    // The console loads packages that no function loads.
    for (const [name, version] of [...Object.entries(dependencies), ['openid-client', '']])
      expect(
        names.some((each) => each.startsWith(`${name}@${version}`)),
        `${name} is listed`,
      ).toBe(true);
    expect(names.filter((name) => /^(vitest|typescript|aws-cdk)/.test(name))).toEqual([]);
    const direct = bill.dependencies.find(({ ref }) => ref === `relay@${fresh.version}`)?.dependsOn;
    expect(direct).toContainEqual(expect.stringContaining('hono@'));
    for (const { hashes } of bill.components) expect(hashes.map(({ alg }) => alg)).toEqual(['SHA-512']);
  });
});

/** Returns the resources that an upgrade must keep, and the versions that it must change. */
function stateOf(
  aws: LoopbackAws,
  stack: LoopbackStack | undefined,
): { lasting: string[]; versions: unknown[] } {
  const standing = aws.account.standing.filter(({ stack: name }) => name === stack?.name);
  const lasting = standing
    .filter(({ type }) => /GlobalTable|Distribution|Secret$|S3::Bucket|LogGroup|Lambda::Url/.test(type))
    .map(({ id, type, physicalId }) => `${type} ${id} ${physicalId}`);
  const functions = standing.filter(({ type }) => type === 'AWS::Lambda::Function');
  const versions = functions.flatMap(({ properties }) => {
    const { Variables = {} } = (properties['Environment'] ?? {}) as { Variables?: Record<string, string> };
    return Variables['RELAY_VERSION'] ?? [];
  });
  return {
    lasting: lasting.concat(`${stack?.outputs.find(({ key }) => key.includes('BaseUrl'))?.value}`),
    versions: [...new Set(versions)],
  };
}

const variablesFor = (endpoint: string) => ({
  AWS_ENDPOINT_URL: endpoint,
  AWS_REGION: 'eu-central-1',
  AWS_DEFAULT_REGION: 'eu-central-1',
  AWS_ACCESS_KEY_ID: 'AKIALOOPBACK',
  AWS_SECRET_ACCESS_KEY: 'loopback',
});

describe('an upgrade from the previous release, and the rollback', () => {
  let aws: LoopbackAws;
  let endpoint: string;
  beforeEach(async () => {
    aws = new LoopbackAws();
    endpoint = await aws.listen();
  });
  afterEach(() => aws.close());

  /** Deploys the old release, the new one, and the old one again. */
  async function statesOf(deploy: (release: Released) => Promise<LoopbackStack | undefined>) {
    const states: { status: string | undefined; versions: unknown[]; keeps: boolean }[] = [];
    let first: string[] | undefined;
    for (const release of [old, fresh, old]) {
      const stack = await deploy(release);
      const { lasting, versions } = stateOf(aws, stack);
      first ??= lasting;
      const found = new Set(lasting);
      states.push({
        status: stack?.failure?.reason ?? stack?.status,
        versions,
        keeps: first.length > 20 && first.every((each) => found.has(each)),
      });
    }
    return states;
  }
  const upgraded = () => [
    { status: 'CREATE_COMPLETE', versions: [old.version], keeps: true },
    { status: 'UPDATE_COMPLETE', versions: [fresh.version], keeps: true },
    { status: 'UPDATE_COMPLETE', versions: [old.version], keeps: true },
  ];

  it(
    'keep tables, secrets and address of an app that installs the tarball',
    { timeout: 15 * minutes },
    async () => {
      const apps = new Map<Released, AdopterApp>();
      try {
        for (const release of [old, fresh]) {
          const tarball = path.join(release.folder, `relay-${release.version}.tgz`);
          const app = new AdopterApp({ tarball, bytes: 0, unpackedBytes: 0, files: [] });
          apps.set(release, app);
          await app.install();
          app.write(
            'app.mjs',
            `import { App, CliCredentialsStackSynthesizer, Stack } from 'aws-cdk-lib';
import { Relay } from 'relay';
const app = new App({ builtinCloudFormationValidation: false });
// The AWS double limits CDK's role to the policies of docs/deploy.md, which name only the resources of this repository's stacks.
const synthesizer = new CliCredentialsStackSynthesizer();
const env = { account: '000000000000', region: 'eu-central-1' };
const stack = new Stack(app, 'Models', { env, synthesizer });
new Relay(stack, 'Relay', { alarmEmail: 'ops@example.com' });
`,
          );
        }
        const cdk = async (release: Released, ...words: string[]) =>
          apps.get(release)?.run('cdk', ['--app', 'node app.mjs', ...words], variablesFor(endpoint));
        await cdk(old, 'bootstrap');
        const states = await statesOf(async (release) => {
          await cdk(release, 'deploy', '--require-approval', 'never');
          return aws.stacks.named('Models', 'eu-central-1');
        });
        expect(states).toEqual(upgraded());
      } finally {
        for (const app of apps.values()) app.remove();
      }
    },
  );

  // The tests must also pass on a machine with only Node and npm.
  const hasTools = ['aws --version', 'unzip -v'].every((command) => {
    try {
      return execFileSync('sh', ['-c', command], { stdio: 'pipe' }).length > 0;
    } catch {
      return false;
    }
  });

  it.skipIf(!hasTools)(
    'keep tables, secrets and address of a stack created from the template with the commands of docs/construct.md',
    { timeout: 15 * minutes },
    async () => {
      const lines = fencesOf('docs/construct.md').find(({ code }) => code.includes('unzip '))?.code ?? '';
      expect(lines).not.toMatch(/\b(node|npm|npx|cdk)\b/);
      const folder = mkdtempSync(path.join(tmpdir(), 'relay-template-'));
      let isFirst = true;
      try {
        const states = await statesOf(async (release) => {
          const updating = isFirst ? lines : lines.replace(' --disable-rollback', '');
          isFirst = false;
          const named = updating.replaceAll(
            /relay-\d+\.\d+\.\d+(?=\.template|-assets)/g,
            `relay-${release.version}`,
          );
          // The third deployment unpacks over the assets of the first.
          const fetched = `cp ${release.folder}/relay-${release.version}* .`;
          const env = { ...process.env, ...variablesFor(endpoint) };
          const { exitCode, output } = await runProgram('sh', ['-e', '-c', `${fetched}\n${named}`], {
            cwd: folder,
            env,
            timeout: 5 * minutes,
          });
          expect({ exitCode, output }).toMatchObject({ exitCode: 0 });
          return aws.stacks.named('relay', 'eu-central-1');
        });
        expect(states).toEqual(upgraded());
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );
});
