/**
 * Every call from request to log line, of a client or of a background run:
 *
 *     read ------ refused -----------------------------> line, refusal
 *       |         money and limits first, as far as they are known, then the body
 *     claim ----- the Idempotency-Key has an answer ---> that answer
 *       |
 *     reserve --- refused; the claim is released ------> line, refusal
 *       |     --- then the states of earlier turns are opened
 *       |     --- background; its run reserves ---------> the queued response
 *     search      takes 3 s at most, and never fails
 *       |
 *     dispatch -> answer     state, stored answer and result are kept, then the last text is sent
 *       |
 *     settle -> claim, health, what was kept -> line
 *
 * Must never leave a reservation or a claim open, whatever throws.
 */
import { costsNothing, flagText, isImplausible } from '../billing/usage.ts';
import type { Counting, Endpoint } from '../endpoints/endpoint.ts';
import type { ErrorObject } from '../wire/invalid-request.ts';
import { beginAnswer, type Answer, type AnswerParts } from './answer/answer.ts';
import type { ChatCall, DispatchedCall, ServingModel } from './call/call.ts';
import type { Claimed, HeldKey } from './idempotency.ts';
import {
  checkedCall,
  mayHaveStates,
  readRequest,
  type CallFacts,
  type Caller,
  type CheckedCall,
  type ReadCall,
  type RefusedCall,
  type ReadParts,
} from './read-call.ts';
import { callTo, ServingChannels } from './call/serving-channels.ts';
import { WorkBudget } from './call/work-budget.ts';
import { Dispatch } from './dispatch/dispatch.ts';
import { HealthRecorder } from './health/health-recorder.ts';
import { type Handle, type RelayRequest, type RelayResponse, responsesPrefix } from './http/http.ts';
import { asRefusal, refusalResponse } from './http/refusal.ts';
import { Admission } from './money/admission.ts';
import { Bill, servingFacts, type BillReport } from './money/bill.ts';
import { Reservations } from './money/reservations.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import type { TurnStates } from './state/turn-states.ts';
import type { Clock } from './ports/host.ts';
import { RequestLogger, type RefusedFacts } from './request-log.ts';
import type { SearchedRequest } from './search.ts';

/** Where a call comes from and goes to: a client's request, or a background run. */
export interface Edge {
  requestId: string;
  /** Never rejects. */
  read(): Promise<ReadCall>;
  /** Throws a Refusal, an InvalidRequest or StoreUnavailable; so does `reserve`, and nothing then stays reserved. */
  claim(checked: CheckedCall): Promise<Claimed | { held: undefined }>;
  reserve(checked: CheckedCall, claim: HeldKey | undefined): Promise<Reserved>;
  /** Who keeps the answer. */
  recorder(held: HeldCall): Promise<AnswerParts['recorder']>;
  /** Nobody waits for the status, and every failure is to be rendered. */
  commitsAtOnce: boolean;
  /** What an answer is made of that may be stopped before its end. Absent: the call as it is dispatched. */
  stoppable?(dispatched: DispatchedCall, call: ChatCall): DispatchedCall;
  startedMs: number;
  /** What the line of a refusal says of the call, whatever was read by then. Absent: what was read. */
  refusedFacts?: Pick<RefusedFacts, 'key' | 'model' | 'droppedTools'>;
  /** Keeps a refusal for those who ask later. Never rejects. */
  refused?(error: ErrorObject): Promise<void>;
}

/** A call that may be sent to an upstream: what it costs is reserved. */
export interface HeldCall extends CheckedCall {
  bill: Bill;
}

/** `answered`: a run will reserve for the call, or nothing will. */
type Reserved = HeldCall | { answered: RelayResponse };

/** What a function keeps over its calls. */
export interface RelayParts extends ReadParts {
  reservations: Reservations;
  health: HealthRecorder;
  logger: RequestLogger;
}

export function relayOf(ports: ChatPorts, endpoint: Endpoint): RelayParts {
  const reservations = new Reservations(ports);
  return {
    ports,
    endpoint,
    reservations,
    admission: new Admission(reservations),
    health: new HealthRecorder(ports),
    logger: new RequestLogger(ports),
    channels: new ServingChannels(),
  };
}

/** Never rejects: every error becomes a response and a log line. */
export async function relayed(relay: RelayParts, edge: Edge): Promise<RelayResponse> {
  const read = await edge.read();
  if ('error' in read) return turnedAway(relay, edge, read);
  const { checked } = read;
  try {
    const claim = await edge.claim(checked);
    if ('repeated' in claim) return claim.repeated;
    try {
      return await paid(relay, edge, checked, claim.held);
    } catch (error) {
      await claim.held?.finish(true);
      throw error;
    }
  } catch (error) {
    return turnedAway(relay, edge, { error, caller: checked.source.caller, asked: checked });
  }
}

