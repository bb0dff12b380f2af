/** The conversation that a call goes on from, and the items that it refers to, out of the account's stored responses. */
import type { StorageAtHand, StoredReferences } from '../../endpoints/endpoint.ts';
import { refuse } from '../http/refusal.ts';
import type { ResponseStore } from '../ports/stored/response-store.ts';
import type { ResponseHead } from '../ports/stored/stored-response.ts';

export interface Conversation extends StorageAtHand {
  /** The response that the call goes on from. Undefined: it begins a conversation. */
  previous: ResponseHead | undefined;
}

/** Of a call that refers to nothing. */
export const newConversation: Conversation = { earlier: [], referred: new Map(), previous: undefined };

/** Throws the refusal `response_not_found`, and InvalidRequest for a conversation that is too long. */
export async function conversationOf(
  _responses: ResponseStore,
  _account: string,
  { previous, items }: StoredReferences,
): Promise<Conversation> {
  if (previous === undefined && items.length === 0) return newConversation;
  throw refuse('response_not_found', 'Stored conversations are not read yet.');
}
