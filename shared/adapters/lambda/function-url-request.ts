/** A Function URL event (payload 2.0) as every host hands requests over. */
import type { LambdaFunctionURLEvent } from 'aws-lambda';
import type { HostRequest } from '../http-entry/host-request.ts';

/** Throws a TypeError for an event of another kind. */
export function functionUrlRequest(event: LambdaFunctionURLEvent, deadlineMs: number): HostRequest {
  const { domainName, http } = event.requestContext;
  const { body = '', isBase64Encoded } = event;
  return {
    method: http.method,
    path: event.rawPath,
    query: event.rawQueryString,
    headers: event.headers,
    host: domainName,
    // Lambda encodes a body whose content type does not announce text.
    body: () => (isBase64Encoded ? Buffer.from(body, 'base64') : body),
    deadlineMs,
  };
}
