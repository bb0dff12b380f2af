import { afterEach, describe, expect, test, vi } from 'vitest';
import { ServiceRefusal } from '../../../../shared/adapters/aws/aws-calls.ts';
import { toRefusal } from '../../../../shared/relay/http/refusal.ts';
import { StoreUnavailable } from '../../../../shared/relay/ports/store-errors.ts';
import { describeFault, createJsonLog } from '../../../../shared/adapters/telemetry/log.ts';

const written: string[] = [];

function captured() {
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => Boolean(written.push(String(text))));
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => Boolean(written.push(String(text))));
  return createJsonLog('1.2.3');
}

afterEach(() => {
  vi.restoreAllMocks();
  written.length = 0;
});

describe('the log', () => {
  test('writes a request as one line of JSON, without unknown fields', () => {
    captured().request({
      request_id: 'id-1',
      endpoint: 'chat',
      status: 200,
      end: 'completed',
      duration_ms: 12,
      code: undefined,
      model: 'gpt-4o',
    });
    vi.restoreAllMocks();
    expect(written).toHaveLength(1);
    expect(written[0]).toMatch(/^\{.*\}\n$/);
    const line = JSON.parse(written[0] ?? '') as Record<string, unknown>;
    expect(line).toMatchObject({ level: 'INFO', message: 'request', service: 'relay', version: '1.2.3' });
    expect(line).toMatchObject({ request_id: 'id-1', endpoint: 'chat', status: 200, duration_ms: 12 });
    expect(line).not.toHaveProperty('code');
  });

  test('writes a fault with name, code, frames and cause, but never a message', () => {
    const cause = Object.assign(new TypeError('canary-of-the-cause'), { code: 'ECONNRESET' });
    captured().fault('id-2', new Error('canary\n    at canary (file:///canary.ts:1:1)', { cause }));
    vi.restoreAllMocks();
    const text = written.join('');
    expect(text).not.toContain('canary');
    const line = JSON.parse(text) as Record<string, unknown>;
    expect(line).toMatchObject({ level: 'ERROR', message: 'fault', request_id: 'id-2', error: 'Error' });
    expect(line['cause']).toMatchObject({ error: 'TypeError', code: 'ECONNRESET' });
    expect(line['stack']).toContainEqual(expect.stringMatching(/log\.test\.ts:\d+:\d+/));
  });
});

describe('a logged error', () => {
  test('omits names and codes that are not words, and values that are not errors', () => {
    const odd = Object.assign(new Error('x'), { name: 'canary with blanks', code: 'canary: text' });
    expect(describeFault(odd)).toMatchObject({ error: 'Error' });
    expect(JSON.stringify(describeFault(odd))).not.toContain('canary');
    expect(describeFault('canary')).toEqual({ error: 'string' });
  });

  test("has the request id of the store's reply, found in its cause, but no other text", () => {
    const refusal = (id: string): Error =>
      new StoreUnavailable('busy', {
        cause: new StoreUnavailable('no', {
          cause: new ServiceRefusal(
            { status: 500, headers: { 'x-amzn-requestid': id } },
            { message: 'canary' },
          ),
        }),
      });
    expect(describeFault(refusal('TTQJ3-7'))).toMatchObject({ store_request_id: 'TTQJ3-7' });
    expect(JSON.stringify(describeFault(refusal('canary: text')))).not.toContain('canary');
    expect(toRefusal(refusal('TTQJ3-7')).facts).toEqual({ store_request_id: 'TTQJ3-7' });
  });

  test("ends even when errors are each other's cause", () => {
    const first = new Error('first');
    first.cause = new Error('second', { cause: first });
    expect(JSON.stringify(describeFault(first)).match(/"error"/g)).toHaveLength(4);
  });

  test('is bounded however long its frames are, but keeps the place in the file', () => {
    const error = new Error('x');
    error.stack = Array.from(
      { length: 50 },
      (_, at) => `    at ${'f'.repeat(500)} (file:///a.mjs:1:${at})`,
    ).join('\n');
    error.cause = Object.assign(new Error('y'), { stack: error.stack });
    const described = JSON.stringify(describeFault(error));
    expect(described.length).toBeLessThan(2_000);
    expect(described).toContain('(file:///a.mjs:1:7)');
  });
});
