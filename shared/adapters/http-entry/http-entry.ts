/**
 * What every host needs around a handle: request id, origin check, errors as responses, HEAD. Every response
 * has `x-request-id`. Must never reject, because the host would then have no response to send.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { HostedHandle, RelayRequest, RelayResponse } from '../../relay/http/http.ts';
import { asRefusal, refusalResponse, refuse } from '../../relay/http/refusal.ts';
import { relayRequest, type HostRequest } from './host-request.ts';

/** The distribution sends the origin secret in this header. */
const originHeader = 'x-relay-origin';

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

/** Keeps only status and headers; returns a streamed body early. */
async function withoutBody(response: RelayResponse): Promise<RelayResponse> {
  if (typeof response.body !== 'string') await response.body[Symbol.asyncIterator]().return?.();
  return { ...response, body: '' };
}

/**
 * Whether a request came through the distribution, which adds a secret. Compares in constant time and always
 * with every accepted secret, so that the duration reveals nothing. An empty list accepts no request.
 */
function isFromOrigin(sent: string | undefined, accepted: readonly string[]): boolean {
  const given = digest(sent ?? '');
  let matches = 0;
  for (const secret of accepted) matches += Number(timingSafeEqual(given, digest(secret)));
  return matches > 0 && Boolean(sent);
}

// timingSafeEqual needs equal lengths, which digests have.
const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
