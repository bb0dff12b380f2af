/**
 * Runs the commands of docs/deploy.md and the README in order, in a clone that was never built, with an old Node first on
 * the PATH, against a loopback AWS.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { GetItemCommand, UpdateItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { tableNames } from '../../shared/tables/table-schemas.ts';
import { fencesOf } from '../docs/pages.ts';
import { emulatorClient } from '../support/emulator.ts';
import { startLocalStack } from '../support/local-stack.ts';
import { startScriptedUpstream } from '../support/scripted-upstream.ts';
import { DeployRig } from '../infra/deploy-rig.ts';
import type { LoopbackStack } from '../infra/loopback/stacks.ts';

const [bootstrap = '', deploy = '', init = '', curl = '', ...further] =
  fencesOf('docs/deploy.md')[0]?.code.trim().split('\n') ?? [];
const tablesOf = (stack: string) => tableNames.map((name) => `${stack}-${name}`).toSorted();
/** Nobody can answer CDK's question about permissions. */
const unattended = '--require-approval never';

let rig: DeployRig;

beforeAll(async () => {
  rig = await DeployRig.start();
});
afterAll(() => rig.stop());

const stackNamed = (name: string): LoopbackStack => {
  const stack = rig.aws.stacks.named(name);
  if (stack === undefined) throw new Error(`no stack ${name}`);
  return stack;
};

const standing = (type: string, stack = 'relay') =>
  rig.aws.account.standing.filter((each) => each.type === `AWS::${type}` && each.stack === stack);

/** The origin secrets that CloudFront sends, and those that each function with a URL accepts. */
function originSecrets(): { sent: Set<string>; accepted: string[][] } {
  const [distribution] = standing('CloudFront::Distribution');
  const { Origins } = (distribution?.properties['DistributionConfig'] ?? { Origins: [] }) as {
    Origins: { OriginCustomHeaders: { HeaderValue: string }[] }[];
  };
  const accepted = standing('Lambda::Function')
    .map(({ properties }) => properties['Environment'] as { Variables: Record<string, string> } | undefined)
    .map((environment) => environment?.Variables['ORIGIN_SECRETS'] ?? '')
    .filter((secrets) => secrets !== '')
    .map((secrets) => secrets.split(','));
  return {
    sent: new Set(Origins.flatMap(({ OriginCustomHeaders: [header] }) => header?.HeaderValue ?? '')),
    accepted,
  };
}

/** The published version of the configuration. */
async function published(client: DynamoDBClient): Promise<number> {
  const Key = { id: { S: 'config' } };
  const { Item } = await client.send(new GetItemCommand({ TableName: 'relay-runtime', Key }));
  return Number(Item?.['version']?.N ?? 0);
}

/** A secret is bound to its channel's host, so the new host gets a copy. */
async function moveChannel(client: DynamoDBClient, endpoint: string): Promise<void> {
  const { values } = rig.aws.secrets;
  const parameter = `/relay/relay/channels/${new URL(endpoint).host.replace(':', '_')}/openai`;
  values.set(parameter, values.get('/relay/relay/channels/api.openai.com/openai') ?? '');
  await client.send(
    new UpdateItemCommand({
      TableName: 'relay-channels',
      Key: { id: { S: 'openai' } },
      UpdateExpression: 'SET endpoint = :endpoint, secret = :secret',
      ExpressionAttributeValues: { ':endpoint': { S: endpoint }, ':secret': { S: `ssm:${parameter}` } },
    }),
  );
}

test('the page and the README give the same commands', () => {
  const { code: readme = '' } =
    fencesOf('README.md').find(({ code }) => code.includes('npm run deploy')) ?? {};
  expect(readme.trim().split('\n')).toEqual([deploy, init, curl]);
  expect(further).toEqual([]);
});

test('bootstrap prepares an empty account', async () => {
  expect(rig.aws.account.standing).toEqual([]);
  expect(existsSync(join(rig.folder, 'dist'))).toBe(false);
  const { exitCode, output } = await rig.run(bootstrap);
  expect(output).toContain('bootstrapped');
  expect(exitCode).toBe(0);
  expect(standing('IAM::Role', 'CDKToolkit')).toHaveLength(5);
});

