import type { LambdaFunctionURLEvent } from 'aws-lambda';
import type { RelayRequest } from '../../relay/http/http.ts';
import { readJsonBody } from '../http-entry/json-body.ts';

export interface RequestFacts {
  id: string;
  /** true on the local stack: the public address is http there. */
  local: boolean;
  /** Epoch milliseconds. */
  hostDeadlineMs: number;
}

/** A Function URL event (payload 2.0) as the relay reads requests. HEAD counts as GET: only the body differs. */
export function toRelayRequest(event: LambdaFunctionURLEvent, facts: RequestFacts): RelayRequest {
  const { domainName, http } = event.requestContext;
  const headers = Object.fromEntries(
    Object.entries(event.headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const host = publicHost(headers['x-forwarded-host']) ?? domainName;
  return {
    id: facts.id,
    method: http.method === 'HEAD' ? 'GET' : http.method,
    path: decodedPath(event.rawPath),
    query: new URLSearchParams(event.rawQueryString),
    headers,
    baseUrl: `${facts.local ? 'http' : 'https'}://${host}/v1`,
    json: () => readJsonBody(event),
    hostDeadlineMs: facts.hostDeadlineMs,
  };
}

/** The front door's word for the host clients use; only what looks like a host may end up in messages and pages. */
function publicHost(forwarded: string | undefined): string | undefined {
  return forwarded !== undefined && /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:\d{1,5})?$/i.test(forwarded)
    ? forwarded
    : undefined;
}

function decodedPath(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
