/**
 * What every host does around a handle: request id, origin check, errors as answers, HEAD. `x-request-id` is on every
 * answer. Must never reject: a host has nothing to answer with then.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { HostedHandle, RelayRequest, RelayResponse } from '../../relay/http/http.ts';
import { asRefusal, refusalResponse, refuse } from '../../relay/http/refusal.ts';
import { relayRequest, type HostRequest } from './host-request.ts';

/** The header by which the distribution shows that a request came through it. */
const originHeader = 'x-relay-origin';

/** @param read reads what the host received; when it throws, the answer is 500 */
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
  // The secret opens every function of this stack, so the relay behind this check does not get it.
  const { [originHeader]: secret, ...headers } = request.headers;
  if (isFromOrigin(secret, hosted.originSecrets)) return hosted.handle({ ...request, headers });
  const refusal = refuse('origin_denied', 'This address is not public. Use the base URL of the relay.');
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

/** Status and headers alone; a body that was already being made is returned early. */
async function withoutBody(response: RelayResponse): Promise<RelayResponse> {
  if (typeof response.body !== 'string') await response.body[Symbol.asyncIterator]().return?.();
  return { ...response, body: '' };
}

/**
 * Whether a request came through the distribution, which adds a secret that nobody else has. Compares in constant time, and with every accepted secret, so that the time taken tells nothing. An empty list
 * accepts no request.
 */
function isFromOrigin(sent: string | undefined, accepted: readonly string[]): boolean {
  const given = digest(sent ?? '');
  let matches = 0;
  for (const secret of accepted) matches += Number(timingSafeEqual(given, digest(secret)));
  return matches > 0 && Boolean(sent);
}

// Digests have one length, which timingSafeEqual needs.
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
