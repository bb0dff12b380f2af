import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { LocalFunction } from '../../infra/local/lambda/local-function.ts';
import { publishConfiguration } from '../../infra/local/start-stack.ts';
import { documentsOn } from '../support/sdk-tables.ts';
import { emulatorClient, startEmulator, type Emulator } from '../support/emulator.ts';
import { untilPublished } from '../support/published.ts';

/** What `npm run build` writes. */
const built = join(import.meta.dirname, '..', '..', 'dist');

/** Actions that the store refuses for the moment; the emulator answers all others. */
let busyActions: RegExp;
let emulator: Emulator;
let config: LocalFunction;
const lines: string[] = [];

const store = createServer((request, response) => {
  void buffer(request).then(async (body) => {
    const target = String(request.headers['x-amz-target']);
    if (busyActions.test(target)) {
      response.writeHead(400).end('{"__type":"com.amazonaws.dynamodb.v20120810#ThrottlingException"}');
      return;
    }
    const kept = Object.entries(request.headers).filter(([name]) =>
      /^(x-amz-|amz-|auth|content-type)/.test(name),
    );
    const reply = await fetch(emulator.endpoint, {
      method: 'POST',
      headers: kept.map(([name, value]): [string, string] => [name, String(value)]),
      body: new Uint8Array(body),
    });
    response.writeHead(reply.status, { 'content-type': 'application/x-amz-json-1.0' });
    response.end(new Uint8Array(await reply.arrayBuffer()));
  });
});

beforeAll(async () => {
  await once(store.listen(0, '127.0.0.1'), 'listening');
  emulator = await startEmulator();
  config = new LocalFunction(
    {
      name: 'config',
      arn: 'arn:aws:lambda:us-east-1:000000000000:function:config',
      folder: join(built, 'config'),
      handler: 'index.handler',
      timeoutMs: 30_000,
      memoryMegabytes: 256,
      environmentsMax: 1,
      environment: {
        RELAY_STACK: 'relay',
        RELAY_VERSION: 'contract',
        RELAY_LOCAL: '1',
        ORIGIN_SECRETS: '',
        AWS_ENDPOINT_URL_DYNAMODB: `http://127.0.0.1:${(store.address() as AddressInfo).port}`,
      },
    },
    (line) => lines.push(line),
  );
  const client = documentsOn(emulatorClient(emulator.endpoint));
  const row = { id: 'bad', endpoint: 'nowhere', models: ['m'], state: true };
  await client.send(new PutCommand({ TableName: 'relay-channels', Item: row }));
  client.destroy();
});
afterAll(async () => {
  await config.close();
  await emulator.stop();
  store.close().closeAllConnections();
});

test('a local start goes on when the function could write no marks: the type of its error says so', async () => {
  busyActions = /UpdateItem$/;
  const printed: string[] = [];
  await publishConfiguration(new Map([['Config', config]]), (line) => printed.push(line));
  expect(printed).toEqual([expect.stringMatching(/^\[start\] config: MarksLost: /)]);
  await untilPublished(emulator.endpoint, ({ version }) => version === 1);
});

test('a local start ends when the function could not publish', async () => {
  busyActions = /BatchGetItem$/;
  const starting = publishConfiguration(new Map([['Config', config]]), () => {});
  await expect(starting).rejects.toMatchObject({
    name: 'StartError',
    message: expect.stringContaining('StoreUnavailable'),
  });
});
