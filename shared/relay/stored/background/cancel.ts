/**
 * Cancels a background response: one that waits never begins and costs nothing, one that runs is stopped by its run within a
 * second or two. Must never close the reservation of a run.
 */
import { InvalidRequest } from '../../../wire/invalid-request.ts';
import { shownResponse } from '../../../endpoints/responses/stored/shown-response.ts';
import type { ChatPorts } from '../../call/chat-ports.ts';
import type { RelayResponse } from '../../http/http.ts';
import type { ResponseHead, StoredResponse } from '../../ports/stored/stored-response.ts';
import { asked, foundResponse, jsonOf, noSuchResponse } from '../found-response.ts';
import type { AskedStored, StoredCaller } from '../stored-caller.ts';
import { waitingIn } from './handed-call.ts';
import { releaseWaiting, type Waiting } from './handed-reservation.ts';
import { cancelledResponse } from './run-recorder.ts';

/** How long the caller waits for what the run had written, which the run writes when it sees that it is cancelled. */
const waitMsMax = 4_000;
const pollMs = 250;

type CancelPorts = Pick<ChatPorts, 'clock' | 'random' | 'quotas' | 'log' | 'stored'>;

/** Again, or after the end: the response as it is. Throws a Refusal, an InvalidRequest or StoreUnavailable. */
export async function cancel(
  ports: CancelPorts,
  { key: { account } }: Pick<StoredCaller, 'key'>,
  { id, request, reads }: AskedStored,
): Promise<RelayResponse> {
  const found = await foundResponse(ports, account, { id, reads });
  if (!found.head.background)
    throw new InvalidRequest(
      'invalid_value',
      'response_id',
      'Only responses that were created with background: true can be cancelled.',
    );
  const head = await asked(ports, () => ports.stored.runs.cancel(account, id));
  if (!head) throw noSuchResponse(id);
  const waiting = leftWaiting(found, head);
  const done = waiting ? releaseWaiting(ports, waiting) : Promise.resolve();
  const { response } = (waiting ? found : await ended(ports, { account, id, reads })).body;
  const shown =
    head.status === 'cancelled' ? cancelledResponse(response) : shownResponse(head.status, response);
  return { ...jsonOf(request, shown), done };
}

/**
 * Cancels what is queued, because it will be deleted. Resolves when it can begin no more: with the release of what waited,
 * which never rejects. Throws StoreUnavailable.
 */
export async function cancelQueued(
  ports: CancelPorts,
  { account, id }: { account: string; id: string },
): Promise<{ released: Promise<void> }> {
  const { responses, runs } = ports.stored;
  const found = (await asked(ports, () => responses.read(account, [id]))).get(id);
  const head = await asked(ports, () => runs.cancel(account, id));
  const waiting = found && head && leftWaiting(found, head);
  return { released: waiting ? releaseWaiting(ports, waiting) : Promise.resolve() };
}

/** No run had claimed it, and none can any more, so what waits is nobody else's. */
const leftWaiting = (found: StoredResponse, { status, background }: ResponseHead): Waiting | undefined =>
  status === 'cancelled' && background?.run === undefined ? waitingIn(found) : undefined;

/** With what its run had written, if that is there in time. */
async function ended(
  ports: CancelPorts,
  { account, ...of }: Pick<AskedStored, 'id' | 'reads'> & { account: string },
): Promise<StoredResponse> {
  const untilMs = ports.clock.now() + waitMsMax;
  for (;;) {
    const found = await foundResponse(ports, account, of);
    const isThere = found.head.status !== 'cancelled' || found.body.response['status'] === 'cancelled';
    if (isThere || ports.clock.now() >= untilMs) return found;
    await ports.clock.sleep(pollMs);
  }
}
