import type OpenAI from 'openai';
import {
  APIError,
  AuthenticationError,
  BadRequestError,
  InternalServerError,
  NotFoundError,
  PermissionDeniedError,
  RateLimitError,
  UnprocessableEntityError,
} from 'openai';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  empty200,
  errorAsFirstFrame,
  errorInJson200,
  errorStatus,
  html200,
  htmlStatus,
  resetsBeforeHead,
  stopsEarly,
  upstreamError,
} from '../support/upstream-failures.ts';
import { chunk } from '../support/upstream-frames.ts';
import type { Reply } from '../support/upstream-reply.ts';
import { textStream } from '../support/upstream-scripts.ts';
import { clientStack, disabledKey, fragileModels, models, narrowKey } from './client-stack.ts';

let stack: Awaited<ReturnType<typeof clientStack>>;
let client: OpenAI;

beforeAll(async () => {
  stack = await clientStack();
  client = stack.client();
});
beforeEach(() => {
  stack.upstream.script(textStream('Hello.'));
  stack.upstream.forget();
});

const hello = { model: models.scripted as string, messages: [{ role: 'user' as const, content: 'Hello' }] };

let taken = 0;

/** The same call on a separate channel, because a channel that failed a few times is in cooldown. */
function fragileHello(): typeof hello {
  const model = fragileModels[taken];
  if (model === undefined) throw new Error('more cases than channels');
  taken += 1;
  return { ...hello, model };
}

/** Returns the error of a rejected call. Fails if the call succeeds. */
async function refused(call: Promise<unknown>): Promise<APIError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(APIError);
  return error as APIError;
}

describe('the error names what is wrong', () => {
  test.each(['sk-unknown', 'not-a-key', disabledKey])('key %s is an AuthenticationError', async (apiKey) => {
    const error = await refused(stack.client({ apiKey }).chat.completions.create(hello));
    expect(error).toBeInstanceOf(AuthenticationError);
    expect(error).toMatchObject({ type: 'authentication_error', code: 'invalid_api_key', param: null });
  });

  test('a model outside the whitelist is a PermissionDeniedError', async () => {
    const error = await refused(stack.client({ apiKey: narrowKey }).chat.completions.create(hello));
    expect(error).toBeInstanceOf(PermissionDeniedError);
    expect(error).toMatchObject({ type: 'access_denied_error', code: 'model_not_allowed' });
  });

  test('official billing without permission is a PermissionDeniedError', async () => {
    const error = await refused(
      client.chat.completions.create({ ...hello, model: `${models.scripted}-official` }),
    );
    expect(error).toBeInstanceOf(PermissionDeniedError);
    expect(error.code).toBe('official_not_allowed');
  });

  test('a model without a channel is a NotFoundError', async () => {
    const error = await refused(client.chat.completions.create({ ...hello, model: models.unserved }));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ type: 'invalid_request_error', code: 'model_not_found' });
    expect(await refused(client.models.retrieve(models.unserved))).toBeInstanceOf(NotFoundError);
  });

  test('a base URL without /v1 is a NotFoundError that names the right one', async () => {
    const baseURL = stack.baseUrl.replace('/v1', '');
    const error = await refused(stack.client({ baseURL }).chat.completions.create(hello));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error.message).toContain(stack.baseUrl);
  });

  test('an unsupported endpoint is a NotFoundError that names the supported ones', async () => {
    const error = await refused(client.completions.create({ model: models.scripted, prompt: 'x' }));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error.message).toContain('POST /v1/chat/completions');
  });

  test('a field of the wrong type is a BadRequestError that names it', async () => {
    const messages = [{ role: 'nobody', content: 'x' }] as unknown as typeof hello.messages;
    const error = await refused(client.chat.completions.create({ ...hello, messages }));
    expect(error).toBeInstanceOf(BadRequestError);
    expect(error).toMatchObject({ type: 'invalid_request_error', param: 'messages[0].role' });
  });

  test('a body of more than 6 MB is rejected by AWS with 413', async () => {
    const messages = [{ role: 'user' as const, content: 'x'.repeat(6_300_000) }];
    const error = await refused(client.chat.completions.create({ ...hello, messages }));
    expect(error).toMatchObject({ status: 413 });
  });

  test('every error has a request id', async () => {
    const error = await refused(client.chat.completions.create({ ...hello, model: models.unserved }));
    expect(error.requestID).toMatch(/^[0-9a-z]{26}$/);
  });

  test('none of these reached the upstream', async () => {
    await refused(stack.client({ apiKey: narrowKey }).chat.completions.create(hello));
    expect(stack.upstream.requests).toEqual([]);
  });
});

