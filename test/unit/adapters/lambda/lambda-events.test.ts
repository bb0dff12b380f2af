import type { APIGatewayProxyEvent } from 'aws-lambda';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createRelayRequest } from '../../../../shared/adapters/entry/http-entry.ts';
import { readHttpEvent } from '../../../../shared/adapters/entry/lambda-handlers.ts';
import { buildUrlEvent } from '../../../../infra/local/lambda/function-url.ts';
import { buildRestApiEvent } from '../../../../infra/local/rest-api.ts';
import { urlEvent } from './url-event.ts';

describe('a Function URL event as a request', () => {
  test('has the body as text, as bytes when Lambda encoded it, or no body', () => {
    const text = '{"text":"ü"}';
    expect(readHttpEvent(urlEvent({ body: text }), 42).body()).toBe(text);
    const encoded = urlEvent({ body: Buffer.from(text).toString('base64'), base64: true });
    expect(readHttpEvent(encoded, 42).body()).toEqual(Buffer.from(text));
    expect(readHttpEvent(urlEvent(), 42).body()).toBe('');
  });
});

const domain = 'a1b2c3.execute-api.eu-central-1.amazonaws.com';
interface Sent {
  method?: string;
  target?: string;
  headers?: Record<string, string>;
  body?: Buffer;
}
const eventOf = (
  { method = 'POST', target = '/v1/chat/completions', headers = {}, body = Buffer.from('{}') }: Sent,
  stage: { variables?: Record<string, string> | null; inPath?: boolean; prefix?: string } = {},
): APIGatewayProxyEvent => {
  const { variables = { origin: 'marker' }, prefix = '/relay' } = stage;
  const request = { method, target, headers, body, sourceIp: '203.0.113.7', domain };
  const api = { id: 'a1b2c3', stage: 'relay', prefix, variables, binaryTypes: ['*/*'] };
  const event = buildRestApiEvent(request, 'r', api);
  return { ...event, ...(stage.inPath && { path: `/relay${event.path}` }) };
};
const requestOf = (event: APIGatewayProxyEvent) =>
  createRelayRequest(readHttpEvent(event, 42), { id: 'id', local: false });

describe('an event of a REST API as a request', () => {
  test('becomes the same request as the event of a Function URL', () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,8}$/);
    const sent = fc.record({
      method: fc.constantFrom('GET', 'POST', 'DELETE', 'HEAD', 'OPTIONS'),
      path: fc.array(fc.string({ maxLength: 6 }), { maxLength: 3 }),
      query: fc.array(fc.tuple(fc.constant('a'), fc.string({ maxLength: 6 })), { maxLength: 3 }),
      headers: fc.dictionary(
        name.filter((each) => !/^(host|via|cookie|x-forwarded|x-amzn|x-relay|__proto)/.test(each)),
        fc.stringMatching(/^[!-~]{0,12}$/),
      ),
      body: fc.uint8Array({ maxLength: 64 }),
    });
    fc.assert(
      fc.property(sent, ({ method, path, query, headers, body }) => {
        const search = new URLSearchParams(query).toString();
        const target = `/v1/${path.map(encodeURIComponent).join('/')}${search && `?${search}`}`;
        const given = { method, target, headers, body: Buffer.from(body) };
        const viaUrl = buildUrlEvent({ ...given, sourceIp: '203.0.113.7', domain }, 'r');
        const [one, other] = [readHttpEvent(viaUrl as never, 42), readHttpEvent(eventOf(given), 42)];
        for (const key of ['method', 'path', 'query', 'deadlineMs'] as const)
          expect(other[key]).toEqual(one[key]);
        expect(Buffer.from(other.body())).toEqual(Buffer.from(one.body()));
        expect(other.headers).toMatchObject(headers);
      }),
    );
  });

  test('has no stage in its path, wherever the event has it, but keeps it in the base URL', () => {
    for (const inPath of [false, true])
      expect(requestOf(eventOf({}, { inPath }))).toMatchObject({
        path: '/v1/chat/completions',
        baseUrl: `https://${domain}/relay/v1`,
      });
    const named = eventOf({}, { prefix: '' });
    expect(requestOf(named).baseUrl).toBe(`https://${domain}/v1`);
    expect(requestOf(eventOf({ target: '/' }, { inPath: true })).path).toBe('/');
  });

  test('takes values that only AWS can know from no client header', () => {
    const forged = { 'X-Relay-Origin': 'forged', 'X-Forwarded-Host': 'evil.example', origin: 'https://a.b' };
    const { headers, baseUrl } = requestOf(eventOf({ headers: forged }));
    expect(headers).toMatchObject({ 'x-relay-origin': 'marker', origin: 'https://a.b' });
    expect(baseUrl).toBe(`https://${domain}/relay/v1`);
  });

  test("behind a distribution has the distribution's secret and host", () => {
    const sent = { 'x-relay-origin': 'secret', 'x-forwarded-host': 'llm.example.com' };
    const { headers, baseUrl } = requestOf(eventOf({ headers: sent }, { variables: null }));
    expect(headers['x-relay-origin']).toBe('secret');
    expect(baseUrl).toBe('https://llm.example.com/v1');
  });

  test('joins a repeated header, so that two keys are rejected and neither is chosen', () => {
    const event = eventOf({});
    event.multiValueHeaders = { Authorization: ['Bearer a', 'Bearer b'], authorization: ['Bearer c'] };
    expect(requestOf(event).headers['authorization']).toBe('Bearer a, Bearer b, Bearer c');
  });
});
