import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { connectTables } from '../../../../functions/compose/late-adapters.ts';
import type { ClientSettings } from '../../../../shared/adapters/dynamodb/table-client.ts';
import { StoreUnavailable, storeRequestId } from '../../../../shared/relay/ports/store-errors.ts';
import { listening } from '../../../support/listening.ts';
import { localAccess } from './store.ts';

const awsError =
  (status: number, type: string, more: object = {}): RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(status, {
      'content-type': 'application/x-amz-json-1.0',
      'x-amzn-requestid': 'TTQJ-1',
    });
    response.end(
      JSON.stringify({ __type: `com.amazonaws.dynamodb.v20120810#${type}`, message: 'no', ...more }),
    );
  };

const Key = { hash: { S: 'x' } };

describe.each([undefined, 'sdk'] as const)('a store call by the client %s', (awsClient) => {
  async function rig(
    answer: (...given: Parameters<RequestListener>) => unknown,
    settings: ClientSettings = {},
  ) {
    const seen: IncomingMessage[] = [];
    process.env['AWS_ENDPOINT_URL_DYNAMODB'] = await listening(
      createServer((request, response) => {
        seen.push(request);
        void answer(request, response);
      }),
    );
    const tables = connectTables({ aws: localAccess, awsClient }, { tryMsMax: 10_000, ...settings });
    const get = (): Promise<unknown> =>
      tables.call('GetItem', { TableName: 'relay-keys', Key }).catch((error: unknown) => error);
    return { seen, tables, get };
  }

  test('throws StoreUnavailable when the store never answers', async () => {
    const { get } = await rig((request) => void request.resume(), { attempts: 2, tryMsMax: 100 });
    expect(await get()).toBeInstanceOf(StoreUnavailable);
  });

  test.each<[string, RequestListener]>([
    ['closes the connection', (request) => request.socket.destroy()],
    ['answers 500', awsError(500, 'InternalServerError')],
    ['throttles', awsError(400, 'ThrottlingException')],
  ])(
    'throws StoreUnavailable after the requested number of attempts when the store %s',
    async (_what, answer) => {
      const { seen, get } = await rig(answer, { attempts: 2 });
      expect(await get()).toBeInstanceOf(StoreUnavailable);
      expect(seen).toHaveLength(2);
    },
  );

  test.each(['<html>', '{"Item": {"n'])(
    'throws StoreUnavailable when the reply is %s, because the store may have applied the write',
    async (reply) => {
      const { get } = await rig((_request, response) => response.end(reply), { attempts: 1 });
      const error = await get();
      expect(error).toBeInstanceOf(StoreUnavailable);
      expect(error).toMatchObject({ cause: { code: 'EBADREPLY', sent: true } });
    },
  );

  test('keeps the error of a rejected request, and the request id from AWS', async () => {
    const { get } = await rig(awsError(400, 'ConditionalCheckFailedException', { Item: { n: { N: '1' } } }));
    const error = await get();
    expect(error).toMatchObject({ name: 'ConditionalCheckFailedException', Item: { n: { N: '1' } } });
    expect(storeRequestId(error)).toBe('TTQJ-1');
  });

  test('identifies the relay in its user agent', async () => {
    const { seen, get } = await rig(awsError(400, 'ValidationException'));
    await get();
    expect(seen[0]?.headers['user-agent']).toMatch(/(^| )relay\/\S+( |$)/);
  });

  test('round-trips numbers of 38 digits, sets and bytes unchanged', async () => {
    const digits = '12345678901234567890123456789012345678';
    const Item = {
      ...Key,
      n: { N: digits },
      small: { N: `0.${digits}` },
      many: { NS: [digits, '-1'] },
      in: { M: { a: { L: [{ N: digits }, { NULL: true }, { BOOL: false }, { SS: ['b'] }] } } },
      b: { B: Buffer.from([0, 255]) },
    };
    const bodies: string[] = [];
    const { tables } = await rig(async (request, response) => {
      const body = String(await buffer(request));
      bodies.push(body);
      response.setHeader('content-type', 'application/x-amz-json-1.0');
      const { RequestItems } = JSON.parse(body) as { RequestItems?: object };
      response.end(
        RequestItems
          ? JSON.stringify({
              Responses: { 'relay-keys': [(JSON.parse(bodies[0] ?? '') as { Item: object }).Item] },
            })
          : '{}',
      );
    });
    await tables.call('PutItem', { TableName: 'relay-keys', Item });
    const { Responses } = await tables.call('BatchGetItem', {
      RequestItems: { 'relay-keys': { Keys: [Key] } },
    });
    const [found] = Responses?.['relay-keys'] ?? [];
    expect({ ...found, b: { B: Buffer.from(found?.['b']?.B ?? []) } }).toEqual(Item);
  });
});
