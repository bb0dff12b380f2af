import { describe, expect, it } from 'vitest';
import { findError } from '../../../shared/upstreams/vendor-errors.ts';
import { type UpstreamReply, CallerFault, UpstreamFailure } from '../../../shared/upstreams/exchange.ts';
import type { Words } from '../../../shared/upstreams/vocabulary.ts';
import { readErrorInAnswer, readFailure } from '../../../shared/upstreams/read-failure.ts';

const nowMs = Date.UTC(2026, 10, 21, 12, 0, 0);
const never = (_milliseconds: number) => new Promise<void>(() => undefined);

interface Answer {
  status: number;
  error?: object;
  headers?: Record<string, string>;
  words?: Words;
  sentBody?: string;
  body?: UpstreamReply['body'];
}

const nothingKnown = { withheld: [] };

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield new TextEncoder().encode(text);
}

const read = ({ status, error = {}, headers = {}, body, ...known }: Answer, sleep = never) =>
  readFailure(
    { status, headers, body: body ?? bytesOf(JSON.stringify({ error })) },
    { ...known, withheld: [], clock: { now: () => nowMs, sleep } },
  );

describe('a Retry-After', () => {
  it.each([
    ['30', 30, 30],
    ['0', 0, 0],
    ['1.5', 1.5, 1.5],
    ['223920', 86_400, 223_920],
    ['Sat, 21 Nov 2026 12:01:30 GMT', 90, 90],
    ['Mon, 23 Nov 2026 12:00:00 GMT', 86_400, 172_800],
    ['Sat, 21 Nov 2026 11:00:00 GMT', 0, 0],
    ['1e300', 86_400, 366 * 86_400],
    ['-5', 0, 0],
    ['soon', undefined, undefined],
    ['', undefined, undefined],
  ])('of "%s" starts a cooldown of %s s, at most a day, and states %s s', async (header, rests, stated) => {
    const failure = await read({ status: 429, headers: { 'retry-after': header } });
    expect(failure).toBeInstanceOf(UpstreamFailure);
    expect(failure).toMatchObject({ retryAfterSeconds: rests, statedRetrySeconds: stated, status: 429 });
  });
});

describe('a prompt that is too long', () => {
  const fault = { status: 400, code: 'context_length_exceeded' };

  it.each([
    [400, { code: 'context_length_exceeded', message: 'x' }],
    [400, { code: 400, message: "This model's maximum context length is 8192 tokens." }],
    [400, { type: 'invalid_request_error', message: 'prompt is too long: 210000 tokens > 200000 maximum' }],
    [
      400,
      { code: '400', message: 'The input token count (9) exceeds the maximum number of tokens allowed (8).' },
    ],
    [400, { message: 'Input is too long for requested model.' }],
    [400, { message: 'input length and `max_tokens` exceed context limit: 1 + 2 > 3' }],
    [413, { type: 'request_too_large', message: 'prompt is too long' }],
  ])("under %i with %j is the caller's error, with that code", async (status, error) => {
    const failure = await read({ status, error });
    expect(failure).toBeInstanceOf(CallerFault);
    expect(failure).toMatchObject({ ...fault, status });
  });

  it("is not concluded from the caller's words in another failure", async () => {
    const message = 'Bad value "the prompt is too long"';
    expect(readErrorInAnswer({ code: 'server_error', message }, nothingKnown)).toBeInstanceOf(
      UpstreamFailure,
    );
    expect(await read({ status: 404, error: { message } })).toMatchObject({
      status: 404,
      code: 'upstream_refused',
    });
    expect(await read({ status: 503, error: { message } })).toMatchObject({ kind: 'status', status: 503 });
  });
});

