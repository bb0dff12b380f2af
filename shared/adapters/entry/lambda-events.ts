/**
 * The events that bring HTTP requests to functions, as the request type that all hosts share: of a Function URL (payload 2.0)
 * and of a REST API of API Gateway (payload 1.0). Must never take from a header what only AWS can say.
 */
import type { APIGatewayProxyEvent, LambdaFunctionURLEvent } from 'aws-lambda';
import { originHeader, type HostRequest } from './http-entry.ts';

export type HttpEvent = LambdaFunctionURLEvent | APIGatewayProxyEvent;

/** Which it is, its own form says. Throws a TypeError for any other kind of event. */
export const hostRequest = (event: HttpEvent, deadlineMs: number): HostRequest =>
  'httpMethod' in event ? readRestApiEvent(event, deadlineMs) : readFunctionUrlEvent(event, deadlineMs);

function readFunctionUrlEvent(event: LambdaFunctionURLEvent, deadlineMs: number): HostRequest {
  const { domainName, http } = event.requestContext;
  return {
    method: http.method,
    path: event.rawPath,
    query: event.rawQueryString,
    headers: event.headers,
    host: domainName,
    body: bodyOf(event),
    deadlineMs,
  };
}

/**
 * What a stage that clients call directly has in place of the origin's header. A client sets headers, but no variable of a
 * stage: where there is one, both headers of a distribution are a client's own, and do not count.
 */
const originVariable = 'origin';

function readRestApiEvent(event: APIGatewayProxyEvent, deadlineMs: number): HostRequest {
  const { domainName = '', path: whole, stage } = event.requestContext;
  const prefix = `/${stage}`;
  const isBelow = (path: string): boolean => path === prefix || path.startsWith(`${prefix}/`);
  const headers = joinHeaders(event);
  const marker = event.stageVariables?.[originVariable];
  return {
    method: event.httpMethod,
    // The stage is in the path of some events and not of others, and no path of the relay begins as a stage is named.
    path: (isBelow(event.path) ? event.path.slice(prefix.length) : event.path) || '/',
    query: queryOf(event),
    headers:
      marker === undefined ? headers : { ...headers, [originHeader]: marker, 'x-forwarded-host': undefined },
    // Under a name of its own an API has no stage in its addresses.
    host: isBelow(whole) ? domainName + prefix : domainName,
    body: bodyOf(event),
    deadlineMs,
  };
}

/** In lower case. One that came twice is joined as HTTP joins it, also where the two were written differently. */
function joinHeaders(event: APIGatewayProxyEvent): Record<string, string> {
  const joined = new Map<string, string>();
  for (const [name, values = []] of Object.entries(event.multiValueHeaders ?? {})) {
    const before = joined.get(name.toLowerCase());
    joined.set(name.toLowerCase(), [...(before === undefined ? [] : [before]), ...values].join(', '));
  }
  return Object.fromEntries(joined);
}

/** API Gateway has decoded it. The order of different names is lost. */
function queryOf({ multiValueQueryStringParameters: given }: APIGatewayProxyEvent): string {
  const pairs = Object.entries(given ?? {}).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new URLSearchParams(pairs).toString();
}

/** Lambda has it in base64 when its content type is not a text type; API Gateway always has. */
function bodyOf({ body, isBase64Encoded }: HttpEvent): HostRequest['body'] {
  return () => (isBase64Encoded ? Buffer.from(body ?? '', 'base64') : (body ?? ''));
}
