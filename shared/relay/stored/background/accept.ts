/**
 * Accepts a call that is answered later: reserves, stores the request, starts its run, and answers with the queued response.
 * Must never answer that it is accepted when it cannot run, nor refuse it when it may.
 */
import type { EndpointRequest } from '../../../endpoints/endpoint.ts';
import { streamedAnswer } from '../../../endpoints/renderer.ts';
import { createdFrame } from '../../../endpoints/responses/stored/stored-events.ts';
import { InvalidRequest } from '../../../wire/invalid-request.ts';
import { isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { ChatCall } from '../../call/chat-call.ts';
import type { ChatPorts } from '../../call/chat-ports.ts';
import type { HeldKey } from '../../call/idempotency-claim.ts';
import type { RelayRequest, RelayResponse } from '../../http/http.ts';
import { Backoff } from '../../money/backoff.ts';
import { Bill } from '../../money/bill.ts';
import type { Reservations } from '../../money/reservations.ts';
import { ResponseTooLarge } from '../../ports/stored/response-store.ts';
import type { StoredResponse } from '../../ports/stored/stored-response.ts';
import type { Conversation } from '../stored-conversation.ts';
import { follow } from '../events/follow.ts';
import { headOf } from '../kept-answer.ts';
import { beginsWithinMs, handedCall } from './handed-call.ts';

/** How long one step is tried before the caller has to come again. */
const stepMsMax = 2_000;

export interface AskedLater {
  call: ChatCall;
  read: EndpointRequest;
  body: unknown;
  conversation: Conversation;
  claim: HeldKey | undefined;
  request: RelayRequest;
}

/** Throws a Refusal, an InvalidRequest or StoreUnavailable; nothing then stays reserved or runs. */
export async function accept(
  ports: ChatPorts,
  reservations: Reservations,
  asked: AskedLater,
): Promise<RelayResponse> {
  const call = Object.freeze({ ...asked.call, queued: true });
  const bill = await Bill.open(reservations, ports.clock, call);
  const { requestId } = call.identity;
  const response = queuedResponse(call, asked, bill);
  try {
    await put(ports, response);
    await start(ports, response);
  } catch (error) {
    await bill.cancel();
    throw error;
  }
  bill.handOn();
  const { account, background: { streamed } = {} } = response.head;
  ports.log.event('background_accepted', { request_id: requestId, account, streamed });
  const queued = queuedAnswer(call, response);
  const answer = streamed ? await followed(ports, asked, response) : queued;
  const headers = { ...answer.headers, ...bill.headers };
  const body = streamed ? 'events' : { text: queued.body };
  asked.claim?.answered({ status: answer.status, headers, body });
  await asked.claim?.keep(false);
  const done = finished(bill, asked.claim);
  return { ...answer, headers, done: Promise.all([done, answer.done]).then(() => {}) };
}

const queuedAnswer = (
  { identity }: ChatCall,
  { body }: StoredResponse,
): RelayResponse & { body: string } => ({
  status: 200,
  headers: {
    'content-type': 'application/json',
    'cache-control': 'no-store',
    'x-request-id': identity.requestId,
  },
  body: JSON.stringify(body.response),
  done: Promise.resolve(),
});

/** A client that does not get the rest now knows the id, and comes back for it. */
async function followed(
  ports: ChatPorts,
  { call, request }: AskedLater,
  response: StoredResponse,
): Promise<RelayResponse> {
  const { id } = response.head;
  try {
    return await follow(ports, call, { id, request });
  } catch (error) {
    ports.log.fault(call.identity.requestId, error);
    const { headers, ...answer } = queuedAnswer(call, response);
    const body = createdFrame(response.body.response);
    return { ...answer, headers: { ...headers, 'content-type': streamedAnswer.contentType }, body };
  }
}

async function finished(bill: Bill, claim: HeldKey | undefined): Promise<void> {
  await bill.reserved?.besides;
  await claim?.finish(false);
}

async function put(ports: ChatPorts, response: StoredResponse): Promise<void> {
  const { account, id } = response.head;
  try {
    await new Backoff(ports, stepMsMax).until(() => ports.stored.responses.put(response));
  } catch (error) {
    if (error instanceof ResponseTooLarge)
      throw new InvalidRequest(
        'request_too_large',
        'background',
        'The request is larger than what can be stored for a background response. Send it without background.',
      );
    // A try without a reply may have been applied. Nobody knows its id, and nothing runs it.
    await ports.stored.responses.remove(account, id).catch(() => {});
    throw error;
  }
}

/** Starting is safe to repeat: of two deliveries of one event, one run claims the response. */
async function start(ports: ChatPorts, { head: { account, id } }: StoredResponse): Promise<void> {
  try {
    await new Backoff(ports, stepMsMax).until(() => ports.stored.startRun({ account, id }));
  } catch (error) {
    if (await withdrawn(ports, { account, id })) throw error;
  }
}

/**
 * Claims the response as a run would, so that none can any more, and removes it. False: a run has it, or that is not known.
 * The queued response then tells its client what became of it.
 */
async function withdrawn(
  ports: ChatPorts,
  { account, id }: { account: string; id: string },
): Promise<boolean> {
  const { clock, log, stored } = ports;
  const run = { account, id, run: `withdrawn ${id}` };
  try {
    const until = Math.floor(clock.now() / 1000);
    const claimed = await new Backoff(ports, stepMsMax).until(() => stored.runs.claim(run, until));
    if (!claimed) return false;
    await stored.responses.remove(account, id).catch((error: unknown) => log.fault(id, error));
    return true;
  } catch (error) {
    log.fault(id, error);
    return false;
  }
}

function queuedResponse(
  call: ChatCall,
  { read, body, conversation }: AskedLater,
  bill: Bill,
): StoredResponse {
  const whole = queuedObject(call, read);
  const input = read.storage?.input(call.identity.requestId) ?? [];
  const head = headOf(call, { conversation, status: 'queued', input, whole });
  const streamed = isRecord(body) && body['stream'] === true;
  const until = Math.ceil((call.startedMs + beginsWithinMs) / 1000);
  return {
    head: { ...head, background: { streamed, until } },
    body: { input, response: whole, request: handedCall(call, { body, reservation: bill.reserved }) },
  };
}

/** The response as its client gets it now. */
function queuedObject({ identity }: ChatCall, read: EndpointRequest): JsonRecord {
  const renderer = read.renderer(identity, {
    now: () => identity.created,
    sent: () => ({ dropped: [] }),
    sealedState: () => undefined,
    stored: () => true,
    opaqueParts: () => 0,
  });
  return renderer.queued?.() ?? renderer.whole?.() ?? {};
}
