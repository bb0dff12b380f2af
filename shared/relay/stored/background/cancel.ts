/**
 * Cancels a background response: one that waits never begins and costs nothing, one that runs is stopped by its run within a
 * second or two. Must never close the reservation of a run.
 */
import { InvalidRequest } from '../../../wire/invalid-request.ts';
import { shownResponse } from '../../../endpoints/responses/stored/shown-response.ts';
import type { ChatCall } from '../../call/chat-call.ts';
import type { ChatPorts } from '../../call/chat-ports.ts';
import type { RelayRequest, RelayResponse } from '../../http/http.ts';
import { refuse } from '../../http/refusal.ts';
import { Backoff } from '../../money/backoff.ts';
import type { StoredResponse } from '../../ports/stored/stored-response.ts';
import { foundEnd } from '../events/run-end.ts';
import { waitingIn } from './handed-call.ts';
import { releaseWaiting } from './handed-reservation.ts';
import { cancelledResponse } from './run-keeper.ts';

const stepMsMax = 2_000;
/** How long the caller waits for what the run had written, which the run writes when it sees that it is cancelled. */
const waitMsMax = 4_000;
const pollMs = 250;

type CancelPorts = Pick<ChatPorts, 'clock' | 'random' | 'quotas' | 'log' | 'stored'>;

interface Of {
  account: string;
  id: string;
}

/** Again, or after the end: the response as it is. Throws a Refusal, an InvalidRequest or StoreUnavailable. */
export async function cancel(
  ports: CancelPorts,
  { key: { account } }: Pick<ChatCall, 'key'>,
  { id, request }: { id: string; request: Pick<RelayRequest, 'id'> },
): Promise<RelayResponse> {
  const of = { account, id };
  const found = await read(ports, of);
  if (!found.head.background)
    throw new InvalidRequest(
      'invalid_value',
      'response_id',
      'Only responses that were created with background: true can be cancelled.',
    );
  const { runs } = ports.stored;
  await foundEnd(ports.stored, found.head, Math.floor(ports.clock.now() / 1000));
  const head = await new Backoff(ports, stepMsMax).until(() => runs.cancel(account, id));
  if (!head) throw notFound(id);
  // No run had claimed it, and none can any more, so what waits is nobody else's.
  const waiting = head.status === 'cancelled' && head.background?.run === undefined && waitingIn(found);
  const done = waiting ? releaseWaiting(ports, waiting) : Promise.resolve();
  const { response } = (waiting ? found : await ended(ports, of)).body;
  const shown =
    head.status === 'cancelled' ? cancelledResponse(response) : shownResponse(head.status, response);
  return {
    status: 200,
    headers: {
      'content-type': 'application/json',
      'cache-control': 'no-store',
      'x-request-id': request.id,
    },
    body: JSON.stringify(shown),
    done,
  };
}

async function read(ports: CancelPorts, { account, id }: Of): Promise<StoredResponse> {
  const { responses } = ports.stored;
  const found = await new Backoff(ports, stepMsMax).until(() => responses.read(account, [id]));
  const response = found.get(id);
  if (!response) throw notFound(id);
  return response;
}

/** With what its run had written, if that is there in time. */
async function ended(ports: CancelPorts, of: Of): Promise<StoredResponse> {
  const untilMs = ports.clock.now() + waitMsMax;
  for (;;) {
    const found = await read(ports, of);
    const isThere = found.head.status !== 'cancelled' || found.body.response['status'] === 'cancelled';
    if (isThere || ports.clock.now() >= untilMs) return found;
    await ports.clock.sleep(pollMs);
  }
}

const notFound = (id: string) =>
  refuse('response_not_found', `Response with id '${id.slice(0, 64)}' not found.`, { param: 'id' });
