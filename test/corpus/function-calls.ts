/** Calls through the real composition of both answering functions: every DynamoDB request, with ids and times normalised. */
import { once } from 'node:events';
import { createServer, request as sendRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { delta, done, finish, usage } from '../support/core-rig.ts';
import { startEmulator } from '../support/emulator.ts';
import { urlEvent } from '../unit/adapters/lambda/url-event.ts';
import { environmentOf, key, putRows } from '../request-path/run-request.ts';

const calls: [name: string, path: string, body: object, headers?: Record<string, string>][] = [
  ['chat-stream', '/v1/chat/completions', { stream: true, messages: [{ role: 'user', content: 'hi' }] }],
  ['chat-json', '/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
  [
    'chat-repeated',
    '/v1/chat/completions',
    { messages: [{ role: 'user', content: 'hi' }] },
    { 'idempotency-key': 'k' },
  ],
  ['responses-stored', '/v1/responses', { input: 'hi', store: true }],
  ['responses-stream', '/v1/responses', { stream: true, input: 'hi', store: false }],
  ['unknown-model', '/v1/chat/completions', { model: 'x', messages: [{ role: 'user', content: 'hi' }] }],
];

type Handler = (event: object, stream: NodeJS.WritableStream, context: object) => Promise<void>;

export async function functionCalls(root: string): Promise<[name: string, text: string][]> {
  const upstream = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end([delta('Hel'), delta('lo'), finish(), usage(7, 2), done].join(''));
    });
  });
  const emulator = await startEmulator();
  const seen: string[] = [];
  const proxy = createServer((request, response) => {
    void textOf(request).then((body) => {
      seen.push(`${String(request.headers['x-amz-target'])} ${body}`);
      const on = sendRequest(emulator.endpoint, { method: 'POST', headers: request.headers }, (reply) => {
        response.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(response);
      });
      on.end(body);
    });
  });
  await Promise.all([
    once(upstream.listen(0, '127.0.0.1'), 'listening'),
    once(proxy.listen(0, '127.0.0.1'), 'listening'),
  ]);
  const portOf = (server: typeof proxy): number => (server.address() as AddressInfo).port;
  await putRows(emulator.endpoint, `http://127.0.0.1:${portOf(upstream)}/v1`);
  Object.assign(process.env, environmentOf(`http://127.0.0.1:${portOf(proxy)}`));
  Object.assign(globalThis, {
    awslambda: {
      streamifyResponse: (handler: unknown) => handler,
      HttpResponseStream: { from: (stream: unknown) => stream },
    },
  });
  const load = async (name: string): Promise<unknown> =>
    import(pathToFileURL(path.join(root, `functions/${name}.ts`)).href);
  const config = (await load('config')) as { handler: (event: object, context: object) => Promise<void> };
  await config.handler({ 'detail-type': 'Scheduled Event' }, {});
  const results: [string, string][] = [['functions/config', normal(seen.splice(0), [])]];
  const context = { getRemainingTimeInMillis: () => 60_000, awsRequestId: 'corpus' };
  for (const [name, url, body, headers] of calls) {
    const { handler } = (await load(url.includes('responses') ? 'responses' : 'chat')) as {
      handler: Handler;
    };
    const event = urlEvent({
      path: url,
      headers: { authorization: `Bearer ${key}`, 'x-relay-origin': 'distribution', ...headers },
      body: JSON.stringify({ model: 'm', ...body }),
    });
    const stream = new PassThrough();
    const answer = textOf(stream);
    await handler(event, stream, context);
    results.push([`functions/${name}`, normal(seen.splice(0), [await answer])]);
  }
  upstream.close().closeAllConnections();
  proxy.close().closeAllConnections();
  await emulator.stop();
  return results;
}

/** Requests of one call may overtake each other: sorted. */
const normal = (requests: string[], answers: string[]): string =>
  [...requests.map(plain).toSorted(), ...answers.map(plain)].join('\n\n');

const plain = (text: string): string =>
  text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UUID')
    .replaceAll(/[0-9a-f]{32,64}/g, 'HEX')
    .replaceAll(/[0-9a-hjkmnp-tv-z]{26}/g, 'ID')
    // How long a call took, the last entry of its record.
    .replaceAll(/\{"N":"\d+"\}\]\}/g, '{"N":"MS"}]}')
    .replaceAll(/[A-Za-z0-9+/_-]{60,}={0,2}/g, 'BASE64')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z?|\d{4}-\d\d-\d\d( \d\d:\d\d)?/g, 'TIME')
    .replaceAll(/\d{10,13}(\.\d+)?/g, 'NUMBER');
