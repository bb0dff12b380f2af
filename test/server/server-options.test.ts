import { describe, expect, test } from 'vitest';
import { createRouting } from '../../infra/server/web-server.ts';
import { readServerOptions, collectNumberedSecrets } from '../../infra/server/server-options.ts';
import { listInPage, serverAccess } from '../scripts/server-access.ts';
import { readPage } from '../docs/pages.ts';
import type { HostedHandle } from '../../shared/relay/http/http.ts';

describe('the variables of the server', () => {
  test('have defaults', () => {
    expect(readServerOptions({})).toEqual({
      host: '0.0.0.0',
      port: 8080,
      requestBytesMax: expect.any(Number) as number,
      bodyBytesMax: expect.any(Number) as number,
      requestsMax: 256,
      drainMs: 20_000,
      countMs: undefined,
    });
  });

  test('combine secrets of single variables, and leave combined ones unchanged', () => {
    const numbered = { ORIGIN_SECRET_1: 'a', ORIGIN_SECRET_2: 'b', SEAL_KEY_2: 'c', SEAL_KEY_10: 'd' };
    expect(collectNumberedSecrets(numbered)).toMatchObject({
      ORIGIN_SECRETS: 'a,b',
      SEAL_KEYS: '{"2":"c","10":"d"}',
    });
    expect(collectNumberedSecrets({ ORIGIN_SECRETS: '' })).toEqual({ ORIGIN_SECRETS: '' });
    expect(collectNumberedSecrets({ ...numbered, SEAL_KEYS: 'given' })).toMatchObject({ SEAL_KEYS: 'given' });
  });

  test.each([
    [{ RELAY_LISTEN: '127.0.0.1:0' }, { host: '127.0.0.1', port: 0 }],
    [{ RELAY_LISTEN: '[::]:80' }, { host: '::', port: 80 }],
    [{ RELAY_LISTEN: 'localhost:1' }, { host: 'localhost', port: 1 }],
  ])('set the address and port: %o', (variables, address) => {
    expect(readServerOptions(variables)).toMatchObject(address);
  });

  test('set the size limit of a body: the budget of all bodies must fit two', () => {
    const megabyte = 1024 * 1024;
    const { requestBytesMax, bodyBytesMax } = readServerOptions({ RELAY_REQUEST_MEGABYTES: '64' });
    expect(requestBytesMax).toBe(64 * megabyte);
    expect(bodyBytesMax).toBeGreaterThanOrEqual(128 * megabyte);
    const narrow = { RELAY_REQUEST_MEGABYTES: '10', RELAY_BODY_MEGABYTES: '19' };
    expect(() => readServerOptions(narrow)).toThrow(
      'RELAY_BODY_MEGABYTES is 19, expected a whole number from 20 ',
    );
  });

  test.each([
    ['RELAY_LISTEN', '8080'],
    ['RELAY_LISTEN', 'a:70000'],
    ['RELAY_LISTEN', '[a]:1'],
    ['RELAY_BODY_MEGABYTES', '1'],
    ['RELAY_REQUEST_MEGABYTES', '0'],
    ['RELAY_REQUEST_MEGABYTES', '65'],
    ['RELAY_REQUESTS_MAX', '0'],
    ['RELAY_DRAIN_SECONDS', '1.5'],
    ['RELAY_COUNT_SECONDS', '61'],
  ])('are rejected by name: %s=%s', (name, value) => {
    expect(() => readServerOptions({ [name]: value })).toThrow(`${name} is ${value}, expected `);
  });
});

describe('a path', () => {
  const handleOf = (name: string) => ({ name }) as unknown as HostedHandle;
  const route = createRouting({
    chat: handleOf('chat'),
    responses: handleOf('responses'),
    messages: handleOf('messages'),
    catalog: handleOf('catalog'),
  });

  test('is served by the function to which the distribution sends it', () => {
    const paths = {
      chat: ['/v1/chat/', '/v1/chat/completions', '/v1/embeddings'],
      responses: ['/v1/responses', '/v1/responses/x'],
      messages: ['/v1/messages', '/v1/messages/count_tokens'],
      // Payments have their own function, so their path is unknown here.
      catalog: [
        '/',
        '/health',
        '/v1/models',
        '/v1/openapi.json',
        '/v1/chat',
        '/v1/Chat/completions',
        '/hooks/payments/stripe',
      ],
    };
    for (const [name, ofFunction] of Object.entries(paths))
      for (const path of ofFunction)
        expect([path, route(path)]).toMatchObject([path, { hosted: handleOf(name) }]);
  });
});

test('the page lists the permissions of the functions that the server replaces: node test/scripts/server-access.ts writes them', () => {
  expect(listInPage.exec(readPage('docs/server.md'))?.[0]).toBe(serverAccess());
  for (const table of ['responses', 'daily']) expect(serverAccess()).toContain(`\`${table}\``);
  expect(serverAccess()).not.toMatch(/payments|grants/);
});
