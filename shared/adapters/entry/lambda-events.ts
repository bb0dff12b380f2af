/**
 * Converts HTTP events of Lambda to the request type that all hosts share: of Function URLs (payload 2.0) and of API
 * Gateway's REST APIs (1.0). Must never trust a header for what only AWS can know.
 */
import type { APIGatewayProxyEvent, LambdaFunctionURLEvent } from 'aws-lambda';
import { originHeader, type HostRequest } from './http-entry.ts';

export type HttpEvent = LambdaFunctionURLEvent | APIGatewayProxyEvent;

/** Throws a TypeError for any other kind of event. */
export const readHttpEvent = (event: HttpEvent, deadlineMs: number): HostRequest =>
  'httpMethod' in event ? readRestApiEvent(event, deadlineMs) : readFunctionUrlEvent(event, deadlineMs);

function readFunctionUrlEvent(event: LambdaFunctionURLEvent, deadlineMs: number): HostRequest {
  const { domainName, http } = event.requestContext;
  return {
    method: http.method,
    path: event.rawPath,
    query: event.rawQueryString,
    headers: event.headers,
    host: domainName,
    body: createBodyReader(event),
    deadlineMs,
  };
}

/**
 * A stage that clients call directly has this variable instead of the origin's header. Clients can set headers but no stage
 * variables, so with one, both of the distribution's headers are ignored.
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
    // Some events have the stage in the path. No path of the relay begins with a stage's name.
    path: (isBelow(event.path) ? event.path.slice(prefix.length) : event.path) || '/',
    query: joinQuery(event),
    headers:
      marker === undefined ? headers : { ...headers, [originHeader]: marker, 'x-forwarded-host': undefined },
    // With a custom domain, addresses have no stage.
    host: isBelow(whole) ? domainName + prefix : domainName,
    body: createBodyReader(event),
    deadlineMs,
  };
}

/** Names in lower case. Joins repeated headers as HTTP does, also those that differ in case. */
function joinHeaders(event: APIGatewayProxyEvent): Record<string, string> {
  const joined = new Map<string, string>();
  for (const [name, values = []] of Object.entries(event.multiValueHeaders ?? {})) {
    const before = joined.get(name.toLowerCase());
    joined.set(name.toLowerCase(), [...(before === undefined ? [] : [before]), ...values].join(', '));
  }
  return Object.fromEntries(joined);
}

/** API Gateway decodes it and loses the order of different names. */
function joinQuery({ multiValueQueryStringParameters: given }: APIGatewayProxyEvent): string {
  const pairs = Object.entries(given ?? {}).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value]),
  );
  return new URLSearchParams(pairs).toString();
}

/** Lambda sends base64 for content that is not text, API Gateway always. */
function createBodyReader({ body, isBase64Encoded }: HttpEvent): HostRequest['body'] {
  return () => (isBase64Encoded ? Buffer.from(body ?? '', 'base64') : (body ?? ''));
}
