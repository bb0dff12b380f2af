import { createServer, type RequestListener } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { GetCommand, PutCommand } from '@aws-sdk/lib-dynamodb';
import { describe, expect, onTestFinished, test } from 'vitest';
import { storeCall } from '../../../../shared/adapters/dynamodb/table-client.ts';
import { documentClient } from '../../../support/sdk-tables.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { startEmulator } from '../../../support/emulator.ts';
import { localAccess } from './store.ts';

async function clientOf(answer: RequestListener) {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => server.close().closeAllConnections());
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return documentClient(localAccess);
}

const get = new GetCommand({ TableName: 'relay-keys', Key: { hash: 'x' } });
const awsError =
  (status: number, type: string): RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' });
    response.end(JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: 'no' }));
  };

describe('a call of the store', () => {
  test.each<[string, RequestListener]>([
    ['closes the connection', (request) => request.socket.destroy()],
    ['never answers', (request) => void request.resume()],
    ['answers 500', awsError(500, 'InternalServerError')],
    ['throttles', awsError(400, 'ThrottlingException')],
  ])('is StoreUnavailable when the store %s', async (_what, answer) => {
    const client = await clientOf(answer);
    await expect(storeCall(() => client.send(get))).rejects.toBeInstanceOf(StoreUnavailable);
  });

  test('keeps the error of a request that was refused for what it says', async () => {
    const client = await clientOf(awsError(400, 'ValidationException'));
    await expect(storeCall(() => client.send(get))).rejects.toHaveProperty('name', 'ValidationException');
  });

  test('keeps an error of our own', async () => {
    const bug = new TypeError('a bug');
    await expect(storeCall(() => Promise.reject(bug))).rejects.toBe(bug);
  });

  test('tries a few times before it gives up', async () => {
    let requests = 0;
    const client = await clientOf((request) => {
      requests += 1;
      request.socket.destroy();
    });
    await expect(storeCall(() => client.send(get))).rejects.toThrow(StoreUnavailable);
    expect(requests).toBe(3);
  });
});

test('a number beyond what JavaScript holds exactly does not break the read of its row', async () => {
  const emulator = await startEmulator();
  onTestFinished(() => emulator.stop());
  process.env['AWS_ENDPOINT_URL_DYNAMODB'] = emulator.endpoint;
  const client = documentClient(localAccess);
  const Item = { id: 'x', large: 10n ** 30n };
  await client.send(new PutCommand({ TableName: 'relay-channels', Item }));
  const { Item: read } = await client.send(new GetCommand({ TableName: 'relay-channels', Key: { id: 'x' } }));
  expect(read).toEqual({ id: 'x', large: 1e30 });
});