describe('an upstream account without credit', () => {
  it.each([
    [429, { code: 'insufficient_quota', message: 'You exceeded your current quota' }],
    [429, { type: 'insufficient_quota', code: null }],
    [429, { type: 'exceeded_current_quota_error' }],
    [400, { code: 'billing_hard_limit_reached' }],
  ])('under %i, %j, is a failure of the secret, not a rate limit', async (status, error) => {
    const failure = await read({ status, error });
    expect(failure).toMatchObject({ kind: 'secret', status: undefined });
  });

  it('is recognised in an answer with status 200, too', () => {
    expect(readErrorInAnswer({ code: 'insufficient_quota' }, nothingKnown)).toMatchObject({ kind: 'secret' });
  });

  it('is not concluded from free text', async () => {
    const error = { code: 'rate_limit_exceeded', message: 'insufficient_quota: you exceeded your quota' };
    expect(await read({ status: 429, error })).toMatchObject({ kind: 'status', status: 429 });
  });
});

describe('the body of a 429', () => {
  it('that never arrives is awaited for two seconds, and its connection is closed', async () => {
    const slept: number[] = [];
    let closed = false;
    const pieces: AsyncIterator<Uint8Array> = {
      next: () => new Promise(() => undefined),
      return() {
        closed = true;
        return Promise.resolve({ done: true, value: undefined });
      },
    };
    const body = { [Symbol.asyncIterator]: () => pieces };
    const failure = await read(
      { status: 429, headers: { 'retry-after': '7' }, body },
      async (milliseconds) => {
        slept.push(milliseconds);
      },
    );
    expect(failure).toMatchObject({ kind: 'status', status: 429, retryAfterSeconds: 7 });
    expect([slept, closed]).toEqual([[2000], true]);
  });

  it('that breaks off is ignored: the failure stays a 429', async () => {
    const broken = { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('reset')) }) };
    expect(await read({ status: 429, body: broken })).toMatchObject({ kind: 'status', status: 429 });
  });

  it('that is too long is not read to its end', async () => {
    let pieces = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        pieces += 1;
        yield new Uint8Array(40_000);
      }
    }
    expect(await read({ status: 429, body: endless() })).toMatchObject({ status: 429 });
    expect(pieces).toBe(2);
  });
});

describe('a client error status', () => {
  it("is the relay's own error if a field or AWS's header says so", async () => {
    const headers = { 'x-amzn-errortype': 'AccessDeniedException:http://internal.amazon.com/coral/' };
    expect(await read({ status: 400, headers })).toMatchObject({ kind: 'status', status: 403 });
    const error = { code: 400, details: [{ reason: 'API_KEY_INVALID' }] };
    expect(await read({ status: 400, error })).toMatchObject({ kind: 'status', status: 401 });
    expect(await read({ status: 400, error: { message: 'API_KEY_INVALID' } })).toBeInstanceOf(CallerFault);
  });

  it.each([400, 413, 422])(
    "%i stays the caller's error with a long JSON body, because validators repeat the input",
    async (status) => {
      const body = bytesOf(JSON.stringify({ detail: [{ msg: 'm', input: 'x'.repeat(100_000) }] }));
      expect(await read({ status, body })).toMatchObject({ name: 'CallerFault', status });
    },
  );

  it("with a page too long to read is not the caller's error", async () => {
    const body = bytesOf(`<html>${'x'.repeat(100_000)}`);
    expect(await read({ status: 400, body })).toMatchObject({ name: 'UpstreamFailure', status: 400 });
  });
});

