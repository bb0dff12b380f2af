/**
 * Runs the whole `npm run first-deployment` in a clone that was never built, against a loopback AWS. The test replaces what that
 * AWS lacks: `curl` calls the functions on this machine instead of CloudFront's address, a resource that cannot be created causes
 * CodeDeploy's rollback, and `aws` is a program of this test. It does not wait until tables can be restored.
 */
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { GetItemCommand, UpdateItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { DeployRig } from '../infra/deploy-rig.ts';
import { RecoverableTables } from '../infra/loopback/recoverable-tables.ts';
import { emulatorClient } from '../support/emulator.ts';
import { startLocalStack, type LocalStack } from '../support/local-stack.ts';
import { startScriptedUpstream, type ScriptedUpstream } from '../support/scripted-upstream.ts';

const stack = 'relay-first';
const command = 'npm run first-deployment -- --stage first --yes';
/**
 * Shorter than on AWS: this test checks the steps, not the capacity of a region. One call a second, because calls at once take longer
 * on a busy machine than the protocol allows.
 */
const shorter = { LOAD_RATE: '1', LOAD_SECONDS: '20', STREAM_SECONDS: '1' };

interface Said {
  output: string;
  exit: number;
}

let rig: DeployRig;
let client: DynamoDBClient;
let upstream: ScriptedUpstream;
let functions: LocalStack;
const programs = createServer((request, response) => {
  const answer = async (): Promise<void> => {
    const [name = '', ...args] = (await json(request)) as string[];
    const said = await { curl, aws, sleep }[name as 'curl'](args);
    response.end(JSON.stringify(said));
  };
  answer().catch((error: unknown) => response.end(JSON.stringify({ output: String(error), exit: 99 })));
});

beforeAll(async () => {
  rig = await DeployRig.start();
  client = emulatorClient(rig.tables.endpoint);
  rig.tables.recovery = new RecoverableTables(client);
  // While the edit exists, whichever command deploys it.
  rig.aws.stacks.broken = (id) =>
    id === chatAlias() && answeringSource().includes('a change that fails')
      ? 'CodeDeploy: the alarm triggered'
      : undefined;
  upstream = await startScriptedUpstream();
  programs.listen(0, '127.0.0.1');
  await once(programs, 'listening');
  mkdirSync(rig.programs);
  const address = `http://127.0.0.1:${(programs.address() as AddressInfo).port}`;
  writeFileSync(
    join(rig.programs, 'program.mjs'),
    `const body = JSON.stringify(process.argv.slice(2));
     const { output, exit } = await (await fetch('${address}', { method: 'POST', body })).json();
     process.stdout.write(output);
     process.exitCode = exit;`,
  );
  for (const name of ['curl', 'aws', 'sleep']) {
    const others =
      name === 'sleep' ? '[ "$1" = 600 ] || exec /bin/sleep $(($1 > 10 ? 10 : $1 < 2 ? 4 : $1))\n' : '';
    const call = `exec ${process.execPath} ${rig.programs}/program.mjs ${name} "$@"`;
    writeFileSync(join(rig.programs, name), `#!/bin/sh\n${others}${call}\n`);
    chmodSync(join(rig.programs, name), 0o755);
  }
});
afterAll(async () => {
  client.destroy();
  programs.close();
  await Promise.all([rig.stop(), upstream.close()]);
});

const ofStage = (type: string): string[] =>
  rig.aws.account.standing
    .filter((each) => each.type === `AWS::${type}` && each.stack === stack)
    .map(({ physicalId }) => physicalId);

const transcript = (): string =>
  readFileSync(join(rig.folder, 'first-deployment/first/transcript.md'), 'utf8');
const answeringSource = (): string =>
  readFileSync(join(rig.folder, 'functions/compose/answering.ts'), 'utf8');

const statuses: number[] = [];
let isVendorRefused = false;

/** Runs the command that `init` prints, with the additions of the page. */
async function curl(args: string[]): Promise<Said> {
  if (statuses.length === 0) await moveChannel();
  const url = args.find((arg) => arg.startsWith('https://')) ?? '';
  const headers = args
    .filter((_, index) => args[index - 1] === '-H')
    .map((header) => header.split(': ') as [string, string]);
  const body = args[args.indexOf('-d') + 1] ?? '';
  const answer = await fetch(`${functions.baseUrl}${new URL(url).pathname.slice('/v1'.length)}`, {
    method: 'POST',
    headers,
    body,
  });
  const text = await answer.text();
  statuses.push(answer.status);
  const format = args.includes('-w') ? (args[args.indexOf('-w') + 1] ?? '') : undefined;
  const output = format?.replace('%{http_code}', String(answer.status)).replace('\\n', '\n') ?? text;
  return { output, exit: args.includes('-sf') && !answer.ok ? 22 : 0 };
}

const chatAlias = (): string =>
  rig.aws.account.standing.find(
    ({ type, id, stack: of }) => type === 'AWS::Lambda::Alias' && of === stack && /chat/i.test(id),
  )?.id ?? 'no alias';

/** The vendor's address in the account does not exist on this machine, and a secret is bound to its channel's host. */
async function moveChannel(): Promise<void> {
  const version = async (): Promise<number> => {
    const Key = { id: { S: 'config' } };
    const { Item } = await client.send(new GetItemCommand({ TableName: `${stack}-runtime`, Key }));
    return Number(Item?.['version']?.N ?? 0);
  };
  const before = await version();
  const host = new URL(upstream.endpoint).host.replace(':', '_');
  const parameter = `/relay/${stack}/channels/${host}/openai`;
  const [stored] = rig.aws.secrets.values.values();
  if (stored !== undefined) rig.aws.secrets.values.set(parameter, stored);
  await client.send(
    new UpdateItemCommand({
      TableName: `${stack}-channels`,
      Key: { id: { S: 'openai' } },
      UpdateExpression: 'SET endpoint = :endpoint, secret = :secret',
      ExpressionAttributeValues: {
        ':endpoint': { S: upstream.endpoint },
        ':secret': { S: `ssm:${parameter}` },
      },
    }),
  );
  await vi.waitFor(async () => expect(await version()).toBeGreaterThan(before), { timeout: 60_000 });
}

async function aws([service, operation, ...args]: string[]): Promise<Said> {
  const option = (name: string): string => args[args.indexOf(`--${name}`) + 1] ?? '';
  const listed = (names: string[]): Said => {
    const isText = args.includes('text');
    return { output: `${isText ? names.join('\t') : JSON.stringify(names)}\n`, exit: 0 };
  };
  switch (`${service} ${operation}`) {
    case 'cloudformation deploy':
      return { output: '', exit: isVendorRefused ? 254 : 0 };
    case 'cloudformation describe-stacks':
      return { output: 'https://vendor.lambda-url.us-east-1.on.aws/v1\n', exit: 0 };
    case 'cloudformation delete-stack':
    case 'cloudformation wait':
      return { output: '', exit: 0 };
    case 'ssm get-parameter':
      return { output: '', exit: 254 };
    case 'sts get-caller-identity':
      return { output: `{"Account": "${rig.aws.account.id}"}\n`, exit: 0 };
    case 'dynamodb update-item':
      await client.send(
        new UpdateItemCommand({
          TableName: option('table-name'),
          Key: JSON.parse(option('key')),
          UpdateExpression: option('update-expression'),
          ExpressionAttributeValues: JSON.parse(option('expression-attribute-values')),
        }),
      );
      return { output: '', exit: 0 };
    case 'ssm delete-parameter':
      return { output: '', exit: rig.aws.secrets.values.delete(option('name')) ? 0 : 254 };
    case 'ssm get-parameters-by-path':
      return listed([...rig.aws.secrets.values.keys()].filter((name) => name.startsWith(option('path'))));
    case 'dynamodb list-tables':
      return listed((await rig.tables.names()).filter((name) => name.startsWith(stack)));
    case 'logs describe-log-groups':
      return listed(ofStage('Logs::LogGroup'));
    case 's3api list-buckets':
      return listed(ofStage('S3::Bucket'));
    default:
      return { output: `no ${service} ${operation} here\n`, exit: 252 };
  }
}

/** Skips the ten minutes until the tables can be restored to the second that the page recorded. */
async function sleep(): Promise<Said> {
  const second = readFileSync(join(rig.folder, 'first-deployment/first/second.txt'), 'utf8').trim();
  await rig.tables.recovery?.remember(second);
  return { output: '', exit: 0 };
}

test('the protocol stops at a failed step, keeps the stack deployed, and prints how to continue', async () => {
  isVendorRefused = true;
  rig.options('relay.first.json', { disposable: true, alarmEmail: 'ops@example.com' });
  const { exitCode, output } = await rig.run(command, {}, 500_000);
  expect(output).toContain('step 3 (First calls) failed: block 1 ended with');
  expect(output).toContain('--from last');
  expect(exitCode).toBe(1);
  expect(transcript()).toContain('**Step 2 done**');
  expect(rig.aws.stacks.named(stack)).toMatchObject({ status: 'CREATE_COMPLETE', isProtected: false });
  isVendorRefused = false;
});

test('the same command resumes, completes, and leaves nothing of the stage', async () => {
  const template = join(rig.folder, 'cdk.local');
  cpSync(join(rig.folder, 'cdk.out'), template, { recursive: true });
  for (const file of ['template', 'assets'])
    renameSync(join(template, `${stack}.${file}.json`), join(template, `relay.${file}.json`));
  functions = await startLocalStack({
    seed: 'none',
    env: {
      DYNAMODB_ENDPOINT: rig.tables.endpoint,
      SECRETS_ENDPOINT: rig.endpoint,
      RELAY_TEMPLATE_FOLDER: template,
    },
  });
  const source = answeringSource();
  const { exitCode, output } = await rig.run(
    command,
    { ...shorter, LOAD_URL: `${functions.baseUrl}/chat/completions` },
    1_500_000,
  );
  await functions.stop();
  expect(output.split('\n').slice(-40).join('\n')).toContain('what the lists still show; all must be empty');
  expect(exitCode).toBe(0);
  const done = [...transcript().matchAll(/^\*\*Step (\d+) done/gm)].map(([, number]) => Number(number));
  expect(done).toEqual(Array.from({ length: 14 }, (_, index) => index + 1));

  // The failing change was rolled back, its edit is removed, and no call was affected by either deployment.
  expect(transcript()).toContain('CodeDeploy: the alarm triggered');
  expect(answeringSource()).toBe(source);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect(statuses.length).toBeGreaterThan(15);

  // The corrupted balance was reported and repaired.
  expect(transcript().split('all balances match').length).toBeGreaterThan(3);

  expect(transcript()).not.toMatch(/sk-[\w-]{20}/);
  expect(transcript()).not.toContain(rig.aws.account.id);
  expect(rig.aws.account.standing.filter((each) => each.stack === stack)).toEqual([]);
  expect([...rig.aws.secrets.values.keys()]).toEqual([]);
  expect(await rig.tables.names()).toEqual([]);
}, 1_600_000);
