import { describe, expect, test } from 'vitest';
import { functionUrlRequest } from '../../../../shared/adapters/entry/lambda-handlers.ts';
import { urlEvent } from './url-event.ts';

describe('a Function URL event as a request', () => {
  test('keeps method, path, query, headers and the deadline as they were sent', () => {
    const event = urlEvent({
      method: 'HEAD',
      path: '/v1/models/a%2Fb',
      query: 'a=1&a=2',
      headers: { Authorization: 'Bearer x' },
    });
    expect(functionUrlRequest(event, 42)).toMatchObject({
      method: 'HEAD',
      path: '/v1/models/a%2Fb',
      query: 'a=1&a=2',
      headers: { Authorization: 'Bearer x' },
      host: 'local.lambda-url.us-east-1.on.aws',
      deadlineMs: 42,
    });
  });

  test('has the body as text, as bytes when Lambda encoded it, and as no text when there is none', () => {
    const text = '{"text":"ü"}';
    expect(functionUrlRequest(urlEvent({ body: text }), 42).body()).toBe(text);
    const encoded = urlEvent({ body: Buffer.from(text).toString('base64'), base64: true });
    expect(functionUrlRequest(encoded, 42).body()).toEqual(Buffer.from(text));
    expect(functionUrlRequest(urlEvent(), 42).body()).toBe('');
  });
});
