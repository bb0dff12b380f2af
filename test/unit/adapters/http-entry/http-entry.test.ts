import { describe, expect, test } from 'vitest';
import { bufferedHandler } from '../../../../shared/adapters/lambda/buffered-handler.ts';
import { answerEvent, type EdgeParts } from '../../../../shared/adapters/http-entry/http-entry.ts';
import type { Handle, RelayRequest, RelayResponse } from '../../../../shared/relay/http/http.ts';
import { recordedLog } from '../telemetry/recorded-log.ts';
import { steeredClock } from '../steered-clock.ts';
import { localAccess } from '../dynamodb/store.ts';
import { invocation, urlEvent, type EventParts } from '../lambda/url-event.ts';

const fromOrigin = { 'x-relay-origin': 'current' };

const respondWith = (more: Partial<RelayResponse> = {}): RelayResponse => ({
  status: 200,
  headers: { 'content-type': 'text/plain' },
  body: 'hello',
  done: Promise.resolve(),
  ...more,
});

function edge(handle: Handle = async () => respondWith(), originSecrets = ['previous', 'current']) {
  const log = recordedLog();
  const clock = steeredClock();
  const environment = { stack: 'relay', version: '1', originSecrets, local: false, aws: localAccess };
  let made = 0;
  const ids = { next: () => `id-${(made += 1)}` };
  const parts: EdgeParts = { handle, environment, clock, ids, log };
  const answer = (event: EventParts) => answerEvent(parts, urlEvent(event), invocation());
  return { parts, log, clock, answer };
}

async function* helloInTwo() {
  yield 'hel';
  yield 'lo';
}

const textOf = ({ body }: RelayResponse): string => (typeof body === 'string' ? body : 'a stream');

describe('the edge', () => {
  test.each(['previous', 'current'])('lets a request with the accepted secret %s through', async (secret) => {
    const { answer } = edge();
    expect(await answer({ headers: { 'x-relay-origin': secret } })).toMatchObject({ status: 200 });
  });

  test.each<[string, Record<string, string>, string[]]>([
    ['no secret', {}, ['current']],
    ['an empty secret', { 'x-relay-origin': '' }, ['']],
    ['a wrong secret', { 'x-relay-origin': 'wrong' }, ['current']],
    ['the start of a secret', { 'x-relay-origin': 'curr' }, ['current']],
    ['any secret when none is accepted', { 'x-relay-origin': 'current' }, []],
  ])('refuses %s before anything else, and logs it', async (_what, headers, accepted) => {
    const handled: RelayRequest[] = [];
    const handle: Handle = async (request) => respondWith({ body: String(handled.push(request)) });
    const { answer, log } = edge(handle, accepted);
    const response = await answer({ headers, body: 'not JSON' });
    expect(response).toMatchObject({ status: 403, headers: { 'x-request-id': 'id-1' } });
    expect(JSON.parse(textOf(response))).toMatchObject({
      error: { type: 'access_denied_error', code: 'origin_denied', param: null },
    });
    expect(handled).toEqual([]);
    expect(log.requests).toMatchObject([{ request_id: 'id-1', status: 403, code: 'origin_denied' }]);
  });

  test('hands the relay the deadline, and not the secret', async () => {
    const handled: RelayRequest[] = [];
    const { parts, clock } = edge(async (request) => {
      handled.push(request);
      return respondWith();
    });
    await answerEvent(parts, urlEvent({ headers: fromOrigin }), invocation(30_000));
    expect(handled[0]).toMatchObject({ hostDeadlineMs: clock.now() + 30_000, headers: {} });
  });

  test('puts the request id on every answer', async () => {
    const { answer } = edge();
    expect((await answer({ headers: fromOrigin })).headers).toEqual({
      'content-type': 'text/plain',
      'x-request-id': 'id-1',
    });
  });

  test('answers an event it cannot read with 500 and tells the log alone why', async () => {
    const { parts, log } = edge();
    const response = await answerEvent(parts, { canary: true } as never, invocation());
    expect(response).toMatchObject({ status: 500, headers: { 'x-request-id': 'id-1' } });
    expect(textOf(response)).not.toContain('undefined');
    expect(log.faults).toEqual([{ requestId: 'id-1', error: expect.any(TypeError) }]);
  });

  test('survives work after the answer that fails', async () => {
    const bug = new Error('a bug');
    const { answer, log } = edge(async () => respondWith({ done: Promise.reject(bug) }));
    const { done } = await answer({ headers: fromOrigin });
    await expect(done).resolves.toBeUndefined();
    expect(log.faults).toEqual([{ requestId: 'id-1', error: bug }]);
  });

  test('answers HEAD as GET without the body, and stops a body that was being made', async () => {
    let stopped = false;
    const made = helloInTwo();
    const stop = made.return.bind(made);
    made.return = (value) => {
      stopped = true;
      return stop(value);
    };
    const { answer } = edge(async ({ method }) => respondWith({ body: method === 'GET' ? made : 'no' }));
    expect(await answer({ method: 'HEAD', headers: fromOrigin })).toMatchObject({ status: 200, body: '' });
    expect(stopped).toBe(true);
  });
});

describe('the buffered handler', () => {
  test('returns status, headers and the whole text, after all work is done', async () => {
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    const { parts } = edge(async () => respondWith({ status: 201, body: helloInTwo(), done }));
    let returned = false;
    const result = bufferedHandler(parts)(urlEvent({ headers: fromOrigin }), invocation());
    void result.then(() => (returned = true));
    await new Promise(setImmediate);
    expect(returned).toBe(false);
    finish();
    expect(await result).toEqual({
      statusCode: 201,
      headers: { 'content-type': 'text/plain', 'x-request-id': 'id-1' },
      body: 'hello',
    });
  });
});
