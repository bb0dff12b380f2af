import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

export interface UrlRequest {
  method: string;
  /** Path and query as the client sent them. */
  target: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  sourceIp: string;
  /** Host name of the Function URL. */
  domain: string;
}

const textual = /^(text\/|application\/(json|javascript|xml|[\w.-]+\+(json|xml))\b)/i;

/** Converts a request to a Function URL's event, payload format 2.0. The path stays percent-encoded. */
export function toUrlEvent(request: UrlRequest, requestId: string): Record<string, unknown> {
  const { method, target, body, sourceIp, domain } = request;
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = mark < 0 ? '' : target.slice(mark + 1);
  const { headers, cookies } = eventHeaders(request);
  const isText = textual.test(headers['content-type'] ?? '') && headers['content-encoding'] === undefined;
  const prefix = domain.split('.')[0] ?? domain;
  const now = new Date();
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    ...(cookies.length > 0 && { cookies }),
    headers,
    ...(query !== '' && { queryStringParameters: queryParameters(query) }),
    requestContext: {
      accountId: 'anonymous',
      apiId: prefix,
      domainName: domain,
      domainPrefix: prefix,
      http: { method, path, protocol: 'HTTP/1.1', sourceIp, userAgent: headers['user-agent'] ?? '' },
      requestId,
      routeKey: '$default',
      stage: '$default',
      time: commonLogTime(now),
      timeEpoch: now.getTime(),
    },
    ...(body.length > 0 && { body: body.toString(isText ? 'utf8' : 'base64') }),
    isBase64Encoded: body.length > 0 && !isText,
  };
}

function eventHeaders(request: UrlRequest): { headers: Record<string, string>; cookies: string[] } {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(request.headers))
    if (value !== undefined && name !== 'cookie')
      headers[name] = Array.isArray(value) ? value.join(',') : value;
  headers['host'] = request.domain;
  headers['x-forwarded-for'] = [headers['x-forwarded-for'], request.sourceIp].filter(Boolean).join(', ');
  headers['x-forwarded-proto'] = 'https';
  headers['x-forwarded-port'] = '443';
  const seconds = Math.floor(Date.now() / 1000).toString(16);
  headers['x-amzn-trace-id'] ??= `Root=1-${seconds}-${randomBytes(12).toString('hex')}`;
  return { headers, cookies: request.headers.cookie?.split(/;\s*/) ?? [] };
}

function queryParameters(query: string): Record<string, string> {
  const parameters = new URLSearchParams(query);
  return Object.fromEntries([...parameters.keys()].map((name) => [name, parameters.getAll(name).join(',')]));
}

/** `21/Nov/2026:09:43:00 +0000` */
function commonLogTime(date: Date): string {
  const [, day, month, year, time] = date.toUTCString().split(' ');
  return `${day}/${month}/${year}:${time} +0000`;
}
