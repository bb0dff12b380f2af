/**
 * Answers a repeat of a request with an Idempotency-Key by the first result: as it was, with a header that names the first,
 * and free of charge. Must never ask an upstream.
 */
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { ChatCall } from '../call/call.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { RelayRequest, RelayResponse } from '../http/http.ts';
import { respondJson, refuse } from '../http/refusal.ts';
import type { StoredResult } from '../ports/stored.ts';
import { followResponse } from './follow.ts';
import type { EndpointRequest } from '../../endpoints/endpoint.ts';
import type { ClaimReply } from '../ports/runtime-stores.ts';
import { renderQueued } from './accept.ts';
import { nameWithdrawnRun } from './accepted-call.ts';

/** Throws a Refusal or StoreUnavailable. */
export async function repeatResult(
  ports: ChatPorts,
  call: ChatCall,
  { first, request }: { first: StoredResult; request: RelayRequest },
): Promise<RelayResponse> {
  const { status, headers, body } = first;
  const answer =
    body === undefined
      ? await followFirst(ports, call, { first, request })
      : { status, headers, body, done: Promise.resolve() };
  const logRepeat = (): void =>
    ports.log.request({
      request_id: request.id,
      endpoint: call.endpoint,
      status,
      end: 'completed',
      reason: 'repeated',
      duration_ms: ports.clock.now() - call.startedMs,
      key_hint: call.key.hint,
      account: call.key.account,
      model: call.model.base,
    });
  return {
    ...answer,
    headers: {
      ...answer.headers,
      ...headers,
      'x-request-id': request.id,
      'x-relay-replayed': first.requestId,
    },
    done: answer.done.then(logRepeat),
  };
}

/** All events from the first on, as the first client got them. */
async function followFirst(
  ports: ChatPorts,
  call: ChatCall,
  { first, request }: { first: StoredResult; request: RelayRequest },
): Promise<RelayResponse> {
  const id = `resp-${first.requestId}`;
  try {
    return await followResponse(ports, call, { id, request });
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    throw refuse(
      'request_already_completed',
      `The first request with this Idempotency-Key was accepted as ${id}, whose events are no longer stored. Retrieve it, or use a new key to send the request again.`,
      { headers: { 'x-should-retry': 'false' } },
    );
  }
}

/**
 * The result of a background call that was accepted before, of which no other is kept: its acceptor was killed before it
 * could, or the store refused. Undefined: it is not known to have been accepted, its acceptor may still withdraw it, or its
 * response was removed.
 */
export async function findAccepted(
  { stored }: Pick<ChatPorts, 'stored'>,
  { call, read }: { call: ChatCall; read: EndpointRequest },
  { state, requestId }: Extract<ClaimReply, { state: 'running' | 'completed' }>,
): Promise<StoredResult | undefined> {
  const { account } = call.key;
  const id = `resp-${requestId}`;
  const head = (await stored.responses.heads(account, [id])).get(id);
  if (!head?.background) return undefined;
  const { run, streamed } = head.background;
  const isRun = run !== undefined && run !== nameWithdrawnRun(id);
  if (state === 'running' && !isRun) return undefined;
  if (streamed) return { requestId, status: 200, headers: {}, body: undefined };
  // The request is the same, so this is the object that the first one got.
  const identity = { ...call.identity, requestId, created: head.createdAt };
  const { status, headers, body } = respondJson(requestId, renderQueued(identity, read));
  return { requestId, status, headers, body };
}
