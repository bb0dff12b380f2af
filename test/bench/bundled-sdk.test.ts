import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Metafile } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildFunctions, metaFile } from '../../infra/build/build-functions.ts';

const clientsSource = `
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
export const client = new DynamoDBClient({ region: 'eu-west-1' });
`;
const built = join(import.meta.dirname, '..', '..', 'dist');

const environment = {
  AWS_REGION: 'us-east-1',
  AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:1',
  RELAY_STACK: 'relay',
  RELAY_VERSION: 'start',
  ORIGIN_SECRETS: 'start',
  SEAL_KEYS: '{"1":"seal"}',
};

let root: string;

/** What an expression comes to in a fresh process, after the start of a bundle as `bundle`. */
function evaluate(bundle: string, expression: string, environment: Record<string, string> = {}): unknown {
  const url = pathToFileURL(join(bundle, 'index.mjs')).href;
  const code = `globalThis.awslambda = { streamifyResponse: (handler) => handler };
    const bundle = await import(${JSON.stringify(url)});
    console.log('\\n' + JSON.stringify(await (${expression})));
    process.exit(0);`;
  const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', code], {
    env: { ...keys, ...environment },
    encoding: 'utf8',
  });
  return JSON.parse(output.trim().split('\n').at(-1) ?? '');
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

describe('a bundle', () => {
  test('with the SDK reads no files of ~/.aws, also where they are', () => {
    mkdirSync(join(root, '.aws'));
    writeFileSync(join(root, '.aws', 'config'), '[default]\nmax_attempts = 9\n');
    const attempts = evaluate(join(root, 'dist', 'clients'), 'bundle.client.config.maxAttempts()', {
      HOME: root,
    });
    expect(attempts).not.toBe(9);
  });

  test.each(['chat', 'responses', 'catalog'])('of %s starts without the SDK', (name) => {
    const { outputs } = JSON.parse(readFileSync(metaFile(built, name), 'utf8')) as Metafile;
    const { inputs = {} } = outputs['main.mjs'] ?? outputs['index.mjs'] ?? {};
    const files = Object.keys(inputs);
    expect(files.filter((input) => /node_modules\/(@aws-sdk|@smithy)/.test(input))).toEqual([]);
    expect(files).toContain('shared/adapters/dynamodb/table-client.ts');
  });

  test.each(['chat', 'responses'])('of %s has no SDK but for signing, whatever is called', (name) => {
    const { outputs } = JSON.parse(readFileSync(metaFile(built, name), 'utf8')) as Metafile;
    const inputs = Object.values(outputs).flatMap((output) => Object.keys(output.inputs));
    expect(inputs.filter((input) => /node_modules\/@aws-sdk\/(client|lib)-/.test(input))).toEqual([]);
  });

  test('of chat loads neither web streams nor WebCrypto nor files as promises nor undici at its start', () => {
    const loaded = `process.moduleLoadList.filter((name) => /webstreams|webcrypto|fs\\/promises|undici/.test(name))`;
    const bare = execFileSync(
      process.execPath,
      ['--input-type=module', '-e', `console.log(JSON.stringify(${loaded}))`],
      { encoding: 'utf8' },
    );
    expect(evaluate(join(built, 'chat'), loaded, environment)).toEqual(JSON.parse(bare));
  });

  test.each(['chat', 'responses'])('of %s asks for the configuration before its first call', async (name) => {
    const asked: unknown[] = [];
    const server = createServer((request, response) => {
      asked.push(request.headers['x-amz-target']);
      request.resume().on('end', () => response.end('{"Responses":{}}'));
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const url = pathToFileURL(join(built, name, 'index.mjs')).href;
    const code = `globalThis.awslambda = { streamifyResponse: (handler) => handler };
      console.log(typeof (await import(${JSON.stringify(url)})).handler); process.exit(0);`;
    const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
      env: { ...environment, ...keys, AWS_ENDPOINT_URL_DYNAMODB: `http://127.0.0.1:${port}` },
    });
    server.close();
    expect(stdout).toBe('function\n');
    expect(asked).toEqual(['DynamoDB_20120810.BatchGetItem']);
  });

  test('of chat starts also where its store does not answer', () => {
    expect(evaluate(join(built, 'chat'), 'typeof bundle.handler', environment)).toBe('function');
  });
});
