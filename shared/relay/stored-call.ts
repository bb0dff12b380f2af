/**
 * What calls need beside others that are stored, or go on from what is. Loaded by the first such call, before anything is
 * reserved for it. Must read nothing that the relay has to pay for before the call is admitted.
 */
import type { StoredReferences } from '../endpoints/endpoint.ts';
import type { ChatCall } from './call/call.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import type { accept } from './stored/accept.ts';
import type { RelayRequest } from './http/http.ts';
import { KeptAnswer, type KeptAnswerParts } from './stored/kept-answer.ts';
import { conversationOf, type Conversation } from './stored/conversation.ts';
import { amongReads, StoredReader } from './stored/reads.ts';

/** What the call goes on from. Undefined: it refers to nothing. Throws what `conversationOf` throws. */
export const conversationBefore = async (
  ports: ChatPorts,
  { key }: Pick<ChatCall, 'key'>,
  { unread, request }: { unread: StoredReferences | undefined; request: RelayRequest },
): Promise<Conversation | undefined> =>
  unread &&
  amongReads(ports, { key, requestId: request.id }, () =>
    conversationOf(new StoredReader(ports, key.account, request), unread),
  );

export const recorderOf =
  (ports: ChatPorts) =>
  (parts: KeptAnswerParts): KeptAnswer =>
    new KeptAnswer({ ...ports, responses: ports.stored.responses }, parts);

/** Loaded by the first call that is answered later. */
export const accepted: typeof accept = async (...asked) =>
  (await import('./stored/accept.ts')).accept(...asked);
