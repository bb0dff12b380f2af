/**
 * What a host hands to `http-entry`, and how that becomes the relay's own request. Nothing in it is trusted yet: the
 * origin check runs on the result.
 */
import type { RelayRequest } from '../../relay/http/http.ts';
import { readJsonBody } from './json-body.ts';

export interface HostRequest {
  method: string;
  /** As it was sent, escapes included, without the query. */
  path: string;
  query: string;
  /** Names in any case. */
  headers: Record<string, string | undefined>;
  /** The host's own name: part of the base URL when no distribution names another. */
  host: string;
  /** Text, or the bytes when the host cannot tell that they are text. Called at most once, after the key was checked. */
  body(): string | Uint8Array;
  /** When the host will end the invocation, in epoch milliseconds. */
  deadlineMs: number;
}

/** @param local true on the local stack: the public address is http there */
export function relayRequest(
  received: HostRequest,
  { id, local }: { id: string; local: boolean },
): RelayRequest {
  const headers = Object.fromEntries(
    Object.entries(received.headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const host = publicHost(headers['x-forwarded-host']) ?? received.host;
  return {
    id,
    // HEAD is answered like GET: only the body differs.
    method: received.method === 'HEAD' ? 'GET' : received.method,
    path: decodedPath(received.path),
    query: new URLSearchParams(received.query),
    headers,
    baseUrl: `${local ? 'http' : 'https'}://${host}/v1`,
    json: () => readJsonBody(received.body()),
    hostDeadlineMs: received.deadlineMs,
  };
}

/** The host that clients use, as the distribution names it. Messages and pages quote it, so only a host's form is taken. */
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
