import { describe, expect, test } from 'vitest';
import { functionUrlRequest } from '../../../../shared/adapters/entry/lambda-handlers.ts';
import { urlEvent } from './url-event.ts';

describe('a Function URL event as a request', () => {
  test('has the body as text, as bytes when Lambda encoded it, and as no text when there is none', () => {
    const text = '{"text":"ü"}';
    expect(functionUrlRequest(urlEvent({ body: text }), 42).body()).toBe(text);
    const encoded = urlEvent({ body: Buffer.from(text).toString('base64'), base64: true });
    expect(functionUrlRequest(encoded, 42).body()).toEqual(Buffer.from(text));
    expect(functionUrlRequest(urlEvent(), 42).body()).toBe('');
  });
});
