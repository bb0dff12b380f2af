import { describe, expect, test } from 'vitest';
import { createBufferedHandler } from '../../../../shared/adapters/entry/lambda-handlers.ts';
import type { Handle, HostedHandle } from '../../../../shared/relay/http/http.ts';
import { recordedLog } from '../telemetry/recorded-log.ts';
import { steeredClock } from '../steered-clock.ts';
import { invocation, urlEvent } from './url-event.ts';

const headers = { 'x-relay-origin': 'current' };

function hostedWith(handle: Handle) {
  const clock = steeredClock();
  const log = recordedLog();
  const hosted: HostedHandle = {
    handle,
    originSecrets: ['current'],
    local: false,
    clock,
    ids: { next: () => 'id-1' },
    log,
  };
  return { hosted, clock, log };
}

async function* helloInTwo() {
  yield 'hel';
  yield 'lo';
}

const hello = (done: Promise<void> = Promise.resolve()) => ({
  status: 201,
  headers: { 'content-type': 'text/plain' },
  body: helloInTwo(),
  done,
});

describe('the buffered handler', () => {
  test('returns status, headers and the complete text after all work is done', async () => {
    const { promise: done, resolve: finish } = Promise.withResolvers<void>();
    const { hosted } = hostedWith(async () => hello(done));
    let returned = false;
    const result = createBufferedHandler(hosted)(urlEvent({ headers }), invocation());
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
