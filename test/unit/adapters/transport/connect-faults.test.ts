import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createSecureServer } from 'node:https';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import { UpstreamFailure } from '../../../../shared/upstreams/exchange.ts';
import { selfSigned } from './self-signed.ts';
import { listening } from '../../../support/listening.ts';

/** The logged reason when a request to the address can't connect. */
async function reasonAt(url: string, connectTimeoutMs = 5000): Promise<string | undefined> {
  const request = { url, headers: {}, body: '{}', connectTimeoutMs };
  const sent = createHttpsTransport({ local: true }).send(request, new AbortController().signal);
  const failure = UpstreamFailure.from(await sent.then(undefined, (error: unknown) => error));
  expect(failure?.kind).toBe('connect');
  return failure?.reason;
}

const listen = async (server: Server): Promise<number> => Number(new URL(await listening(server)).port);

async function secure(certificate: { key: string; cert: string }, isTrusted = true): Promise<string> {
  if (isTrusted) setDefaultCACertificates([...getCACertificates('default'), certificate.cert]);
  return `https://127.0.0.1:${await listen(createSecureServer(certificate))}/`;
}

test('an unknown host name is reported as dns', async () => {
  expect(await reasonAt('https://nowhere.invalid/')).toBe('upstream_connect_dns');
});

/** A stopped process with a full connection queue: the kernel answers nothing more. */
async function blackHole(): Promise<number> {
  const code =
    "require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port) })";
  const child = spawn(process.execPath, ['-e', code]);
  const port = Number(String(((await once(child.stdout, 'data')) as [Buffer])[0]));
  child.kill('SIGSTOP');
  const waiting = Array.from({ length: 16 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  onTestFinished(() => {
    for (const socket of waiting) socket.destroy();
    child.kill('SIGKILL');
  });
  await once(waiting[0] as Socket, 'connect');
  return port;
}

test('a silent host is reported as a timeout, in TCP and in the TLS handshake', async () => {
  expect(await reasonAt(`http://127.0.0.1:${await blackHole()}/`, 300)).toBe('upstream_connect_timeout');
  const silent = await listen(createServer());
  expect(await reasonAt(`https://127.0.0.1:${silent}/`, 300)).toBe('upstream_connect_timeout');
});

test('a server that speaks no TLS or disconnects in the handshake is reported as tls', async () => {
  const plain = await listen(createServer((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n')));
  expect(await reasonAt(`https://127.0.0.1:${plain}/`)).toBe('upstream_connect_tls');
  const rude = await listen(createServer((socket) => socket.once('data', () => socket.destroy())));
  expect(await reasonAt(`https://127.0.0.1:${rude}/`)).toBe('upstream_connect_tls');
});

test('an untrusted, expired or mismatched certificate is reported by its name', async () => {
  expect(await reasonAt(await secure(selfSigned(), false))).toBe('upstream_connect_tls_untrusted');
  expect(await reasonAt(await secure(selfSigned({ until: '20200201000000Z' })))).toBe(
    'upstream_connect_tls_expired',
  );
  expect(await reasonAt(await secure(selfSigned({ address: [127, 0, 0, 9] })))).toBe(
    'upstream_connect_tls_host',
  );
});
