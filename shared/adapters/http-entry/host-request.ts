/**
 * A request as a host passes it to `http-entry`, and its conversion to the relay's request. Its content is
 * not trusted: the origin check runs on the result.
 */
import type { HeldRoom, RelayRequest } from '../../relay/http/http.ts';
import { bodyBytesMax, readJsonBody, refuseAbove } from './json-body.ts';
import { refuse } from '../../relay/http/refusal.ts';
import { gunzipSync } from 'node:zlib';

export interface HostRequest {
  method: string;
  /** As sent, with escapes and without the query. */
  path: string;
  query: string;
  /** Names in upper or lower case. */
  headers: Record<string, string | undefined>;
  /** The host's own name. Part of the base URL unless the distribution sends another name. */
  host: string;
  /**
   * Text, or bytes when the host does not know whether they are text. Called after the key check, and again when the checks
   * are repeated: it must return the same each time.
   */
  body(): string | Uint8Array;
  /** When the host will end the invocation, in epoch milliseconds. */
  deadlineMs: number;
  /** Aborts when the host has to end before. */
  ends?: AbortSignal;
  /** Absent: it serves one request at a time. */
  room?: HeldRoom;
}

/** @param local true on the local stack, whose public address is http */
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
    // HEAD is handled like GET; `answerRequest` removes the body.
    method: received.method === 'HEAD' ? 'GET' : received.method,
    path: decodedPath(received.path),
    query: new URLSearchParams(received.query),
    headers,
    baseUrl: `${local ? 'http' : 'https'}://${host}/v1`,
    json: () => readJsonBody(decodedBody(() => received.body(), headers['content-encoding'])),
    rawBody: () => received.body(),
    hostDeadlineMs: received.deadlineMs,
    hostEnds: received.ends,
    room: received.room,
  };
}

/**
 * The body as it was before the client compressed it. Must never unpack more than a body may have, whatever a few bytes
 * of it would become.
 */
function decodedBody(body: HostRequest['body'], encoding = ''): string | Uint8Array {
  const name = encoding.trim().toLowerCase();
  if (name === '' || name === 'identity') return body();
  if (name !== 'gzip' && name !== 'x-gzip')
    throw refuse(
      'unsupported_content_encoding',
      'The body may be compressed with gzip alone. Send it with "content-encoding: gzip", or as it is, without this header.',
    );
  const packed = body();
  const bytes = typeof packed === 'string' ? Buffer.from(packed, 'latin1') : packed;
  refuseAbove(bytes.byteLength);
  try {
    return gunzipSync(bytes, { maxOutputLength: bodyBytesMax });
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE')
      throw refuse('request_too_large', `The body unpacks to more than ${bodyBytesMax} bytes (4 MB).`);
    throw refuse(
      'invalid_encoding',
      'The header says "content-encoding: gzip", but the body is not valid gzip.',
    );
  }
}

/**
 * The host that clients use, from the distribution's header. Messages and pages quote it, so it must have the
 * form of a host name.
 */
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