test('a first deployment that fails keeps the tables and names what failed', async () => {
  rig.aws.stacks.broken = (id) => (id === 'Dashboard7A714131' ? 'CloudWatch is not itself today' : undefined);
  const { exitCode, output } = await rig.run(`${deploy} ${unattended}`);
  expect(output).toContain('CloudWatch is not itself today');
  expect(exitCode).toBe(1);
  expect(stackNamed('relay')).toMatchObject({ status: 'ROLLBACK_COMPLETE', isProtected: true });
  expect(await rig.tables.names()).toEqual(tablesOf('relay'));
  expect(standing('Lambda::Function')).toEqual([]);
});

test('the repeated command imports the tables and deploys the rest', async () => {
  rig.aws.stacks.broken = () => undefined;
  const { exitCode, output } = await rig.run(`${deploy} ${unattended}`);
  expect(output).toContain('relay.BaseUrl');
  expect(exitCode).toBe(0);
  expect(rig.aws.calls.filter((call) => call.startsWith('undefined'))).toEqual([]);
  expect(stackNamed('relay')).toMatchObject({ status: 'CREATE_COMPLETE', isProtected: true });
  // The double allows only the calls in the policies of the page.
  expect(stackNamed('relay').roleArn).toContain(':role/cdk-hnb659fds-cfn-exec-role-');
  const functions = standing('Lambda::Function');
  expect(functions.length).toBeGreaterThanOrEqual(functionNames.length);
  for (const { properties } of functions) {
    const { S3Key } = properties['Code'] as { S3Key: string };
    expect(rig.aws.objects.get(S3Key)?.includes('index.mjs'), `bundle ${S3Key}`).toBe(true);
  }
});

