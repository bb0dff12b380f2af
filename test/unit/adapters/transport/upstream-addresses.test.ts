import { createServer } from 'node:http';
import { expect, describe, test } from 'vitest';
import { type Resolve, createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import { listening } from '../../../support/listening.ts';

const never = new AbortController().signal;
const post = (url: string) => ({ url, headers: {}, body: '{}', connectTimeoutMs: 2000 });

const resolvesTo =
  (...addresses: string[]): Resolve =>
  (_name, _options, done) =>
    done(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

/** Counts connections: a rejected call must not even connect. */
async function serve(status = 200, headers: Record<string, string> = {}) {
  let connections = 0;
  const server = createServer((_request, response) => response.writeHead(status, headers).end('ok'));
  server.on('connection', () => (connections += 1));
  const address = await listening(server);
  return { port: Number(new URL(address).port), connections: () => connections };
}

describe.each([false, true])(
  'a public name (local stack: %s) gets no connection when it resolves to',
  (local) => {
    test.each([
      ['a private network', ['10.1.2.3']],
      ['another private network', ['172.20.0.1']],
      ['a home network', ['192.168.0.10']],
      ['the metadata service', ['169.254.169.254']],
      ['the metadata service over IPv6', ['fd00:ec2::254']],
      ['a link-local host with its zone', ['fe80::1%eth0']],
      ['an IPv4 address inside IPv6', ['::ffff:169.254.169.254']],
      ['this network', ['0.0.0.0']],
      ['any address', ['::']],
      ['a private address among public ones', ['1.1.1.1', '10.0.0.1']],
      ['nothing', []],
    ])('%s', async (_what, addresses) => {
      const transport = createHttpsTransport({ local, resolve: resolvesTo(...addresses) });
      const sent = transport.send(post('https://rebound.example.com/v1'), never);
      await expect(sent).rejects.toMatchObject({
        kind: 'connect',
        message: expect.stringMatching(/\((EPRIVATE|ENOTFOUND)\)/) as unknown,
      });
    });
  },
);

test('a public name that resolves to this machine is called on the local stack only', async () => {
  const { port, connections } = await serve();
  const url = `https://rebound.example.com:${port}/v1`;
  const resolve = resolvesTo('127.0.0.1');
  await expect(createHttpsTransport({ local: false, resolve }).send(post(url), never)).rejects.toThrow(
    'EPRIVATE',
  );
  expect(connections()).toBe(0);
  // It connects, and only then fails because the server speaks no TLS.
  await expect(createHttpsTransport({ local: true, resolve }).send(post(url), never)).rejects.not.toThrow(
    'EPRIVATE',
  );
  expect(connections()).toBe(1);
});

test('a name that resolves to public addresses is resolved again for the connection itself', async () => {
  const asked: string[] = [];
  const resolve: Resolve = (name, _options, done) => {
    asked.push(name);
    done(Object.assign(new Error('gone'), { code: 'ENOTFOUND' }), []);
  };
  const sent = createHttpsTransport({ local: false, resolve }).send(
    post('https://api.example.com/v1'),
    never,
  );
  await expect(sent).rejects.toThrow('ENOTFOUND');
  expect(asked).toEqual(['api.example.com']);
});

test.each([
  'http://127.0.0.1:1/',
  'https://127.0.0.1:1/',
  'https://localhost:1/',
  'https://[::1]:1/',
  'https://10.0.0.1/',
  'https://0xA9FEA9FE/',
  'https://2852039166/',
  'https://[::ffff:10.0.0.1]/',
  'https://[fd00:ec2::254]/',
])('outside the local stack %s is not called, whatever a configuration contains', async (url) => {
  await expect(createHttpsTransport({ local: false }).send(post(url), never)).rejects.toMatchObject({
    kind: 'connect',
    message: expect.stringMatching(/not public|neither https|EPRIVATE/) as unknown,
  });
});

test('a redirect is an ordinary reply: its target is never called', async () => {
  const target = await serve();
  const { port } = await serve(302, { location: `http://127.0.0.1:${target.port}/latest/meta-data` });
  const reply = await createHttpsTransport({ local: true }).send(post(`http://127.0.0.1:${port}/v1`), never);
  expect(reply.status).toBe(302);
  for await (const _bytes of reply.body);
  expect(target.connections()).toBe(0);
});