describe('an error inside an answer with status 200', () => {
  const caller = (status: number) => ({ name: 'CallerFault', status });
  const failed = (status: number) => ({ name: 'UpstreamFailure', kind: 'status', status });
  const unknown = { name: 'UpstreamFailure', kind: 'error_in_answer', status: undefined };
  const failedResponse = (code: string) => ({ status: 'failed', error: { code, message: 'x' } });
  const messages = (type: string) => ({ type: 'error', error: { type, message: 'x' } });
  const chat = (error: object) => ({ error: { message: 'x', ...error } });

  it.each([
    [failedResponse('invalid_prompt'), caller(400)],
    [failedResponse('invalid_image_format'), caller(400)],
    [failedResponse('image_content_policy_violation'), caller(400)],
    [failedResponse('image_too_large'), caller(413)],
    [{ type: 'error', code: 'rate_limit_exceeded', message: 'x' }, failed(429)],
    [failedResponse('server_error'), unknown],
    [messages('invalid_request_error'), caller(400)],
    [messages('rate_limit_error'), failed(429)],
    [messages('overloaded_error'), failed(529)],
    [messages('authentication_error'), failed(401)],
    [messages('permission_error'), failed(403)],
    [messages('api_error'), unknown],
    [chat({ type: 'invalid_request_error', code: 'unsupported_value' }), caller(400)],
    [chat({ type: 'invalid_request_error', code: 'invalid_api_key' }), failed(401)],
    [chat({ code: 429, status: 'RESOURCE_EXHAUSTED' }), failed(429)],
    [chat({ code: 'content_filter' }), caller(400)],
    [chat({ code: 'server_error', type: 'invalid_request_error' }), unknown],
    [chat({ code: 502 }), unknown],
    [chat({ code: 'something_new' }), unknown],
    [chat({ message: 'invalid_request_error' }), unknown],
  ])('%j is treated like its equivalent status', (body, expected) => {
    expect(readErrorInAnswer(findError(body) ?? {}, nothingKnown)).toMatchObject(expected);
  });

  it.each([
    ['ValidationException', caller(400)],
    ['throttlingException', failed(429)],
    ['AccessDeniedException', failed(403)],
  ])('is recognised for the type %s, too', (type, expected) => {
    expect(readErrorInAnswer({ type, message: 'x', reasons: [type] }, nothingKnown)).toMatchObject(expected);
  });
});

describe("an upstream's error", () => {
  const google = {
    code: 400,
    message: 'API key not valid.',
    status: 'INVALID_ARGUMENT',
    details: [
      { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' },
      { reason: 'a b' },
    ],
  };
  it.each<[string, unknown, unknown]>([
    [
      "OpenAI's",
      { error: { message: 'm', type: 't', param: 'p', code: 'c', extra: 1 } },
      { message: 'm', type: 't', param: 'p', code: 'c' },
    ],
    [
      'Google’s, with its reasons, in a list',
      [{ error: google }],
      { message: google.message, type: 'INVALID_ARGUMENT', code: 400, reasons: ['API_KEY_INVALID'] },
    ],
    ['a text', { error: 'm', code: 'c' }, { message: 'm', code: 'c' }],
    [
      'bare, with a numeric code',
      { object: 'error', message: 'm', type: 'BadRequestError', code: 400 },
      { message: 'm', type: 'BadRequestError', code: 400 },
    ],
    ['a detail', { detail: 'm' }, { message: 'm' }],
    ['a detail with only a code', { detail: { code: 'c' } }, { code: 'c' }],
    [
      'details inside details, as deep as a body can hold',
      JSON.parse(`${'{"detail":'.repeat(6500)}1${'}'.repeat(6500)}`),
      {},
    ],
    ['a list of details', { detail: [{ msg: 'm' }] }, { message: 'm' }],
    [
      'a list of details inside the message, with the path of the field',
      {
        object: 'error',
        message: {
          detail: [{ type: 'extra_forbidden', loc: ['body', 'user'], msg: 'Extra inputs are not permitted' }],
        },
      },
      { message: 'Extra inputs are not permitted', param: 'user', unknownFields: ['user'] },
    ],
    [
      'Anthropic’s',
      { type: 'error', error: { type: 'invalid_request_error', message: 'm' }, request_id: 'r' },
      { type: 'invalid_request_error', message: 'm' },
    ],
    [
      'an error event of Responses, whose type has no other information',
      { type: 'error', code: 'c', message: 'm' },
      { code: 'c', message: 'm' },
    ],
    ['none', { choices: [] }, undefined],
    ['no object', 'm', undefined],
  ])('is read: %s', (_case, body, expected) => {
    expect(findError(body)).toEqual(expected);
  });
});
