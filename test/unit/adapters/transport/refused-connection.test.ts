import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import { readFailure } from '../../../../shared/upstreams/read-failure.ts';

test('a rejected response with an unread body releases its connection', async () => {
  const server = createServer((_request, response) => {
    response.writeHead(503).write('an answer without an end');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const closed = once(server, 'connection').then(([socket]) => once(socket, 'close'));
  const reply = await createHttpsTransport({ local: true }).send(
    {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/chat/completions`,
      headers: {},
      body: '{}',
      connectTimeoutMs: 1000,
    },
    new AbortController().signal,
  );
  const failure = await readFailure(reply, { withheld: [] });
  expect(failure).toMatchObject({ kind: 'status', status: 503 });
  await closed;
  server.close();
});