/** When it throws, nothing is reserved any more. Else the end of the answer closes what the call holds. */
async function paid(
  relay: RelayParts,
  edge: Edge,
  checked: CheckedCall,
  claim: HeldKey | undefined,
): Promise<RelayResponse> {
  const held = await edge.reserve(checked, claim);
  if ('answered' in held) return held.answered;
  const { call, bill } = held;
  let searched: SearchedRequest | undefined;
  let answer: Answer;
  try {
    if (call.model.web) searched = await (await import('./search.ts')).withSearch(relay.ports, call);
    answer = await begun(relay, edge, { ...held, claim, searched });
  } catch (error) {
    await bill.cancel(searched?.isBilled);
    throw error;
  }
  const done = ended(relay, { ...held, claim, answer });
  return { ...(await answer.response()), done };
}

/** Begins to answer. */
async function begun(
  { ports, endpoint, health }: RelayParts,
  edge: Edge,
  held: HeldCall & { claim: HeldKey | undefined; searched: SearchedRequest | undefined },
): Promise<Answer> {
  const { call, read, bill, claim, searched } = held;
  const dispatched = new Dispatch(ports, { call, searched, health });
  const dispatch = edge.stoppable?.(dispatched, call) ?? dispatched;
  const recorder = await edge.recorder(held);
  const { commitsAtOnce } = edge;
  return beginAnswer(ports, call, {
    read,
    dispatch,
    bill,
    claim,
    recorder,
    commitsAtOnce,
    form: endpoint,
  });
}

/**
 * A longer answer (UTF-16 code units) is closed after it was handed over. Until then it counts among its account's calls
 * at once: it fills what buffers there are, and then the host waits with it for a client that takes nothing. Of a
 * shorter one the close waits for no client: it is on its way as the last text is.
 */
const closedFirstLengthMax = 256 * 1024;
/** Time after the request's deadline in which the rest of an answer is handed over. Less than what the host keeps. */
const handOverMs = 3_000;

interface Ending {
  call: ChatCall;
  bill: Bill;
  claim: HeldKey | undefined;
  answer: Answer;
}

/** What ends a call, in this order; none skips another when one fails. Never rejects. */
async function ended({ ports, logger }: RelayParts, { call, bill, claim, answer }: Ending): Promise<void> {
  const { clock, log } = ports;
  const { requestId } = call.identity;
  const fault = (error: unknown): void => log.fault(requestId, error);
  // Its last text is on its way, and what was to be kept of it is kept.
  const ending = await answer.ended;
  const { report, outcome, measure, length, firstMs, end, status, refusal } = ending;
  const { model: answered, channel } = report;
  if (length > closedFirstLengthMax) await answer.delivery.handOver(call.deadlineMs);
  // The charge first: who repeats the request meets a call that runs until its charge is written.
  const serving = servingFacts(report, answered, outcome.usage);
  const tier = report.sent.serviceTier;
  const { isSearchBilled } = report;
  const closing = { outcome, flag: flagText(measure.flags), end, answered, tier, serving, isSearchBilled };
  const closed = bill.close(closing);
  const billed: BillReport = await closed.catch((error: unknown) => (fault(error), {}));
  if (billed.exceeded !== undefined)
    log.event('charged_above_reserve', {
      request_id: requestId,
      account: call.key.account,
      model: answered,
      channel: channel?.id,
      reserved: billed.exceeded,
      charge: billed.charge,
    });
  // Nothing of these depends on another: the claim, the health of channels, and what the answer left to be written.
  const ends = await Promise.allSettled([claim?.finish(costsNothing(outcome)), ...answer.writes()]);
  for (const one of ends) if (one.status === 'rejected') fault(one.reason);
  const isExpected = channel?.params.include_usage !== false;
  const implausible = !costsNothing(outcome) && isImplausible(measure.flags, isExpected);
  const durationMs = clock.now() - call.startedMs;
  const logged = logger.answered({
    call: callTo(call, answered),
    report,
    billed,
    measure: { ...measure, implausible },
    ending: { status, end, refusal, durationMs },
    reserved: bill.reserved,
    heard: { length, firstMs },
  });
  // The invocation waits for its client, and nothing of the call does.
  if (answer.committed) {
    await answer.delivery.handOver(call.deadlineMs + handOverMs);
    answer.delivery.cut('deadline');
  }
  await logged;
}

