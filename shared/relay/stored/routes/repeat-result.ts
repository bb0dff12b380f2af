/**
 * Answers a repeat of a request with an Idempotency-Key by the first result: as it was, with a header that names the first,
 * and free of charge. Must never ask an upstream.
 */
import { InvalidRequest } from '../../../wire/invalid-request.ts';
import type { ChatCall } from '../../call/chat-call.ts';
import type { ChatPorts } from '../../call/chat-ports.ts';
import type { RelayRequest, RelayResponse } from '../../http/http.ts';
import { refuse } from '../../http/refusal.ts';
import type { StoredResult } from '../../ports/stored/result-store.ts';
import { follow } from '../events/follow.ts';
import { StoredReads } from '../stored-reads.ts';

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
  const logged = (): void =>
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
    done: answer.done.then(logged),
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
    return await follow(ports, call, { id, request, reads: new StoredReads(request) });
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error;
    throw refuse(
      'request_already_completed',
      `The first request with this Idempotency-Key was accepted as ${id}, whose events are no longer kept. Retrieve it, or use a new key to ask again.`,
      { headers: { 'x-should-retry': 'false' } },
    );
  }
}
