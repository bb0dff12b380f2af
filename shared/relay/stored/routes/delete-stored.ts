/**
 * DELETE /v1/responses/{id}: nobody reads it from then on. A run that is answering it notices, and ends; one that waits never
 * begins, and what was reserved for it is free at once. Must never close the reservation of a run.
 */
import { deletedResponse } from '../../../endpoints/responses/stored/retrieved-response.ts';
import type { ChatPorts } from '../../call/chat-ports.ts';
import type { RelayResponse } from '../../http/http.ts';
import { asked, jsonOf, noSuchResponse } from '../found-response.ts';
import type { cancelQueued } from '../background/cancel.ts';
import type { AskedStored, StoredCaller } from '../stored-caller.ts';

type DeletePorts = Pick<ChatPorts, 'clock' | 'random' | 'quotas' | 'log' | 'stored'>;

/** Throws a Refusal or StoreUnavailable. */
export async function deleteStored(
  ports: DeletePorts,
  { key: { account } }: StoredCaller,
  { id, request }: AskedStored,
): Promise<RelayResponse> {
  const { responses } = ports.stored;
  const head = (await asked(ports, () => responses.heads(account, [id]))).get(id);
  const { released } = head?.status === 'queued' ? await cancelled(ports, { account, id }) : {};
  let isRemoved = false;
  try {
    // Also without a head: a try before this one may have come so far, or the answer may have been kept meanwhile.
    isRemoved = await asked(ports, () => responses.remove(account, id));
  } catch (error) {
    // A refusal ends the invocation, and with it what goes on.
    await released;
    throw error;
  }
  // One that is repeated finds nothing, and it is deleted.
  if (!head && !isRemoved) throw noSuchResponse(id);
  return { ...jsonOf(request, deletedResponse(id)), done: released ?? Promise.resolve() };
}

/** Loaded by the first that is queued. */
const cancelled: typeof cancelQueued = async (...queued) =>
  (await import('../background/cancel.ts')).cancelQueued(...queued);
