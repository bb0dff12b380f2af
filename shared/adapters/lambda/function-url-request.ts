/** Converts a Function URL event (payload 2.0) to the request type that all hosts share. */
import type { LambdaFunctionURLEvent } from 'aws-lambda';
import type { HostRequest } from '../http-entry/host-request.ts';

/** Throws a TypeError for any other kind of event. */
export function functionUrlRequest(event: LambdaFunctionURLEvent, deadlineMs: number): HostRequest {
  const { domainName, http } = event.requestContext;
  const { body = '', isBase64Encoded } = event;
  return {
    method: http.method,
    path: event.rawPath,
    query: event.rawQueryString,
    headers: event.headers,
    host: domainName,
    // Lambda encodes the body as base64 when its content type is not a text type.
    body: () => (isBase64Encoded ? Buffer.from(body, 'base64') : body),
    deadlineMs,
  };
}
