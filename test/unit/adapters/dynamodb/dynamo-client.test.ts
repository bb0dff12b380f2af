import { createServer, type RequestListener } from 'node:http';
import { describe, expect, test } from 'vitest';
import { tableClient } from '../../../../shared/adapters/dynamodb/table-client.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { listening } from '../../../support/listening.ts';
import { localAccess } from './store.ts';

async function failureOf(answer: RequestListener): Promise<unknown> {
  const endpoint = await listening(createServer(answer));
  const client = tableClient(localAccess, { endpoint, tryMsMax: 100 });
  return client
    .call('GetItem', { TableName: 'relay-keys', Key: { hash: { S: 'x' } } })
    .catch((error: unknown) => error);
}

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
    expect(await failureOf(answer)).toBeInstanceOf(StoreUnavailable);
  });

  test('keeps the error of a request that was refused for what it says', async () => {
    expect(await failureOf(awsError(400, 'ValidationException'))).toHaveProperty(
      'name',
      'ValidationException',
    );
  });
});
