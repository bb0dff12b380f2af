import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { SSMClient } from '@aws-sdk/client-ssm';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildFunctions } from '../../infra/build/build-functions.ts';

const clientsSource = `
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { executionModeStreamifyResponse } from '@middy/core/StreamifyResponse';
export const streamed = executionModeStreamifyResponse;
export async function loadClients() {
  const { SSMClient } = await import('@aws-sdk/client-ssm');
  const { SecretsManagerClient } = await import('@aws-sdk/client-secrets-manager');
  return (region) => [DynamoDBClient, SSMClient, SecretsManagerClient].map((Client) => new Client({ region }));
}
`;

/** Some of each partition, one that is in no list yet, and one that no pattern knows. */
const regions = (
  'us-east-1 eu-central-1 ap-southeast-7 aws-global cn-north-1 cn-northwest-1 us-gov-west-1 eusc-de-east-1 ' +
  'us-iso-east-1 us-isob-east-1 eu-isoe-west-1 us-isof-south-1 eu-nowhere-9 elsewhere'
).split(' ');

let root: string;

/** Runs an expression over the bundle's clients in a fresh process. */
function evaluate(expression: string, environment: Record<string, string> = {}): unknown {
  const code = `const { loadClients } = await import(${JSON.stringify(join(root, 'dist', 'clients', 'index.mjs'))});
    const clients = await loadClients();
    const plain = { UseFIPS: false, UseDualStack: false };
    const regions = ${JSON.stringify(regions)};
    console.log(JSON.stringify(await (${expression})));`;
  const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    env: { ...keys, ...environment },
    encoding: 'utf8',
  });
  return JSON.parse(output);
}

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'relay-sdk-'));
  mkdirSync(join(root, 'functions'));
  writeFileSync(join(root, 'functions', 'clients.ts'), clientsSource);
  await buildFunctions({ functionsFolder: join(root, 'functions'), outputFolder: join(root, 'dist') });
});

afterAll(() => {
  rmSync(root, { recursive: true });
});

describe('the SDK in a bundle', () => {
  test('finds the same endpoints in every partition as the whole SDK does', () => {
    const plain = { UseFIPS: false, UseDualStack: false };
    const endpoints = regions.map((Region) =>
      [new DynamoDBClient(), new SSMClient(), new SecretsManagerClient()].map(
        ({ config }) => config.endpointProvider({ ...plain, Region }).url.href,
      ),
    );
    const bundled = `regions.map((Region) =>
      clients(Region).map(({ config }) => config.endpointProvider({ ...plain, Region }).url.href))`;
    expect(evaluate(bundled)).toEqual(endpoints);
  });

  test('takes a configured endpoint, and refuses a kind of endpoint that it does not know', () => {
    const configured = `clients('eu-west-1').map(({ config }) =>
      config.endpointProvider({ ...plain, Region: 'eu-west-1', Endpoint: 'http://127.0.0.1:8000' }).url.href)`;
    expect(evaluate(configured)).toEqual(Array.from({ length: 3 }, () => 'http://127.0.0.1:8000/'));
    const call = `clients('us-east-1')[0].config`;
    const refused = `${call}.useFipsEndpoint().then((UseFIPS) => ${call}.endpointProvider({ ...plain, Region: 'us-east-1', UseFIPS }))
      .then(() => 'accepted', (error) => error.message)`;
    expect(evaluate(refused, { AWS_USE_FIPS_ENDPOINT: 'true' })).toContain('FIPS');
  });

  test('reads no files of ~/.aws, also where they are', () => {
    mkdirSync(join(root, '.aws'));
    writeFileSync(join(root, '.aws', 'config'), '[default]\nmax_attempts = 9\n');
    const attempts = `clients('eu-west-1')[0].config.maxAttempts()`;
    expect(evaluate(attempts, { HOME: root })).not.toBe(9);
  });

  test('loads neither web streams nor WebCrypto nor files as promises at its start', () => {
    const loaded = `process.moduleLoadList.filter((name) => /webstreams|webcrypto|fs\\/promises|undici/.test(name))`;
    const bare = execFileSync(
      process.execPath,
      ['--input-type=module', '-e', `console.log(JSON.stringify(${loaded}))`],
      {
        encoding: 'utf8',
      },
    );
    expect(evaluate(`clients('eu-west-1') && ${loaded}`)).toEqual(JSON.parse(bare));
  });
});
