/**
 * What every host needs around a handle: request id, origin check, stop of loops, errors as responses, HEAD. Every response
 * has `x-request-id`. Must never reject, because the host would then have no response to send.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import type { HostedHandle, RelayRequest, RelayResponse, HeldRoom } from '../../relay/http/http.ts';
import { asRefusal, refusalResponse, refuse, type Refusal } from '../../relay/http/refusal.ts';
import { hopHeader, loopHeader } from '../../wire/ids.ts';
import { brokenBound } from '../../wire/json.ts';

/** The distribution sends the origin secret in this header. */
export const originHeader = 'x-relay-origin';

/** A chain of relays, each the upstream of the one before, may be as long. */
const hopsMax = 4;

/** @param read reads the request that the host received; when it throws, the response is 500 */
export async function answerRequest(hosted: HostedHandle, read: () => HostRequest): Promise<RelayResponse> {
  const id = hosted.ids.next();
  try {
    const received = read();
    const full = await admit(hosted, relayRequest(received, { id, local: hosted.local }));
    const response = received.method === 'HEAD' ? await withoutBody(full) : full;
    return {
      ...response,
      headers: { ...response.headers, 'x-request-id': id },
      done: response.done.catch((error: unknown) => hosted.log.fault(id, error)),
    };
  } catch (error) {
    hosted.log.fault(id, error);
    return refusalResponse(asRefusal(error), id);
  }
}

async function admit(hosted: HostedHandle, request: RelayRequest): Promise<RelayResponse> {
  const startedMs = hosted.clock.now();
  // The secret grants access to every function of this stack, so it is removed before the relay gets the
  // headers.
  const { [originHeader]: secret, [hopHeader]: passed, ...headers } = request.headers;
  let refusal: Refusal;
  if (isFromOrigin(secret, hosted)) {
    const own = hosted.originSecrets.map(hopId);
    const hops = passed === undefined ? [] : (passed.match(/[0-9a-f]{16}/g) ?? []);
    const returns = hops.some((id) => own.includes(id));
    if (!returns && hops.length < hopsMax)
      return hosted.handle({ ...request, headers, hops: [...hops, own.at(-1)].join(', ') });
    refusal = loopRefusal(returns);
  } else refusal = refuse('origin_denied', 'This address is not public. Use the base URL of the relay.');
  hosted.log.request({
    request_id: request.id,
    endpoint: 'edge',
    status: refusal.status,
    end: 'refused',
    duration_ms: hosted.clock.now() - startedMs,
    code: refusal.body.error.code,
  });
  return refusalResponse(refusal, request.id);
}

/**
 * This stack's name among relays: the same in all of its functions, another one in every other stack, and opaque to
 * upstreams.
 */
const hopId = (secret: string): string => digest(`hop of ${secret}`).toString('hex').slice(0, 16);

const loopRefusal = (returns: boolean): Refusal =>
  refuse(
    'relay_loop',
    returns
      ? 'This call came from this relay itself: one of its channels leads back to it. Nothing was charged. Correct the endpoint of that channel.'
      : `This call passed ${hopsMax} relays before this one, which is as many as may be in a row. Nothing was charged.`,
    { headers: { [loopHeader]: '1', 'x-should-retry': 'false' } },
  );

/** Keeps only status and headers; returns a streamed body early. */
async function withoutBody(response: RelayResponse): Promise<RelayResponse> {
  if (typeof response.body !== 'string') await response.body[Symbol.asyncIterator]().return?.();
  return { ...response, body: '' };
}

/**
 * Whether a request came through the distribution, which adds a secret. Compares in constant time and always
 * with every accepted secret, so that the duration reveals nothing. An empty list accepts no request.
 * @param sent the value of `originHeader`
 */
export function isFromOrigin(
  sent: string | undefined,
  { originSecrets: accepted }: Pick<HostedHandle, 'originSecrets'>,
): boolean {
  const given = digest(sent ?? '');
  let matches = 0;
  for (const secret of accepted) matches += Number(timingSafeEqual(given, digest(secret)));
  return matches > 0 && Boolean(sent);
}

// timingSafeEqual needs equal lengths, which digests have.
const digest = (text: string): Buffer => hash('sha256', text, 'buffer');

// A request as a host passes it to `http-entry`, and its conversion to the relay's request. Its content is
// not trusted: the origin check runs on the result.

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

// Parses a request body as JSON, within limits for size, depth and number of values.

export const bodyBytesMax = 4 * 1024 * 1024;
const levelsMax = 200;
/** Validation needs up to a kilobyte per value, so millions of values would exhaust the function's memory. */
const valuesMax = 100_000;

/** Throws a Refusal that explains what is wrong with the body. */
export function readJsonBody(body: string | Uint8Array): unknown {
  const text = readText(body);
  if (text.trim() === '') throw refuse('empty_body', 'The body is empty. Send a JSON object.');
  const broken = brokenBound(text, { levelsMax, valuesMax });
  if (broken === 'levels') throw refuse('json_too_deep', `The body nests deeper than ${levelsMax} levels.`);
  if (broken === 'values') throw refuse('json_too_wide', `The body holds more than ${valuesMax} values.`);
  try {
    return JSON.parse(text);
  } catch {
    throw refuse('invalid_json', 'The body is not valid JSON.');
  }
}

function readText(body: string | Uint8Array): string {
  refuseAbove(Buffer.byteLength(body));
  return withoutByteOrderMark(typeof body === 'string' ? body : decodeUtf8(body));
}

/** Throws a Refusal for a body of so many bytes if that is too many. */
function refuseAbove(bytes: number): void {
  if (bytes > bodyBytesMax)
    throw refuse(
      'request_too_large',
      `The body has ${bytes} bytes; at most ${bodyBytesMax} (4 MB) are accepted.`,
    );
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refuse('invalid_encoding', 'The body is not valid UTF-8.');
  }
}

const withoutByteOrderMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);