test('init prints a command that gets an answer, which is charged', async () => {
  const upstream = await startScriptedUpstream();
  const functions = await startLocalStack({
    seed: 'none',
    env: {
      DYNAMODB_ENDPOINT: rig.tables.endpoint,
      SECRETS_ENDPOINT: rig.endpoint,
      RELAY_TEMPLATE_FOLDER: join(rig.folder, 'cdk.out'),
    },
  });
  const client = emulatorClient(rig.tables.endpoint);
  const key = { OPENAI_API_KEY: 'sk-upstream-0123456789' };
  try {
    const made = await rig.run(`${init} --yes`, key);
    expect(made).toMatchObject({
      exitCode: 0,
      output: expect.stringContaining('Credited ¥10.00 to me') as string,
    });
    expect(rig.aws.secrets.values.get('/relay/relay/channels/api.openai.com/openai')).toBe(
      key.OPENAI_API_KEY,
    );

    const printed = made.output.split('\n').find((line) => line.startsWith('curl -N')) ?? '';
    const [, address = '', secretKey = ''] = /^curl -N (\S+)\/chat.*Bearer (\S+)"/.exec(printed) ?? [];
    expect(printed).toBe(curl.replace('BASE_URL', address).replace('KEY', secretKey));
    expect(stackNamed('relay').outputs).toContainEqual({ key: 'BaseUrl', value: address });

    // Only the vendor's address is changed: the row of a deployed stack cannot name a port of this machine.
    const before = await published(client);
    await moveChannel(client, upstream.endpoint);
    await vi.waitFor(async () => expect(await published(client)).toBeGreaterThan(before), {
      timeout: 20_000,
    });
    const [, body = ''] = /-d '(.*)'$/.exec(printed) ?? [];
    const headers = { authorization: `Bearer ${secretKey}`, 'content-type': 'application/json' };
    const answer = await fetch(`${functions.baseUrl}/chat/completions`, { method: 'POST', headers, body });
    expect(await answer.text()).toContain('data: [DONE]');
    expect(upstream.requests[0]?.headers.authorization).toBe(`Bearer ${key.OPENAI_API_KEY}`);
    const ledger = 'npx --no relay-ops ledger list --account me --json --stack relay';
    const charged = expect.stringMatching(/"charge": ?"?0\.0*[1-9]/) as string;
    await vi.waitFor(async () => expect((await rig.run(ledger)).output).toEqual(charged), {
      timeout: 20_000,
    });
  } finally {
    client.destroy();
    await Promise.all([functions.stop(), upstream.close()]);
  }
});

test('a second deployment without a change does nothing', async () => {
  const before = rig.aws.calls.length;
  const { exitCode, output } = await rig.run(`npm run deploy -- ${unattended}`);
  expect(output).toContain('no changes');
  expect(exitCode).toBe(0);
  expect(rig.aws.calls.slice(before)).not.toContain('cloudformation ExecuteChangeSet');
});

test('one deployment adds an option and does the first half of a rotation', async () => {
  const before = originSecrets();
  rig.options('relay.json', { alarmEmail: 'ops@example.com', originSecrets: [1, 2] });
  const { exitCode, output } = await rig.run(`npm run deploy -- ${unattended}`);
  expect(output).toContain('alarmEmail: "ops@example.com" (new)');
  expect(exitCode).toBe(0);
  expect(standing('SNS::Topic')).toHaveLength(1);
  const after = originSecrets();
  expect(after.sent).not.toEqual(before.sent);
  for (const secrets of after.accepted)
    expect(secrets).toEqual(expect.arrayContaining([...before.sent, ...after.sent]));
});

test('a deployment is refused before the build if the file lacks a deployed option, and names it', async () => {
  rig.options('relay.json', { originSecrets: [1, 2] });
  const before = rig.aws.calls.length;
  const { exitCode, output } = await rig.run('npm run deploy');
  expect(output).toContain('stopped: this deployment would remove alarmEmail');
  expect(exitCode).toBe(1);
  expect(rig.aws.calls.slice(before)).toEqual(['cloudformation DescribeStacks']);
});

test('an accepted option is dropped, and the second half of the rotation leaves only the new secret', async () => {
  const between = originSecrets();
  rig.options('relay.json', { originSecrets: [2] });
  const { exitCode, output } = await rig.run(`npm run deploy -- --accept-drop alarmEmail ${unattended}`);
  expect(output).toContain('alarmEmail: removed, as accepted');
  expect(exitCode).toBe(0);
  expect(standing('SNS::Topic')).toEqual([]);
  const { sent, accepted } = originSecrets();
  expect(sent).toEqual(between.sent);
  for (const secrets of accepted) expect(secrets).toEqual([...sent]);
});

test('a disposable stage is deployed next to it, and leaves nothing when it is destroyed', async () => {
  rig.options('relay.try.json', { disposable: true });
  const made = await rig.run(`npm run deploy -- --stage try --import-existing-resources ${unattended}`);
  expect(made.output).toContain('relay-try.BaseUrl');
  expect(await rig.tables.names()).toEqual([...tablesOf('relay'), ...tablesOf('relay-try')].toSorted());
  const [bucket] = standing('S3::Bucket', 'relay-try');
  rig.aws.account.filled.add(bucket?.physicalId ?? 'no bucket');
  const gone = await rig.run('npx cdk destroy -c stage=try --force');
  expect(gone.exitCode).toBe(0);
  expect(rig.aws.account.standing.filter(({ stack }) => stack === 'relay-try')).toEqual([]);
  expect(await rig.tables.names()).toEqual(tablesOf('relay'));
});

test('a stack that is not a trial can be deleted only after its protection is removed, and leaves tables, failures, logs and seal keys', async () => {
  const refused = await rig.run('npx cdk destroy --force');
  expect(refused.output).toContain('cannot be deleted while TerminationProtection is enabled');
  expect(stackNamed('relay').status).toBe('UPDATE_COMPLETE');
  stackNamed('relay').isProtected = false;
  expect(await rig.run('npx cdk destroy --force')).toMatchObject({ exitCode: 0 });
  const kept = new Set(
    rig.aws.account.standing.filter(({ stack }) => stack === 'relay').map(({ type }) => type),
  );
  expect(kept).toEqual(
    new Set([
      'AWS::DynamoDB::GlobalTable',
      'AWS::S3::Bucket',
      'AWS::Logs::LogGroup',
      'AWS::SecretsManager::Secret',
    ]),
  );
});
