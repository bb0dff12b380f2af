/**
 * What every host needs around a handle: request id, origin check, stop of loops, errors as responses, HEAD. Every response
 * has `x-request-id`. Must never reject, because the host would then have no response to send.
 */
import { hash, timingSafeEqual } from 'node:crypto';
import type { HostedHandle, RelayRequest, RelayResponse } from '../../relay/http/http.ts';
import { asRefusal, refusalResponse, refuse, type Refusal } from '../../relay/http/refusal.ts';
import { hopHeader, loopHeader } from '../../wire/ids.ts';
import { readJsonBody, type SharedHost } from './json-body.ts';

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
  /** Text, or bytes when the host does not know whether they are text. Called after the key check, and once: a host need not keep it. */
  body(): string | Uint8Array;
  /** When the host will end the invocation, in epoch milliseconds. */
  deadlineMs: number;
  /** Aborts when the host has to end before. */
  ends?: AbortSignal;
  /** Absent: a function, which serves one request at a time. */
  shared?: SharedHost;
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
  let json: Promise<unknown> | undefined;
  return {
    id,
    // HEAD is handled like GET; `answerRequest` removes the body.
    method: received.method === 'HEAD' ? 'GET' : received.method,
    path: decodedPath(received.path),
    query: new URLSearchParams(received.query),
    headers,
    baseUrl: `${local ? 'http' : 'https'}://${host}/v1`,
    json: (valuesMax) =>
      (json ??= readJsonBody(received.body(), headers['content-encoding'], received.shared, valuesMax)),
    rawBody: () => received.body(),
    hostDeadlineMs: received.deadlineMs,
    hostEnds: received.ends,
    room: received.shared?.room,
  };
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
