import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Environment } from '../../../../shared/adapters/system/environment.ts';
import { createSecretStore } from '../../../../shared/adapters/secrets/secret-store.ts';
import type { SecretPurpose } from '../../../../shared/config/rows/secret-reference.ts';
import { SecretUnusable } from '../../../../shared/relay/ports/config-store.ts';
import { passTime, steeredClock, type SteeredClock } from '../steered-clock.ts';
import { localAccess } from '../dynamodb/store.ts';
import { SecretServer } from './secret-server.ts';

const server = new SecretServer();

beforeAll(() => server.start());
afterAll(() => server.stop());

let clock: SteeredClock;
beforeEach(() => {
  clock = steeredClock();
  server.reset();
});

interface Opened {
  local?: boolean;
  variables?: Record<string, string>;
  random?: { next(): number };
  purpose?: SecretPurpose;
}

function open({
  local = false,
  variables = {},
  random = { next: (): number => 0 },
  purpose = 'channels',
}: Opened = {}) {
  const environment: Environment = {
    stack: 'relay-beta',
    version: '1',
    originSecrets: [],
    local,
    envSecrets: ['UPSTREAM_KEY', 'OTHERS_*', 'payments/OTHERS_STRIPE', 'channels/a.example.com/BOUND'],
    aws: localAccess,
  };
  return createSecretStore({ environment, clock, purpose, random, variables });
}