describe('failures of the upstream', () => {
  let pidsBefore: number[];
  beforeAll(async () => {
    await client.chat.completions.create(hello);
    pidsBefore = stack.chatPids();
  });

  test.each([
    [400, BadRequestError],
    [404, NotFoundError],
    [422, UnprocessableEntityError],
  ])('its %d about the request is passed on with its code', async (status, errorClass) => {
    stack.upstream.script(errorStatus(status, { code: 'context_length_exceeded', param: 'messages' }));
    const error = await refused(client.chat.completions.create(fragileHello()));
    expect(error).toBeInstanceOf(errorClass);
    expect(error).toMatchObject({
      type: 'invalid_request_error',
      code: 'context_length_exceeded',
      param: 'messages',
    });
  });

  test('its 429 is a RateLimitError with the time to retry', async () => {
    stack.upstream.script(errorStatus(429, {}, { 'retry-after': '7' }));
    const error = await refused(client.chat.completions.create(fragileHello()));
    expect(error).toBeInstanceOf(RateLimitError);
    expect(error).toMatchObject({ type: 'rate_limit_error', code: 'rate_limit_exceeded' });
    expect(error.headers?.get('retry-after')).toBe('7');
  });

  test.each([
    ['500', errorStatus(500)],
    ['401', errorStatus(401)],
    ['HTML 502', htmlStatus(502)],
    ['HTML 200', html200],
    ['HTML 404', htmlStatus(404)],
    ['empty 200', empty200],
    ['an error in a JSON 200', errorInJson200],
    ['an error as the first frame', errorAsFirstFrame],
    ['reset', resetsBeforeHead],
    ['early end', stopsEarly],
  ])('%s is an InternalServerError without the upstream’s text', async (_name, script) => {
    stack.upstream.script(script);
    const error = await refused(client.chat.completions.create(fragileHello()));
    expect(error).toBeInstanceOf(InternalServerError);
    expect(error).toMatchObject({ status: 502, type: 'upstream_error', code: 'upstream_unavailable' });
    expect(`${error.message} ${JSON.stringify(error.error)}`).not.toMatch(
      /upstream words|upstream_code|<h1>/,
    );
  });

  const endings: [string, (reply: Reply) => void][] = [
    ['an error frame', (reply) => void reply.data(upstreamError).then(() => reply.end())],
    ['an early end', (reply) => reply.end()],
    ['a reset', (reply) => reply.reset()],
  ];
  test.each(endings)('%s after the first words throws out of the stream', async (_name, breakOff) => {
    const read = Promise.withResolvers<void>();
    stack.upstream.script(async (_call, reply) => {
      await reply.data(chunk({ role: 'assistant', content: 'one two' }));
      // Only once the client has them, because a reset discards data in transit.
      await read.promise;
      breakOff(reply);
    });
    const stream = await client.chat.completions.create({ ...fragileHello(), stream: true });
    const reading = (async () => {
      for await (const part of stream) if (part.choices[0]?.delta.content === 'one two') read.resolve();
    })();
    const error = await refused(reading);
    expect(error).toMatchObject({ type: 'upstream_error', code: 'upstream_unavailable' });
    expect(error.message).not.toContain('upstream words');
  });

  test('the runtime survives all of them, and logs none of their text', async () => {
    const { choices } = await client.chat.completions.create(hello);
    expect(choices[0]?.message.content).toBe('Hello.');
    expect(pidsBefore).not.toEqual([]);
    expect(stack.chatPids()).toEqual(expect.arrayContaining(pidsBefore));
    expect(stack.log()).toContain('upstream_html');
    expect(stack.log()).not.toMatch(/upstream words|<h1>/);
  });
});

describe('retries of the client library', () => {
  test('never repeat a call that the upstream may have charged', async () => {
    stack.upstream.script(stopsEarly);
    const error = await refused(stack.client({ maxRetries: 2 }).chat.completions.create(fragileHello()));
    expect(error.headers?.get('x-should-retry')).toBe('false');
    expect(stack.upstream.requests).toHaveLength(1);
  });

  test('repeat a call that the upstream rejected, and succeed', async () => {
    stack.upstream.script((call, reply) => {
      const script = stack.upstream.requests.length === 1 ? errorStatus(503) : textStream('Second try.');
      return script(call, reply);
    });
    const { choices } = await stack.client({ maxRetries: 2 }).chat.completions.create(fragileHello());
    expect(choices[0]?.message.content).toBe('Second try.');
    expect(stack.upstream.requests).toHaveLength(2);
  });
});
