import { describe, expect, test } from 'vitest';
import { type HostRequest, createHttpEntry } from '../../../../shared/adapters/entry/http-entry.ts';
import type {
  Handle,
  HostedHandle,
  RelayRequest,
  RelayResponse,
} from '../../../../shared/relay/http/http.ts';
import { recordedLog } from '../telemetry/recorded-log.ts';
import { steeredClock } from '../steered-clock.ts';

const fromOrigin = { 'x-relay-origin': 'current' };

const respondWith = (more: Partial<RelayResponse> = {}): RelayResponse => ({
  status: 200,
  headers: { 'content-type': 'text/plain' },
  body: 'hello',
  done: Promise.resolve(),
  ...more,
});

function host(handle: Handle = async () => respondWith(), originSecrets = ['previous', 'current']) {
  const log = recordedLog();
  const clock = steeredClock();
  let made = 0;
  const ids = { next: () => `id-${(made += 1)}` };
  const hosted: HostedHandle = { handle, originSecrets, local: false, clock, ids, log };
  const answer = (received: Partial<HostRequest>) =>
    createHttpEntry(hosted)(() => ({
      method: 'POST',
      path: '/v1/chat/completions',
      query: '',
      headers: {},
      host: 'own.example',
      body: () => '',
      deadlineMs: 42,
      ...received,
    }));
  return { hosted, log, answer };
}

async function* helloInTwo() {
  yield 'hel';
  yield 'lo';
}

const textOf = ({ body }: RelayResponse): string => (typeof body === 'string' ? body : 'a stream');

describe('the entry of every host', () => {
  test.each(['previous', 'current'])('admits a request with the accepted secret %s', async (secret) => {
    const { answer } = host();
    expect(await answer({ headers: { 'x-relay-origin': secret } })).toMatchObject({ status: 200 });
  });

  test.each<[string, Record<string, string>, string[]]>([
    ['no secret', {}, ['current']],
    ['an empty secret', { 'x-relay-origin': '' }, ['']],
    ['a wrong secret', { 'x-relay-origin': 'wrong' }, ['current']],
    ['the start of a secret', { 'x-relay-origin': 'curr' }, ['current']],
    ['any secret when none is accepted', { 'x-relay-origin': 'current' }, []],
  ])('rejects %s before anything else, and logs it', async (_what, headers, accepted) => {
    const handled: RelayRequest[] = [];
    const handle: Handle = async (request) => respondWith({ body: String(handled.push(request)) });
    const { answer, log } = host(handle, accepted);
    const response = await answer({ headers, body: () => 'not JSON' });
    expect(response).toMatchObject({ status: 403, headers: { 'x-request-id': 'id-1' } });
    expect(JSON.parse(textOf(response))).toMatchObject({
      error: { type: 'access_denied_error', code: 'origin_denied', param: null },
    });
    expect(handled).toEqual([]);
    expect(log.requests).toMatchObject([{ request_id: 'id-1', status: 403, code: 'origin_denied' }]);
  });

  test('passes the deadline to the relay, but not the secret', async () => {
    const handled: RelayRequest[] = [];
    const { answer } = host(async (request) => {
      handled.push(request);
      return respondWith();
    });
    await answer({ headers: { ...fromOrigin, a: 'b' } });
    expect(handled[0]).toMatchObject({ hostDeadlineMs: 42 });
    expect(handled[0]?.headers).toEqual({ a: 'b' });
  });

  test('puts the request id on every answer', async () => {
    const { answer } = host();
    expect((await answer({ headers: fromOrigin })).headers).toEqual({
      'content-type': 'text/plain',
      'x-request-id': 'id-1',
    });
  });

  test("answers 500 to a request that the host can't read; only the log has the reason", async () => {
    const { hosted, log } = host();
    const response = await createHttpEntry(hosted)(() => ({ canary: true }) as never);
    expect(response).toMatchObject({ status: 500, headers: { 'x-request-id': 'id-1' } });
    expect(textOf(response)).not.toContain('undefined');
    expect(log.faults).toEqual([{ requestId: 'id-1', error: expect.any(TypeError) }]);
  });

  test('answers HEAD like GET without a body, and stops a running body', async () => {
    let stopped = false;
    const made = helloInTwo();
    const stop = made.return.bind(made);
    made.return = (value) => {
      stopped = true;
      return stop(value);
    };
    const { answer } = host(async ({ method }) => respondWith({ body: method === 'GET' ? made : 'no' }));
    expect(await answer({ method: 'HEAD', headers: fromOrigin })).toMatchObject({ status: 200, body: '' });
    expect(stopped).toBe(true);
  });
});

describe('a call through several relays', () => {
  const received: RelayRequest[] = [];
  const stackOf = (originSecrets: string[]) => {
    const { answer, log } = host(async (request) => {
      received.push(request);
      return respondWith();
    }, originSecrets);
    return {
      log,
      /** Returns the hop header sent upstream, or the error of the rejection. */
      async hops(passed?: string): Promise<string> {
        const hop = passed === undefined ? {} : { 'X-Relay-Hop': passed };
        const response = await answer({ headers: { 'x-relay-origin': originSecrets.at(-1), ...hop } });
        if (response.status === 200) return received.at(-1)?.hops ?? '';
        const { error } = JSON.parse(textOf(response)) as { error: { code: string; message: string } };
        expect(response.headers).toMatchObject({ 'x-relay-loop': '1', 'x-should-retry': 'false' });
        return `${response.status} ${error.code} ${error.message}`;
      },
    };
  };

  test('is announced to the next relay by opaque ids in order', async () => {
    const first = await stackOf(['a']).hops();
    const second = await stackOf(['b']).hops(first);
    expect(first).toMatch(/^[0-9a-f]{16}$/);
    expect(second).toMatch(/^[0-9a-f]{16}, [0-9a-f]{16}$/);
    expect(second.startsWith(first)).toBe(true);
    expect(received.at(-1)?.headers).not.toHaveProperty('x-relay-hop');
  });

  test('is rejected when it returns to a relay', async () => {
    const first = stackOf(['a']);
    const handled = received.length;
    const through = await stackOf(['b']).hops(await first.hops());
    expect(await first.hops(through)).toMatch(/^508 relay_loop .*leads back to it/);
    expect(await stackOf(['a', 'c']).hops(through)).toMatch(/^508 relay_loop/);
    expect(received.length - handled).toBe(2);
    expect(first.log.requests).toContainEqual(
      expect.objectContaining({ code: 'relay_loop', end: 'refused', endpoint: 'edge' }),
    );
  });

  test('may pass four relays, but no fifth', async () => {
    let passed: string | undefined;
    for (const secret of ['a', 'b', 'c', 'd']) passed = await stackOf([secret]).hops(passed);
    expect(passed?.split(', ')).toHaveLength(4);
    expect(await stackOf(['e']).hops(passed)).toMatch(/^508 relay_loop This call passed 4 relays/);
  });

  test('may send other text in the header, which is dropped', async () => {
    expect(await stackOf(['a']).hops('evil\r\nx: y, ABC, <script>')).toMatch(/^[0-9a-f]{16}$/);
  });
});
