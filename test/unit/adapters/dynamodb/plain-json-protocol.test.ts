import { expect, test } from 'vitest';
import {
  PlainJsonProtocol,
  type JsonOperation,
} from '../../../../shared/adapters/dynamodb/plain-json-protocol.ts';

class HttpRequest {
  readonly body: string;
  constructor(request: object) {
    this.body = (request as { body: string }).body;
  }
}

class ServiceError extends Error {}

const context = {
  endpoint: () => Promise.resolve({ protocol: 'http:', hostname: 'store', path: '/' }),
  streamCollector: (body: unknown) => Promise.resolve(body as Uint8Array),
  utf8Encoder: (bytes: Uint8Array) => Buffer.from(bytes).toString(),
  base64Encoder: (bytes: Uint8Array) => Buffer.from(bytes).toString('base64'),
  base64Decoder: (text: string) => Uint8Array.from(Buffer.from(text, 'base64')),
};
const protocol = new PlainJsonProtocol(
  { serviceTarget: 'Store', errorTypeRegistries: { Base: ServiceError as never, classes: {} } },
  {
    HttpRequest,
    newId: () => 'new',
    contentType: 'json',
  },
);

const sent = async (input: Record<string, unknown>, operation: JsonOperation = {}): Promise<unknown> =>
  JSON.parse((await protocol.serializeRequest({ name: 'Put', input: operation }, input, context)).body);

const received = (text: string): Promise<object> =>
  protocol.deserializeResponse({ input: {} }, context, {
    statusCode: 200,
    headers: {},
    body: Buffer.from(text),
  });

test('an attribute may have any name, both ways', async () => {
  const item = JSON.parse('{"__proto__":{"S":"a"},"B":{"S":"text"},"BS":{"L":[]}}') as object;
  expect(JSON.stringify(await sent({ Item: item }))).toBe(JSON.stringify({ Item: item }));
  expect(JSON.stringify(await received(JSON.stringify({ Item: item })))).toContain(JSON.stringify(item));
});

test('bytes go up as base64 and come back as bytes, whatever white space the reply has', async () => {
  expect(await sent({ Item: { a: { B: Buffer.from('ab') } } })).toEqual({ Item: { a: { B: 'YWI=' } } });
  expect(await received('{ "Item" : { "a" : { "B" : "YWI=" }, "b" : { "BS" :\n["YQ=="] } } }')).toMatchObject(
    {
      Item: { a: { B: Uint8Array.from([97, 98]) }, b: { BS: [Uint8Array.from([97])] } },
    },
  );
});

test('a transaction keeps the token of its caller, or gets a new one', async () => {
  const operation = { token: 'Token' };
  expect(await sent({ Token: 'mine' }, operation)).toEqual({ Token: 'mine' });
  expect(await sent({ Token: undefined }, operation)).toEqual({ Token: 'new' });
});

test('an operation that is not in the bundles is refused before anything is sent', async () => {
  await expect(protocol.serializeRequest({}, {}, context)).rejects.toThrow('left out of the bundles');
});
