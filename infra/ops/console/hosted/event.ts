/**
 * Turns the event of a Function URL into a browser's request. Must refuse events that bypass the distribution, and every host but
 * the relay's own. Passes on only headers that the console reads.
 */
import type { LambdaFunctionURLEvent } from 'aws-lambda';
import { isFromOrigin, originHeader } from '../../../../shared/adapters/entry/http-entry.ts';
import type { Environment } from '../../../../shared/adapters/system/environment.ts';
import { answerPlain } from '../guard.ts';

type Host = Pick<Environment, 'local' | 'originSecrets' | 'publicHost'>;
export type UrlEvent = Pick<
  LambdaFunctionURLEvent,
  'body' | 'cookies' | 'headers' | 'isBase64Encoded' | 'rawPath' | 'rawQueryString'
> & { requestContext: { http: { method: string } } };

/** Returns a Response when the event is refused. */
export function requestOf(event: UrlEvent, { local, publicHost, ...host }: Host): Request | Response {
  if (!isFromOrigin(event.headers[originHeader], host))
    return answerPlain(403, 'This address is not public. Use the address of the relay.');
  const name = event.headers['x-forwarded-host'] ?? '';
  // Without a custom domain the function cannot know its name, but the distribution answers to no other.
  const isOwn = publicHost === undefined ? /^[a-z0-9]+\.cloudfront\.net$/.test(name) : name === publicHost;
  if (!isOwn) return answerPlain(421, 'Unknown host. Use the address of the relay.');
  return (
    buildBrowserRequest(event, `${local ? 'http' : 'https'}://${name}`) ??
    answerPlain(400, 'Open this page in a browser.')
  );
}

const kept = ['accept', 'content-type', 'last-event-id', 'origin', 'sec-fetch-dest', 'sec-fetch-site'];

function buildBrowserRequest(event: UrlEvent, origin: string): Request | undefined {
  const { method } = event.requestContext.http;
  const query = event.rawQueryString === '' ? '' : `?${event.rawQueryString}`;
  const address = URL.parse(event.rawPath + query, origin);
  if (!address || address.origin !== origin || !['GET', 'POST'].includes(method)) return undefined;
  const headers = kept.flatMap((name): [string, string][] => {
    const value = event.headers[name];
    return value === undefined ? [] : [[name, value]];
  });
  const cookie = event.cookies?.join('; ');
  if (cookie) headers.push(['cookie', cookie]);
  if (method === 'GET') return new Request(address, { headers });
  const body = new Uint8Array(Buffer.from(event.body ?? '', event.isBase64Encoded ? 'base64' : 'utf8'));
  return new Request(address, { method, headers, body });
}