describe('the secret store', () => {
  test('reads a parameter of the stack, decrypted', async () => {
    expect(await open().read('ssm:/relay/relay-beta/openai')).toBe('sk-upstream');
    expect(server.calls).toEqual([
      { target: 'GetParameter', input: { Name: '/relay/relay-beta/openai', WithDecryption: true } },
    ]);
  });

  test('reads a managed secret of the stack', async () => {
    expect(await open().read('secretsmanager:relay-beta/openai')).toBe('sk-upstream');
    expect(server.calls).toEqual([{ target: 'GetSecretValue', input: { SecretId: 'relay-beta/openai' } }]);
  });

  test.each([
    'ssm:/relay/relay/openai',
    'ssm:/relay/relay-betamax/openai',
    'ssm:/other/openai',
    'secretsmanager:relay/openai',
    'secretsmanager:arn:aws:secretsmanager:us-east-1:1:secret:other',
  ])('rejects %s, which is outside the stack, without a call', async (reference) => {
    await expect(open().read(reference)).rejects.toThrow('relay-beta/ only');
    expect(server.calls).toEqual([]);
  });

  test.each([
    ['channels', 'ssm:/relay/relay-beta/payments/stripe', 'a.example.com'],
    ['channels', 'secretsmanager:relay-beta/console/oidc', 'a.example.com'],
    ['channels', 'ssm:/relay/relay-beta/channels/b.example.com/key', 'a.example.com'],
    ['channels', 'ssm:/relay/relay-beta/channels/a.example.com/key', 'a.example.com:8443'],
    ['search', 'ssm:/relay/relay-beta/channels/a.example.com/key', 'a.example.com'],
    ['payments', 'ssm:/relay/relay-beta/payments/api.stripe.com/key', 'a.example.com'],
    ['channels', 'env:OTHERS_STRIPE', 'a.example.com'],
    ['channels', 'env:BOUND', 'b.example.com'],
  ] as const)('for %s rejects %s to %s, without a call', async (purpose, reference, host) => {
    const variables = { OTHERS_STRIPE: 'rk_live', BOUND: 'sk-bound' };
    await expect(open({ local: true, purpose, variables }).read(reference, host)).rejects.toMatchObject({
      name: 'SecretUnusable',
      reason: 'access_denied',
    });
    expect(server.calls).toEqual([]);
  });

  test.each([
    ['channels', 'ssm:/relay/relay-beta/channels/a.example.com_8443/key', 'a.example.com:8443'],
    ['channels', 'ssm:/relay/relay-beta/channels/a.example.com/key', 'a.example.com.'],
    ['channels', 'ssm:/relay/relay-beta/old', 'a.example.com'],
    ['payments', 'ssm:/relay/relay-beta/payments/links', undefined],
    ['payments', 'ssm:/relay/relay-beta/payments/api.stripe.com/key', undefined],
  ] as const)('for %s reads %s to %s', async (purpose, reference, host) => {
    expect(await open({ purpose }).read(reference, host)).toBe('sk-upstream');
  });

  test('reads a variable on the local stack only', async () => {
    const variables = { UPSTREAM_KEY: 'sk-local\n' };
    expect(await open({ local: true, variables }).read('env:UPSTREAM_KEY')).toBe('sk-local');
    await expect(open({ variables }).read('env:UPSTREAM_KEY')).rejects.toThrow('local stack only');
  });

  test('rejects a variable that its owner did not allow, and explains how to allow it', async () => {
    const variables = { OTHERS_KEY: 'sk-others', OTHER_KEY: 'sk-other', UPSTREAM_KEY_2: 'sk-2' };
    const store = open({ local: true, variables });
    expect(await store.read('env:OTHERS_KEY')).toBe('sk-others');
    for (const name of ['OTHER_KEY', 'UPSTREAM_KEY_2', 'SEAL_KEYS'])
      await expect(store.read(`env:${name}`)).rejects.toMatchObject({
        name: 'SecretUnusable',
        message: `allow it by RELAY_ENV_SECRETS=${name}`,
      });
  });

  test('rejects a value that no request header can carry, and does not repeat it', async () => {
    for (const value of [' \n', 'sk-one\nsk-two', 'sk-\u0000', 'sk-\u201cquoted\u201d']) {
      server.value = value;
      const refused = open().read('ssm:/relay/relay-beta/openai');
      await expect(refused).rejects.toMatchObject({ name: 'SecretUnusable', reason: 'malformed' });
      await expect(refused).rejects.toThrow(/^(?!.*sk-)/);
    }
    await expect(open({ local: true }).read('env:OTHERS_ABSENT')).rejects.toMatchObject({
      reason: 'missing',
    });
    const blank = open({ local: true, variables: { OTHERS_BLANK: '' } }).read('env:OTHERS_BLANK');
    await expect(blank).rejects.toMatchObject({ reason: 'malformed' });
  });

  test('does not repeat a value that was entered in place of a reference', async () => {
    await expect(open().read('sk-typed-into-the-row')).rejects.toThrow(/^(?!.*sk-typed)/);
  });

  test('reads the value again once for consecutive rejected calls', async () => {
    const secrets = open();
    await secrets.read('ssm:/relay/relay-beta/openai');
    for (let refusal = 0; refusal < 10; refusal += 1) await secrets.refresh('ssm:/relay/relay-beta/openai');
    expect(server.calls).toHaveLength(2);
  });

  test('reads the value again after five minutes, and not before', async () => {
    const secrets = open();
    await secrets.read('ssm:/relay/relay-beta/openai');
    server.value = 'sk-rotated';
    clock.advance(5 * 60_000 - 1);
    expect(await secrets.read('ssm:/relay/relay-beta/openai')).toBe('sk-upstream');
    clock.advance(1);
    expect(await secrets.read('ssm:/relay/relay-beta/openai')).toBe('sk-rotated');
    expect(server.calls).toHaveLength(2);
  });

  test('serves the last value while the store does not answer, but not after the secret was deleted', async () => {
    const secrets = open();
    await secrets.read('ssm:/relay/relay-beta/openai');
    clock.advance(5 * 60_000);
    server.failure = { status: 400, type: 'ThrottlingException' };
    const startedMs = clock.now();
    expect(await passTime(clock, secrets.read('ssm:/relay/relay-beta/openai'))).toBe('sk-upstream');
    expect(clock.now() - startedMs).toBeLessThanOrEqual(510);
    // The store is asked again soon, so that a replaced value is found.
    clock.advance(30_000);
    server.failure = { status: 400, type: 'ParameterNotFound' };
    await expect(secrets.read('ssm:/relay/relay-beta/openai')).rejects.toBeInstanceOf(SecretUnusable);
  });

  test('reports after a refresh whether the value differs from the one in use', async () => {
    const secrets = open();
    await secrets.read('ssm:/relay/relay-beta/openai');
    expect(await secrets.refresh('ssm:/relay/relay-beta/openai')).toBe(false);
    clock.advance(5_000);
    server.value = 'sk-rotated';
    expect(await secrets.refresh('ssm:/relay/relay-beta/openai')).toBe(true);
    expect(await secrets.read('ssm:/relay/relay-beta/openai')).toBe('sk-rotated');
    expect(await open().refresh('ssm:/relay/relay-beta/openai')).toBe(true);
  });

  test('reports the new value to all calls that were rejected with the old one', async () => {
    const secrets = open();
    const reference = 'ssm:/relay/relay-beta/openai';
    await secrets.read(reference);
    server.value = 'sk-rotated';
    expect(await Promise.all([secrets.refresh(reference), secrets.refresh(reference)])).toEqual([true, true]);
    expect(await secrets.refresh(reference)).toBe(true);
    expect(server.calls).toHaveLength(2);
  });

  test('reports the new value even when it arrived too late for the rejected call', async () => {
    const secrets = open();
    const reference = 'ssm:/relay/relay-beta/openai';
    await secrets.read(reference);
    clock.advance(5 * 60_000);
    server.value = 'sk-rotated';
    const answered = server.holdAnswers();
    const used = secrets.read(reference);
    await expect.poll(() => server.calls.length).toBe(2);
    clock.advance(500);
    expect(await used).toBe('sk-upstream');
    answered();
    await expect.poll(() => server.answers).toBe(2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(await secrets.refresh(reference)).toBe(true);
    expect(await secrets.read(reference)).toBe('sk-rotated');
  });
});
