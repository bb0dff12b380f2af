import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createSecretStore, createSecretCheck } from '../../../../shared/adapters/secrets/secret-store.ts';
import { passTime, steeredClock } from '../steered-clock.ts';
import { localAccess } from '../dynamodb/store.ts';
import { SecretServer, type ErrorForm } from './secret-server.ts';

const server = new SecretServer();

beforeAll(() => server.start());
afterAll(() => server.stop());
beforeEach(() => server.reset());

const parameter = 'ssm:/relay/relay/openai';

/** The check on the store that functions use, and through the SDK. */
function unusable(references: string[], local = false): Promise<ReadonlyMap<string, string>> {
  const clock = steeredClock();
  const environment = {
    stack: 'relay',
    version: '1',
    originSecrets: [],
    local,
    envSecrets: ['*'],
    aws: localAccess,
  };
  const secrets = createSecretStore({ environment, clock, purpose: 'channels', variables: {} });
  return passTime(clock, createSecretCheck({ secrets, clock, local }).unusable(references));
}

describe('an unusable secret', () => {
  test.each<[string, string]>([
    ['ParameterNotFound', 'missing: nothing has this name'],
    ['ParameterVersionNotFound', 'missing: nothing has this name'],
    ['AccessDeniedException', 'access denied: this stack may not read or decrypt it'],
    ['ValidationException', 'malformed'],
  ])("is reported for SSM's answer %s as %s", async (type, words) => {
    for (const form of ['type', 'type with namespace', 'header'] satisfies ErrorForm[]) {
      server.failure = { status: 400, type, form };
      expect(await unusable([parameter])).toEqual(new Map([[parameter, words]]));
    }
    expect(server.calls).toHaveLength(3);
  });

  test.each<[string, string]>([
    ['ResourceNotFoundException', 'missing: nothing has this name'],
    ['InvalidRequestException', 'missing: nothing has this name'],
    ['AccessDeniedException', 'access denied: this stack may not read or decrypt it'],
  ])("is reported for Secrets Manager's answer %s as %s", async (type, words) => {
    server.failure = { status: 400, type };
    expect(await unusable(['secretsmanager:relay/openai'])).toEqual(
      new Map([['secretsmanager:relay/openai', words]]),
    );
  });

  test('is reported as malformed for its value, without the value', async () => {
    server.value = 'sk-canary\nsk-canary';
    expect(await unusable([parameter])).toEqual(
      new Map([[parameter, 'malformed: the value has a character that no header can carry']]),
    );
    server.value = ' ';
    expect([...(await unusable([parameter])).values()]).toEqual([
      'malformed: the value is empty, or no text',
    ]);
  });

  test.each(['ThrottlingException', 'InternalServerError'])(
    'is not reported while the store answers %s',
    async (type) => {
      server.failure = { status: type === 'ThrottlingException' ? 400 : 500, type };
      expect(await unusable([parameter])).toEqual(new Map());
    },
  );

  test('is not reported when the secret works', async () => {
    expect(await unusable([parameter])).toEqual(new Map());
  });

  test('is looked up only among environment variables on the local stack', async () => {
    expect(await unusable([parameter, 'env:OPENAI_API_KEY'], true)).toEqual(
      new Map([['env:OPENAI_API_KEY', 'missing: nothing has this name']]),
    );
    expect(server.calls).toEqual([]);
  });
});
