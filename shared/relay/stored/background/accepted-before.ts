/**
 * The result of a background call that was accepted before, of which no other is kept: its acceptor was killed before it
 * could, or the store refused. Must show nothing that its acceptor may still withdraw.
 */
import type { EndpointRequest } from '../../../endpoints/endpoint.ts';
import type { ChatCall } from '../../call/chat-call.ts';
import type { ChatPorts } from '../../call/chat-ports.ts';
import type { Taken } from '../../call/idempotency-claim.ts';
import type { StoredResult } from '../../ports/stored/result-store.ts';
import { queuedAnswer, queuedObject } from './accept.ts';
import { withdrawnRun } from './handed-call.ts';

/** Undefined: it is not known to have been accepted, or its response was removed. */
export async function acceptedBefore(
  { stored }: Pick<ChatPorts, 'stored'>,
  { call, read }: { call: ChatCall; read: EndpointRequest },
  { state, requestId }: Taken,
): Promise<StoredResult | undefined> {
  const { account } = call.key;
  const id = `resp-${requestId}`;
  const head = (await stored.responses.heads(account, [id])).get(id);
  if (!head?.background) return undefined;
  const { run, streamed } = head.background;
  const isRun = run !== undefined && run !== withdrawnRun(id);
  if (state === 'running' && !isRun) return undefined;
  if (streamed) return { requestId, status: 200, headers: {}, body: undefined };
  // The request is the same, so this is the object that the first one got.
  const identity = { ...call.identity, requestId, created: head.createdAt };
  const { status, headers, body } = queuedAnswer(identity, queuedObject(identity, read));
  return { requestId, status, headers, body };
}
