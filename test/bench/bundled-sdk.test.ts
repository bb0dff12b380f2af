import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Metafile } from 'esbuild';
import { describe, expect, test } from 'vitest';
import { locateMetaFile } from '../../infra/build/build-functions.ts';
import { answeringFunctions, functionNames } from '../../infra/stack/constructs/function-descriptions.ts';

const built = join(import.meta.dirname, '..', '..', 'dist');

const environment = {
  AWS_REGION: 'us-east-1',
  AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:1',
  RELAY_STACK: 'relay',
  RELAY_VERSION: 'start',
  ORIGIN_SECRETS: 'start',
  SEAL_KEYS: '{"1":"seal"}',
};

/** Evaluates an expression in a new process that has loaded the bundle as `bundle`. */
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

describe('a bundle', () => {
  test.each(functionNames)('of %s loads the SDK only with the switch', (name) => {
    const { outputs } = JSON.parse(readFileSync(locateMetaFile(built, name), 'utf8')) as Metafile;
    const first = new Set(['index.mjs', 'main.mjs']);
    for (const file of first)
      for (const { kind, path } of outputs[file]?.imports ?? [])
        if (kind === 'import-statement') first.add(path);
    const inputs = [...first].flatMap((file) => Object.keys(outputs[file]?.inputs ?? {}));
    expect(inputs.length).toBeGreaterThan(10);
    expect(inputs.filter((input) => /node_modules\/(@aws-sdk|@smithy)\//.test(input))).toEqual([]);
  });

  test('of chat loads neither web streams, WebCrypto, fs/promises nor undici at its start', () => {
    const loaded = `process.moduleLoadList.filter((name) => /webstreams|webcrypto|fs\\/promises|undici/.test(name))`;
    const bare = execFileSync(
      process.execPath,
      ['--input-type=module', '-e', `console.log(JSON.stringify(${loaded}))`],
      { encoding: 'utf8' },
    );
    expect(evaluate(join(built, 'chat'), loaded, environment)).toEqual(JSON.parse(bare));
  });

  test.each([...answeringFunctions.map((name) => ['relay', name] as const), ['aws-sdk-js', 'chat'] as const])(
    'requests the configuration with the client %s before its first call: %s',
    async (client, name) => {
      const asked: unknown[] = [];
      const agents: unknown[] = [];
      const server = createServer((request, response) => {
        asked.push(request.headers['x-amz-target']);
        agents.push(String(request.headers['user-agent']).split('/')[0]);
        request.resume().on('end', () => response.end('{"Responses":{}}'));
      });
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      const url = pathToFileURL(join(built, name, 'index.mjs')).href;
      const code = `globalThis.awslambda = { streamifyResponse: (handler) => handler };
      console.log(typeof (await import(${JSON.stringify(url)})).handler); process.exit(0);`;
      const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' };
      const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], {
        env: {
          ...environment,
          ...keys,
          AWS_ENDPOINT_URL_DYNAMODB: `http://127.0.0.1:${port}`,
          AWS_CLIENT: client === 'relay' ? '' : 'sdk',
        },
      });
      server.close();
      expect(stdout).toBe('function\n');
      expect(asked).toEqual(['DynamoDB_20120810.BatchGetItem']);
      expect(agents).toEqual([client]);
    },
  );

  test('of chat starts even if its store does not answer', () => {
    expect(evaluate(join(built, 'chat'), 'typeof bundle.handler', environment)).toBe('function');
  });
});