/** The answer and the line of a call that is refused. */
function turnedAway(relay: RelayParts, edge: Edge, { error, caller, asked }: RefusedCall): RelayResponse {
  const { ports, endpoint, reservations, logger } = relay;
  const { requestId, startedMs, refusedFacts } = edge;
  const refusal = asRefusal(error);
  if (refusal.body.error.code === 'internal') ports.log.fault(requestId, error);
  const facts = {
    requestId,
    endpoint: endpoint.name,
    key: caller?.key,
    model: asked?.model.base,
    attribution: asked?.attribution,
    droppedTools: asked?.read.droppedTools,
    durationMs: ports.clock.now() - startedMs,
    refusal,
    ...refusedFacts,
  };
  const kept = edge.refused?.(refusal.body.error) ?? Promise.resolve();
  const done = Promise.all([logger.refused(facts), reservations.cancelled(requestId), kept]).then(() => {});
  return { ...refusalResponse(refusal, requestId, endpoint), done };
}

/** A call as it is sent: with the states of its earlier turns, and the limits that the balance pays. */
export const heldCall = (checked: CheckedCall, { bill, turns }: Held): HeldCall => {
  const { call } = checked;
  const { alias } = call;
  const limitOf = (model: string): number | undefined =>
    bill.outputTokensLimit(model) ?? call.outputTokensAsked;
  const limited = (one: ServingModel): ServingModel => ({ ...one, outputTokensLimit: limitOf(one.model) });
  const [first, ...rest] = alias?.models ?? [];
  const paidCall: ChatCall = Object.freeze({
    ...call,
    ...(turns && { states: turns.states, stateDropped: turns.dropped }),
    ...(alias && first && { alias: { ...alias, models: [limited(first), ...rest.map(limited)] as const } }),
    outputTokensLimit: limitOf(call.model.base),
    limitedBy: bill.limitedBy,
  });
  return { ...checked, call: paidCall, bill };
};

/** `turns`: the states of earlier turns. Undefined: none can have one. */
interface Held {
  bill: Bill;
  turns: TurnStates | undefined;
}

/** What a reserve returns, with the states of the call's earlier turns. Throws what `reserveThenOpen` throws. */
export async function withStates(
  ports: ChatPorts,
  checked: CheckedCall,
  reserve: () => Promise<Bill>,
): Promise<Held> {
  if (!mayHaveStates(checked)) return { bill: await reserve(), turns: undefined };
  const { reserveThenOpen } = await import('./state/turn-states.ts');
  return reserveThenOpen(ports, checked, reserve);
}

/** Answers the clients of an endpoint, and of others in the same function. Of one that stores it also serves the paths of what is stored. */
export function answerWith(ports: ChatPorts, first: Endpoint, ...others: Endpoint[]): Handle {
  const kept = relayOf(ports, first);
  return async (request) => {
    const endpoint = others.find(({ path }) => path === request.path) ?? first;
    const relay = { ...kept, endpoint };
    const { counting, compacting, storing } = endpoint;
    const isCompacted = request.path === compacting?.path;
    const isOwn = isCompacted || request.path === counting?.path;
    if (storing && request.path.startsWith(responsesPrefix) && !isOwn) {
      const { storedHandle } = await import('./stored/routes.ts');
      return storedHandle(ports)(request);
    }
    const over = new AbortController();
    const asked = isCompacted ? { ...relay, endpoint: { ...endpoint, ...compacting } } : relay;
    const edge =
      request.path === counting?.path
        ? countingEdge(relay, counting, { request, over: over.signal })
        : clientEdge(asked, request, over.signal);
    const response = await relayed(asked, edge);
    // Without a reason of ours, each abort makes a DOMException with a stack.
    return { ...response, done: response.done.finally(() => over.abort('over')) };
  };
}

/** Lambda kills at its time-out without notice: fail in-protocol 5 s earlier. */
const hostReserveMs = 5_000;

