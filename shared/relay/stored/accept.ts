/**
 * Accepts a call that is answered later: stores the request, starts its run, and answers with the queued response. Nothing is
 * reserved yet. Must never answer that it is accepted when nothing can run it, nor refuse it when a run may have begun.
 */
import { type EndpointRequest, streamedAnswer } from '../../endpoints/endpoint.ts';
import { renderCreatedFrame } from '../../endpoints/responses/stored-response.ts';
import { isRecord, type JsonRecord } from '../../wire/json.ts';
import type { ResultKeeper } from '../answer/answer.ts';
import type { ChatCall } from '../call/call.ts';
import type { CallRefusal } from '../call/call-refusals.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { RelayRequest, RelayResponse } from '../http/http.ts';
import { respondJson } from '../http/refusal.ts';
import { ResponseTooLarge, type ResponseHead, type StoredResponse } from '../ports/stored.ts';
import type { Conversation } from './conversation.ts';
import { followResponse } from './follow.ts';
import { headOf } from './kept-answer.ts';
import { retry } from '../retry.ts';
import { buildAcceptedCall, nameWithdrawnRun } from './accepted-call.ts';

interface AcceptInput {
  call: ChatCall;
  read: EndpointRequest;
  body: unknown;
  conversation: Conversation | undefined;
  /** The claim of its Idempotency-Key. */
  claim: (Pick<ResultKeeper, 'keep'> & { finish(free: boolean): Promise<void> }) | undefined;
  request: RelayRequest;
}

type StartRun = NonNullable<ChatPorts['stored']['startRun']>;

/**
 * Throws StoreUnavailable, or the error of `prove`. Nothing runs then, nor after a refusal.
 * @param prove throws when the call can't be paid as things are; returns headers about limits
 */
export async function acceptCall(
  ports: ChatPorts,
  prove: () => Promise<Record<string, string>>,
  asked: AcceptInput,
): Promise<{ answered: RelayResponse } | { refusal: CallRefusal }> {
  const { call } = asked;
  const { startRun } = ports.stored;
  if (!startRun) return { refusal: { reason: 'background_not_offered' } };
  const limitHeaders = await prove();
  const { requestId } = call.identity;
  const response = buildQueuedResponse(call, asked, ports.clock.now());
  if (!(await put(ports, response))) return { refusal: { reason: 'background_too_large' } };
  await start(ports, startRun, response.head);
  const { account, background: { streamed } = {} } = response.head;
  ports.log.event('background_accepted', { request_id: requestId, account, streamed });
  const queued = respondJson(requestId, response.body.response);
  const answer = streamed ? await followOrShowQueued(ports, asked, response) : queued;
  const headers = { ...answer.headers, ...limitHeaders };
  await asked.claim?.keep({ status: answer.status, headers, body: streamed ? undefined : queued.body });
  const done = Promise.all([asked.claim?.finish(false), answer.done]).then(() => {});
  return { answered: { ...answer, headers, done } };
}

/** A client that does not get the rest now knows the id, and comes back for it. */
async function followOrShowQueued(
  ports: ChatPorts,
  { call, request }: AcceptInput,
  response: StoredResponse,
): Promise<RelayResponse> {
  const { id } = response.head;
  try {
    return await followResponse(ports, call, { id, request });
  } catch (error) {
    ports.log.fault(call.identity.requestId, error);
    const { headers, ...answer } = respondJson(call.identity.requestId, response.body.response);
    const body = renderCreatedFrame(response.body.response);
    return { ...answer, headers: { ...headers, 'content-type': streamedAnswer.contentType }, body };
  }
}

/** Returns false if the response is too large to be stored. */
async function put(ports: ChatPorts, response: StoredResponse): Promise<boolean> {
  try {
    await retry(ports, () => ports.stored.responses.put(response));
    return true;
  } catch (error) {
    if (error instanceof ResponseTooLarge) return false;
    // A try without a reply may have been applied, or may be still. Nobody knows its id, and nothing runs it.
    await withdraw(ports, response.head);
    throw error;
  }
}

/** If the store stays down, the response is later found failed by nobody who knows its id, and expires. */
async function withdraw(ports: ChatPorts, { account, id }: ResponseHead): Promise<void> {
  const { responses } = ports.stored;
  await retry(ports, () => responses.withdraw(account, id)).catch((error: unknown) =>
    ports.log.fault(id, error),
  );
}

/** Starting is safe to repeat: of two deliveries of one event, one run claims the response. */
async function start(ports: ChatPorts, startRun: StartRun, head: ResponseHead): Promise<void> {
  const { account, id } = head;
  try {
    await retry(ports, () => startRun({ account, id }));
  } catch (error) {
    if (await withdrawUnlessRunning(ports, head)) throw error;
  }
}

/**
 * Claims the response as a run would, so that none can any more, and removes it. False: a run has it, or that is not known.
 * The queued response then tells its client what became of it.
 */
async function withdrawUnlessRunning(ports: ChatPorts, head: ResponseHead): Promise<boolean> {
  const { account, id } = head;
  const { clock, log, stored } = ports;
  try {
    const until = Math.floor(clock.now() / 1000);
    const claim = { account, id, run: nameWithdrawnRun(id) };
    if (!(await retry(ports, () => stored.runs.claim(claim, until)))) return false;
    await withdraw(ports, head);
    return true;
  } catch (error) {
    log.fault(id, error);
    return false;
  }
}

function buildQueuedResponse(
  call: ChatCall,
  { read, body, conversation }: AcceptInput,
  nowMs: number,
): StoredResponse {
  const accepted = buildAcceptedCall(call, { body, nowMs });
  const whole = renderQueued(call.identity, read);
  const input = read.storage?.input(call.identity.requestId) ?? [];
  const head = headOf(call, { conversation, status: 'queued', input, whole });
  const streamed = isRecord(body) && body['stream'] === true;
  const until = Math.ceil(accepted.untilMs / 1000);
  return {
    head: { ...head, background: { streamed, until } },
    body: { input, response: whole, call: { ...accepted } },
  };
}

/** The response as its client gets it now. */
export function renderQueued(identity: ChatCall['identity'], read: EndpointRequest): JsonRecord {
  const renderer = read.renderer(identity, {
    now: () => identity.created,
    usage: () => ({ prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 }),
    sent: () => ({ dropped: [] }),
    sealedState: () => undefined,
    stored: () => true,
    opaqueParts: () => 0,
  });
  return renderer.queued?.() ?? renderer.whole?.() ?? {};
}
