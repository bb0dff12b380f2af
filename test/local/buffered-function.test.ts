import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startHost, type FunctionHost } from './function-host.ts';

let host: FunctionHost;
beforeAll(async () => {
  host = await startHost({ fixture: 'plain', mode: 'BUFFERED', methods: ['GET', 'POST'] });
});
afterAll(() => host.close());

const get = (path: string, init?: RequestInit): Promise<Response> => fetch(`${host.url}${path}`, init);

interface EchoedEvent {
  rawPath: string;
  rawQueryString: string;
  queryStringParameters: Record<string, string>;
  headers: Record<string, string>;
  cookies: string[];
  body: string;
  isBase64Encoded: boolean;
}

const echo = async (path: string, init?: RequestInit): Promise<EchoedEvent> =>
  (await get(path, init)).json() as Promise<EchoedEvent>;

describe('a buffered function under its URL', () => {
  it('answers with the status, headers, cookies and body that it returns', async () => {
    const response = await get('/teapot');
    expect(response.status).toBe(418);
    expect(response.headers.getSetCookie()).toEqual(['a=1']);
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.text()).toBe('short and stout');
  });

  it('decodes a base64 body', async () => {
    expect([...new Uint8Array(await (await get('/bytes')).arrayBuffer())]).toEqual([0, 255]);
  });

  it('sends a result without a status as JSON', async () => {
    expect(await (await get('/bare')).json()).toEqual({ hello: 'world' });
  });

  it('turns a throw into a 502', async () => {
    expect((await get('/throws')).status).toBe(502);
  });

  it('turns the death of its environment into a 502, and serves the next request', async () => {
    expect((await get('/dies')).status).toBe(502);
    expect((await get('/bare')).status).toBe(200);
  });

  it('gets the request as payload 2.0, text as text and other bytes as base64', async () => {
    const json = await echo('/echo?a=1&a=2&b=%20', {
      method: 'POST',
      headers: { 'content-type': 'application/json', cookie: 'x=1; y=2' },
      body: '{"ü":1}',
    });
    expect(json).toMatchObject({
      rawPath: '/echo',
      rawQueryString: 'a=1&a=2&b=%20',
      queryStringParameters: { a: '1,2', b: ' ' },
      cookies: ['x=1', 'y=2'],
      body: '{"ü":1}',
      isBase64Encoded: false,
    });
    const bytes = await echo('/echo', { method: 'POST', body: new Uint8Array([255]) });
    expect(bytes).toMatchObject({ body: '/w==', isBase64Encoded: true });
  });

  it('receives its own host name, the viewer’s in another header, and the origin secret whatever the viewer sent', async () => {
    const { headers } = await echo('/echo', {
      headers: { 'x-relay-origin': 'forged', 'x-forwarded-host': 'forged', authorization: 'Bearer k' },
    });
    expect(headers).toMatchObject({
      host: 'fixture.lambda-url.us-east-1.on.aws',
      'x-forwarded-host': host.url.replace('http://', ''),
      'x-relay-origin': 'secret',
      authorization: 'Bearer k',
    });
  });

  it('is not invoked with more than 6 MB, which the platform rejects with 413', async () => {
    const before = host.log.length;
    const response = await get('/echo', { method: 'POST', body: new Uint8Array(6 * 1024 * 1024 + 1) });
    expect(response.status).toBe(413);
    expect(host.log.slice(before)).toEqual([]);
  });

  it('is not invoked by a method that the behaviour does not allow', async () => {
    expect((await get('/echo', { method: 'DELETE' })).status).toBe(403);
  });
});

describe('a function that cannot be loaded', () => {
  it('fails each request with a 502 without waiting', async () => {
    const broken = await startHost({ fixture: 'plain', handler: 'index.missing' });
    const answers = await Promise.all([fetch(broken.url), fetch(broken.url)]);
    await broken.close();
    expect(answers.map(({ status }) => status)).toEqual([502, 502]);
    expect(broken.log.join('\n')).toContain('missing is undefined or not exported');
  });
});
