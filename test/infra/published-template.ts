/** The template for teams without CDK, deployed as `aws cloudformation deploy` does, to CloudFormation on a loopback port. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32, inflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeTemplate } from '../../infra/build/template.ts';
import { functionNames } from '../../infra/stack/constructs/function-descriptions.ts';
import { readPage } from '../docs/pages.ts';
import { LoopbackAws } from './loopback/aws.ts';
import { emptyBundles, resourcesOf, type Template } from './synthesize.ts';

const folder = mkdtempSync(join(tmpdir(), 'relay-published-'));
const aws = new LoopbackAws();
const bucket = 'relay-assets-acme';
let made: ReturnType<typeof makeTemplate>;
let template: Template & { Parameters: object; Rules?: object };
let endpoint: string;

beforeAll(async () => {
  made = makeTemplate({
    outputFolder: folder,
    bundlesFolder: emptyBundles(join(folder, 'dist')),
    options: {},
  });
  template = JSON.parse(readFileSync(made.template, 'utf8')) as typeof template;
  endpoint = await aws.listen();
}, 120_000);

afterAll(async () => {
  await aws.close();
  rmSync(folder, { recursive: true });
});

/** Files by name, read from the directory at the end, each checked against its sum. */
function unzip(zip: Buffer): Map<string, Buffer> {
  const end = zip.lastIndexOf('PK\u0005\u0006');
  const files = new Map<string, Buffer>();
  let at = zip.readUInt32LE(end + 16);
  for (let left = zip.readUInt16LE(end + 10); left > 0; left--) {
    const name = zip.toString('utf8', at + 46, at + 46 + zip.readUInt16LE(at + 28));
    const start = zip.readUInt32LE(at + 42);
    expect(zip.toString('utf8', start + 30, start + 30 + zip.readUInt16LE(start + 26))).toBe(name);
    const from = start + 30 + zip.readUInt16LE(start + 26);
    const content = inflateRawSync(zip.subarray(from, from + zip.readUInt32LE(at + 20)));
    expect([content.length, crc32(content)]).toEqual([zip.readUInt32LE(at + 24), zip.readUInt32LE(at + 16)]);
    files.set(name, content);
    at += 46 + zip.readUInt16LE(at + 28);
  }
  return files;
}

async function call(service: string, path: string, { method = 'POST', body }: RequestInit): Promise<string> {
  const authorization = `AWS4-HMAC-SHA256 Credential=AKIALOOPBACK/20260101/eu-central-1/${service}/aws4_request`;
  const answer = await fetch(endpoint + path, { method, body: body ?? null, headers: { authorization } });
  const text = await answer.text();
  expect([answer.status, text]).toEqual([200, text]);
  return text;
}

const cloudFormation = async (Action: string, rest: Record<string, string> = {}): Promise<string> =>
  call('cloudformation', '/', { body: String(new URLSearchParams({ Action, StackName: 'relay', ...rest })) });

test('requires only a bucket, and refers to nothing of CDK’s bootstrap', () => {
  expect(Object.keys(template.Parameters)).toEqual(['AssetBucket']);
  expect(template.Rules).toBeUndefined();
  expect(JSON.stringify(template)).not.toMatch(/AWS::CDK::|BootstrapVersion|\bcdk-/);
});

test('comes with the OpenAPI document of its version', () => {
  expect(readFileSync(made.api, 'utf8')).toBe(readPage('docs/openapi.json'));
  expect(made.api).toBe(made.template.replace('.template.', '.openapi.'));
});

test('is identical, byte for byte, when it is built again', () => {
  const again = join(folder, 'again');
  mkdirSync(again);
  const bundlesFolder = join(folder, 'dist');
  const second = makeTemplate({ outputFolder: again, bundlesFolder, options: {} });
  for (const file of ['template', 'assets', 'api'] as const)
    expect(readFileSync(second[file]).equals(readFileSync(made[file]))).toBe(true);
});

test('creates the stack with a role that has the documented policies, and with each function’s bundle in the bucket', async () => {
  const uploaded = unzip(readFileSync(made.assets));
  const upload = async (key: string, content: Buffer) =>
    call('s3', `/${bucket}/${key}`, { method: 'PUT', body: new Uint8Array(content) });
  for (const [key, content] of uploaded) await upload(key, content);
  await upload('1.template', readFileSync(made.template));
  await cloudFormation('CreateChangeSet', {
    ChangeSetName: 'first',
    ChangeSetType: 'CREATE',
    TemplateURL: `https://s3.eu-central-1.amazonaws.com/${bucket}/1.template`,
    'Parameters.member.1.ParameterKey': 'AssetBucket',
    'Parameters.member.1.ParameterValue': bucket,
    'Capabilities.member.1': 'CAPABILITY_NAMED_IAM',
    RoleARN: 'arn:aws:iam::000000000000:role/relay-deployer',
  });
  await cloudFormation('ExecuteChangeSet', { ChangeSetName: 'first' });
  const stack = aws.stacks.named('relay', 'eu-central-1');
  expect(stack?.failure).toBeUndefined();
  expect(await cloudFormation('DescribeStacks')).toMatch(/CREATE_COMPLETE.*<OutputKey>BaseUrl</s);

  const functions = aws.account.standing.filter(({ type }) => type === 'AWS::Lambda::Function');
  expect(functions).toHaveLength(resourcesOf(template, 'AWS::Lambda::Function').length);
  const found = functions.map(({ properties }) => {
    const { S3Bucket, S3Key } = properties['Code'] as Record<string, string>;
    expect(S3Bucket).toBe(bucket);
    const bundle = unzip(uploaded.get(String(S3Key)) ?? Buffer.alloc(0));
    return /'(\w+)'/.exec(String(bundle.get('index.mjs')))?.[1];
  });
  expect(new Set(found)).toEqual(new Set(functionNames));
});

test('is not built for a stage that needs stacks in two regions', () => {
  const options = { region: 'eu-central-1', webAcl: true };
  expect(() => makeTemplate({ outputFolder: folder, bundlesFolder: join(folder, 'dist'), options })).toThrow(
    'stacks of another region need CDK',
  );
});
