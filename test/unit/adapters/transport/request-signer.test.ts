import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { createRequestSigner } from '../../../../shared/adapters/aws/aws-signature.ts';
import { createHttpsTransport } from '../../../../shared/adapters/transport/https-transport.ts';
import type { UpstreamRequest } from '../../../../shared/upstreams/exchange.ts';
import { listening } from '../../../support/listening.ts';

const never = new AbortController().signal;
const aws = {
  region: 'eu-west-1',
  credentials: { accessKeyId: 'AKID', secretAccessKey: 'very-secret', sessionToken: 'the-session' },
};
const now = Date.UTC(2026, 10, 21, 9, 30, 5);

async function send(
  more: Partial<UpstreamRequest>,
  path = '/openai/v1/chat/completions',
): Promise<{ headers: IncomingHttpHeaders; body: string }> {
  const seen = Promise.withResolvers<{ headers: IncomingHttpHeaders; body: string }>();
  const server = createServer((request, response) => {
    void text(request).then((body) => seen.resolve({ headers: request.headers, body }));
    response.end('ok');
  });
  const address = await listening(server);
  const clock = { now: () => now };
  const transport = createHttpsTransport({ local: true, sign: createRequestSigner({ aws, clock }) });
  await transport.send(
    {
      url: `${address}${path}`,
      headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
      body: '{"model":"ü"}',
      connectTimeoutMs: 2000,
      ...more,
    },
    never,
  );
  return seen.promise;
}

const hash = (data: string): string => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest();

/** Recomputes Signature Version 4 from the received request, as AWS would check it. */
function signatureOf(headers: IncomingHttpHeaders, body: string, path: string): string {
  const [region, service] = ['us-west-2', 'bedrock'];
  const names = /SignedHeaders=([^,]+)/.exec(headers.authorization ?? '')?.[1]?.split(';') ?? [];
  const canonical = [
    'POST',
    path,
    '',
    ...names.map((name) => `${name}:${String(headers[name])}`),
    '',
    names.join(';'),
    hash(body),
  ].join('\n');
  const scope = `20261121/${region}/${service}/aws4_request`;
  const toSign = ['AWS4-HMAC-SHA256', '20261121T093005Z', scope, hash(canonical)].join('\n');
  const key = ['20261121', region, service, 'aws4_request'].reduce<string | Buffer>(hmac, 'AWS4very-secret');
  return hmac(key, toSign).toString('hex');
}

test.each(['/openai/v1/chat/completions', '/openai/v1/responses', '/anthropic/v1/messages'])(
  'a request to %s with a scope arrives with a signature of the role over host, body and session',
  async (path) => {
    const { headers, body } = await send({ awsScope: { service: 'bedrock', region: 'us-west-2' } }, path);
    expect(body).toBe('{"model":"ü"}');
    expect(headers).toMatchObject({
      'x-amz-security-token': 'the-session',
      'x-amz-date': '20261121T093005Z',
    });
    const { authorization = '' } = headers;
    expect(authorization).toContain('Credential=AKID/20261121/us-west-2/bedrock/aws4_request');
    for (const name of ['host', 'content-type', 'x-amz-date', 'x-amz-security-token'])
      expect(authorization).toMatch(new RegExp(`SignedHeaders=[^,]*\\b${name}\\b`));
    expect(authorization).toMatch(/Signature=[0-9a-f]{64}$/);
    expect(authorization.split('Signature=')[1]).toBe(signatureOf(headers, body, path));
    expect(authorization + JSON.stringify(headers)).not.toContain('very-secret');
  },
);

test('a request without a scope arrives unchanged, without any credentials of the role', async () => {
  const { headers } = await send({ headers: { authorization: 'Bearer x' } });
  expect(headers.authorization).toBe('Bearer x');
  expect(Object.keys(headers).filter((name) => name.startsWith('x-amz'))).toEqual([]);
});