/** @param over aborts when the call is over */
function clientEdge(relay: RelayParts, request: RelayRequest, over: AbortSignal): Edge {
  const { ports } = relay;
  const { clock, concurrencyGiven } = ports;
  const startedMs = clock.now();
  const { id: requestId, hostDeadlineMs, hostEnds } = request;
  const factsOf = ({ snapshot }: Caller): CallFacts => {
    const ownMs = startedMs + snapshot.settings.limits.requestSeconds * 1000;
    const deadlineMs = Math.min(ownMs, hostDeadlineMs - hostReserveMs);
    const signal = deadlineSignal(clock, { deadlineMs, hostEnds, over });
    const work = new WorkBudget();
    return { requestId, work, entry: entryOf(request), concurrencyGiven, startedMs, deadlineMs, signal };
  };
  return {
    requestId,
    startedMs,
    commitsAtOnce: false,
    read: () => readRequest(relay, request, factsOf),
    claim: async (checked) => {
      const header = request.headers['idempotency-key'];
      if (header === undefined) return { held: undefined };
      const { claimed } = await import('./idempotency.ts');
      return claimed(ports, checked, { header, request });
    },
    reserve: (checked, claim) => reserved(relay, request, checked, claim),
    recorder: async ({ call, conversation, read: { storage } }) => {
      if (!storage) return undefined;
      const { KeptAnswer } = await import('./stored/kept-answer.ts');
      const kept = { ...ports, responses: ports.stored.responses };
      return (seal) => new KeptAnswer(kept, { call, storage, conversation, seal });
    },
  };
}

/** A call whose input alone is looked at: it is answered in the place of its reserve. */
function countingEdge(
  relay: RelayParts,
  counting: Counting,
  { request, over }: { request: RelayRequest; over: AbortSignal },
): Edge {
  const { read } = counting;
  const counted = { ...relay, endpoint: { ...relay.endpoint, read } };
  return {
    ...clientEdge(counted, request, over),
    claim: () => Promise.resolve({ held: undefined }),
    reserve: async (checked) => {
      const { countTokens } = await import('./count-tokens.ts');
      const whole = async (): Promise<CheckedCall> => {
        if (checked.read.unread) await relay.admission.prove(checked.call);
        return withConversation(counted, request, checked);
      };
      return { answered: await countTokens(relay, counting, checked, whole) };
    },
  };
}

const entryOf = ({ baseUrl, hops }: RelayRequest): ChatCall['entry'] =>
  hops === undefined ? undefined : Object.freeze({ host: new URL(baseUrl).host, hops });

/** Aborts at a given time, or when its host ends, unless the call is over first. */
function deadlineSignal(
  clock: Clock,
  {
    deadlineMs,
    hostEnds,
    over,
  }: { deadlineMs: number; hostEnds: AbortSignal | undefined; over: AbortSignal },
): AbortSignal {
  const abort = new AbortController();
  if (hostEnds?.aborted) abort.abort();
  hostEnds?.addEventListener('abort', () => abort.abort(), { signal: over });
  void clock.sleep(Math.max(0, deadlineMs - clock.now()), over).then(() => {
    if (!over.aborted) abort.abort();
  });
  return abort.signal;
}

/** Counts the call in its key's minute, reads what it goes on from, reserves within the limits, and opens the states that came back. */
async function reserved(
  relay: RelayParts,
  request: RelayRequest,
  checked: CheckedCall,
  claim: HeldKey | undefined,
): Promise<Reserved> {
  const { ports, reservations, admission } = relay;
  const { call, source } = checked;
  const billing = { ...ports, inflate: source.facts.work.inflating(ports.inflate) };
  const admitted = await Bill.admit(reservations, billing, call, () => admission.prove(call));
  if (checked.read.unread) await admitted.prove();
  const whole = await withConversation(relay, request, checked);
  if (!checked.read.storage?.background)
    return heldCall(whole, await withStates(ports, whole, () => admitted.open(whole.call)));
  const { accept } = await import('./stored/accept.ts');
  const prove = async (): Promise<Record<string, string>> => {
    const headers = await admitted.proveWhole(whole.call);
    if (mayHaveStates(whole)) (await import('./state/turn-states.ts')).statesOf(ports, whole);
    return headers;
  };
  return { answered: await accept(ports, prove, { ...whole, claim, request }) };
}

/** A call that refers to stored responses is read and checked again with them. */
async function withConversation(
  relay: RelayParts,
  request: RelayRequest,
  checked: CheckedCall,
): Promise<CheckedCall> {
  const { unread } = checked.read;
  if (!unread) return checked;
  const { work } = checked.source.facts;
  const { conversationBefore } = await import('./stored/conversation.ts');
  const conversation = await conversationBefore(relay.ports, checked.call, { unread, request, work });
  return orThrow(await checkedCall(relay, checked.source, conversation));
}

export function orThrow(read: ReadCall): CheckedCall {
  if ('error' in read) throw read.error;
  return read.checked;
}
