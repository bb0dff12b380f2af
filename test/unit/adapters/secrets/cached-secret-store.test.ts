import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Environment } from '../../../../shared/adapters/system/environment.ts';
import { secretStore } from '../../../../shared/adapters/secrets/cached-secret-store.ts';
import { SecretMissing } from '../../../../shared/relay/ports/secret-store.ts';
import { steeredClock, type SteeredClock } from '../steered-clock.ts';
import { localAccess } from '../dynamodb/store.ts';

/** The wire protocol of both services, as far as reading one value goes. */
const calls: { target: string; input: Record<string, unknown> }[] = [];
let value = 'sk-upstream';
/** What the store answers instead. */
let failure: { status: number; type: string } | undefined;
const server = createServer((request, response) => {
  void text(request).then((body) => {
    const target = String(request.headers['x-amz-target']).split('.').at(-1) ?? '';
    calls.push({ target, input: JSON.parse(body) as Record<string, unknown> });
    response.setHeader('content-type', 'application/x-amz-json-1.1');
    if (failure) {
      response.writeHead(failure.status).end(JSON.stringify({ __type: failure.type }));
      return;
    }
    response.end(
      JSON.stringify(target === 'GetParameter' ? { Parameter: { Value: value } } : { SecretString: value }),
    );
  });
});

beforeAll(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  process.env['AWS_ENDPOINT_URL_SSM'] = endpoint;
  process.env['AWS_ENDPOINT_URL_SECRETS_MANAGER'] = endpoint;
});
afterAll(() => server.close().closeAllConnections());

let clock: SteeredClock;
beforeEach(() => {
  clock = steeredClock();
  calls.length = 0;
  value = 'sk-upstream';
  failure = undefined;
});

function open({ local = false, variables = {} } = {}) {
  const environment: Environment = {
    stack: 'relay-beta',
    version: '1',
    originSecrets: [],
    local,
    aws: localAccess,
  };
  return secretStore({ environment, clock, variables });
}

describe('the secret store', () => {
  test('reads a parameter of the stack, decrypted', async () => {
    expect(await open().read('ssm:/relay/relay-beta/openai')).toBe('sk-upstream');
    expect(calls).toEqual([
      { target: 'GetParameter', input: { Name: '/relay/relay-beta/openai', WithDecryption: true } },
    ]);
  });

  test('reads a managed secret of the stack', async () => {
    expect(await open().read('secretsmanager:relay-beta/openai')).toBe('sk-upstream');
    expect(calls).toEqual([{ target: 'GetSecretValue', input: { SecretId: 'relay-beta/openai' } }]);
  });

  test.each([
    'ssm:/relay/relay/openai',
    'ssm:/relay/relay-betamax/openai',
    'ssm:/other/openai',
    'secretsmanager:relay/openai',
    'secretsmanager:arn:aws:secretsmanager:us-east-1:1:secret:other',
  ])('refuses %s, which is outside the stack, without a call', async (reference) => {
    await expect(open().read(reference)).rejects.toThrow('relay-beta/ only');
    expect(calls).toEqual([]);
  });

  test('reads a variable on the local stack only', async () => {
    const variables = { UPSTREAM_KEY: 'sk-local\n' };
    expect(await open({ local: true, variables }).read('env:UPSTREAM_KEY')).toBe('sk-local');
    await expect(open({ variables }).read('env:UPSTREAM_KEY')).rejects.toThrow('local stack only');
  });

  test('names an empty secret', async () => {
    value = ' \n';
    await expect(open().read('ssm:/relay/relay-beta/blank')).rejects.toThrow('ssm:/relay/relay-beta/blank');
    await expect(open({ local: true }).read('env:ABSENT')).rejects.toThrow('env:ABSENT');
  });

  test('does not repeat a value that was put where a reference belongs', async () => {
    await expect(open().read('sk-typed-into-the-row')).rejects.toThrow(/^(?!.*sk-typed)/);
  });

  test('asks again after five minutes, and not before', async () => {
    const secrets = open();
    await secrets.read('ssm:/relay/relay-beta/openai');
    value = 'sk-rotated';
    clock.advance(5 * 60_000 - 1);
    expect(await secrets.read('ssm:/relay/relay-beta/openai')).toBe('sk-upstream');
    clock.advance(1);
    expect(await secrets.read('ssm:/relay/relay-beta/openai')).toBe('sk-rotated');
    expect(calls).toHaveLength(2);
  });

  test('serves the last value while the store does not answer, and none that the store says is gone', async () => {
    const secrets = open();
    await secrets.read('ssm:/relay/relay-beta/openai');
    clock.advance(5 * 60_000);
    failure = { status: 400, type: 'ThrottlingException' };
    expect(await secrets.read('ssm:/relay/relay-beta/openai')).toBe('sk-upstream');
    clock.advance(5 * 60_000);
    failure = { status: 400, type: 'ParameterNotFound' };
    await expect(secrets.read('ssm:/relay/relay-beta/openai')).rejects.toBeInstanceOf(SecretMissing);
  });

  test('tells a secret that is missing from a store that does not answer', async () => {
    failure = { status: 400, type: 'ThrottlingException' };
    const refused = await open()
      .read('ssm:/relay/relay-beta/openai')
      .catch((error: unknown) => error);
    expect(refused).not.toBeInstanceOf(SecretMissing);
    failure = { status: 400, type: 'AccessDeniedException' };
    await expect(open().read('ssm:/relay/relay-beta/openai')).rejects.toBeInstanceOf(SecretMissing);
  });

  test('says after reading anew whether the value is another than the one that was used', async () => {
    const secrets = open();
    await secrets.read('ssm:/relay/relay-beta/openai');
    expect(await secrets.refresh('ssm:/relay/relay-beta/openai')).toBe(false);
    value = 'sk-rotated';
    expect(await secrets.refresh('ssm:/relay/relay-beta/openai')).toBe(true);
    expect(await secrets.read('ssm:/relay/relay-beta/openai')).toBe('sk-rotated');
    expect(await open().refresh('ssm:/relay/relay-beta/openai')).toBe(true);
  });
});
