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
import { costsNothing, formatFlags, isImplausible } from '../billing/usage.ts';
import type { Counting, Endpoint } from '../endpoints/endpoint.ts';
import type { ErrorObject } from '../wire/invalid-request.ts';
import { createAnswer, type Answer, type AnswerInput, type AnswerReport } from './answer/answer.ts';
import type { ChatCall, DispatchedCall, DispatchReport, ServingModel } from './call/call.ts';
import type { Claimed, IdempotencyClaim } from './idempotency.ts';
import {
  checkCall,
  mayHaveStates,
  readCall,
  type CallFacts,
  type Caller,
  type CheckedCall,
  type ReadCall,
  type RefusedCall,
  type ReadDeps,
} from './read-call.ts';
import { callTo, ServingChannels } from './call/serving-channels.ts';
import { WorkBudget, Admission } from './money/admission.ts';
import { Dispatch } from './dispatch/dispatch.ts';
import { WordTally } from './dispatch/word-tally.ts';
import { HealthRecorder } from './health/health-recorder.ts';
import { type Handle, type RelayRequest, type RelayResponse, responsesPrefix } from './http/http.ts';
import { respondRefusal } from './http/refusal.ts';
import { admitCall, describeServing, type Bill, type BillReport } from './money/bill.ts';
import { Reservations } from './money/reservations.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import type { TurnStates } from './state/turn-states.ts';
import type { Clock } from './ports/host.ts';
import { RequestLogger, type RefusedFacts } from './request-log.ts';
import type { SearchedRequest } from './search.ts';

/** How the calls of a client, and those of a background run, differ. */
export interface Edge {
  requestId: string;
  startedMs: number;
  /** Never rejects. */
  readCall(): Promise<ReadCall>;
  /** Throws a Refusal, an InvalidRequest or StoreUnavailable; so does `reserve`, and nothing then stays reserved. */
  claimIdempotencyKey(checked: CheckedCall): Promise<Claimed>;
  reserve(checked: CheckedCall, claim: IdempotencyClaim | undefined): Promise<Reserved | RefusedCall>;
  createRecorder(reserved: ReservedCall): Promise<AnswerInput['recorder']>;
  /** No client waits for the status, and every failure must be rendered. */
  commitsAtOnce: boolean;
  /** Lets a call be stopped before its end, if that may happen. */
  makeStoppable?(dispatched: DispatchedCall, call: ChatCall): DispatchedCall;
  /** For the line of a refusal, in place of what was read of the call by then. */
  refusedFacts?: Pick<RefusedFacts, 'key' | 'model' | 'droppedTools'>;
  /** Stores a refusal for those who ask later. Never rejects. */
  storeRefusal?(error: ErrorObject): Promise<void>;
}

/** A call that may be sent to an upstream. */
export interface ReservedCall extends CheckedCall {
  bill: Bill;
}

/** `answered`: the call needs no upstream now. */
type Reserved = ReservedCall | { answered: RelayResponse };

/** Kept by an endpoint from call to call. */
export interface RelayDeps extends ReadDeps {
  reservations: Reservations;
  health: HealthRecorder;
  words: WordTally;
  logger: RequestLogger;
}

export function createRelay(ports: ChatPorts, endpoint: Endpoint): RelayDeps {
  const reservations = new Reservations(ports);
  return {
    ports,
    endpoint,
    reservations,
    admission: new Admission(reservations),
    health: new HealthRecorder(ports),
    words: new WordTally(ports),
    logger: new RequestLogger(ports),
    channels: new ServingChannels(),
  };
}

/** Never rejects: every error becomes a response and a log line. */
export async function handleCall(relay: RelayDeps, edge: Edge): Promise<RelayResponse> {
  const read = await edge.readCall();
  if ('refusal' in read) return refuseCall(relay, edge, read);
  const { checked } = read;
  let claim: IdempotencyClaim | undefined;
  let bill: Bill | undefined;
  let searched: SearchedRequest | undefined;
  let running: RunningCall;
  try {
    const claimed = await edge.claimIdempotencyKey(checked);
    if (claimed && 'repeated' in claimed) return claimed.repeated;
    claim = claimed;
    const reserved = await edge.reserve(checked, claim);
    if ('answered' in reserved) return reserved.answered;
    if ('refusal' in reserved) {
      await claim?.finish(true);
      return await refuseCall(relay, edge, { caller: checked.source.caller, asked: checked, ...reserved });
    }
    ({ bill } = reserved);
    if (reserved.call.model.web) searched = await searchFor(relay, reserved.call);
    const answer = await startAnswer(relay, edge, { ...reserved, claim, searched });
    running = { ...reserved, claim, answer, ended: answer.stream() };
  } catch (error) {
    await bill?.cancel(searched?.isBilled);
    await claim?.finish(true);
    const { caller } = checked.source;
    return refuseCall(relay, edge, { refusal: { reason: 'fault', error }, caller, asked: checked });
  }
  const done = settleThenLog(relay, running);
  return { ...(await running.answer.respond()), done };
}

const searchFor = async ({ ports }: RelayDeps, call: ChatCall): Promise<SearchedRequest> =>
  (await import('./search.ts')).searchForCall(ports, call);

interface RunningCall extends ReservedCall {
  claim: IdempotencyClaim | undefined;
  answer: Answer;
  /** Resolves when the last text is on its way, and what is to be stored of it is stored. Never rejects. */
  ended: Promise<AnswerReport>;
}

/** Dispatches the call, and prepares its answer. */
async function startAnswer(
  { ports, endpoint, health, words }: RelayDeps,
  edge: Edge,
  reserved: ReservedCall & Pick<RunningCall, 'claim'> & { searched: SearchedRequest | undefined },
): Promise<Answer> {
  const { call, read, bill, claim, searched } = reserved;
  const dispatched = new Dispatch(ports, { call, searched, health, words });
  const dispatch = edge.makeStoppable?.(dispatched, call) ?? dispatched;
  const recorder = await edge.createRecorder(reserved);
  const { commitsAtOnce } = edge;
  return createAnswer(ports, call, { read, dispatch, bill, claim, recorder, commitsAtOnce, form: endpoint });
}

/**
 * A longer answer (UTF-16 code units) is settled after it was handed over. Until then it counts among its account's calls
 * at once: it fills what buffers there are, and then the host waits with it for a client that takes nothing. Of a
 * shorter one the settle waits for no client: it is on its way as the last text is.
 */
const settledFirstLengthMax = 256 * 1024;
/** Time after the request's deadline in which the remainder of an answer is handed over. Less than what the host keeps. */
const handOverMs = 3_000;

/** Ends a call, in this order; no step skips another when it fails. Never rejects. */
async function settleThenLog({ ports, logger }: RelayDeps, running: RunningCall): Promise<void> {
  const { clock, log } = ports;
  const { call, bill, claim, answer } = running;
  const logFault = (error: unknown): void => log.fault(call.identity.requestId, error);
  const ended = await running.ended;
  const { report, outcome, measure, length, firstMs, end, status, refusal } = ended;
  if (length > settledFirstLengthMax) await answer.delivery.awaitHandOver(call.deadlineMs);
  // The charge first: who repeats the request meets a call that runs until its charge is written.
  const settled = await settle(bill, ended, call.startedMs).catch(
    (error: unknown): BillReport => (logFault(error), {}),
  );
  logExcess(log, call, { report, settled });
  // These writes are independent: the claim, the health of channels, and the writes that the answer left behind.
  const writes = await Promise.allSettled([claim?.finish(costsNothing(outcome)), ...answer.listWrites()]);
  for (const write of writes) if (write.status === 'rejected') logFault(write.reason);
  const reportsUsage = report.channel?.params.include_usage !== false;
  const implausible = !costsNothing(outcome) && isImplausible(measure.flags, reportsUsage);
  const logged = logger.logAnswer({
    call: callTo(call, report.model),
    report,
    billed: settled,
    measure: { ...measure, implausible },
    ending: { status, end, refusal, durationMs: clock.now() - call.startedMs },
    reserved: bill.reserved,
    heard: { length, firstMs },
  });
  // The invocation waits for its client, and nothing of the call does.
  if (answer.committed) {
    await answer.delivery.awaitHandOver(call.deadlineMs + handOverMs);
    answer.delivery.cut('deadline');
  }
  await logged;
}

function settle(
  bill: Bill,
  { report, outcome, measure, end }: AnswerReport,
  startedMs: number,
): Promise<BillReport> {
  const { model: answered, sent, isSearchBilled } = report;
  const serving = describeServing(report, answered, outcome.usage, startedMs);
  const flag = formatFlags(measure.flags);
  return bill.close({ outcome, flag, end, answered, tier: sent.serviceTier, serving, isSearchBilled });
}

function logExcess(
  log: ChatPorts['log'],
  { identity, key }: ChatCall,
  { report, settled }: { report: DispatchReport; settled: BillReport },
): void {
  if (settled.exceeded === undefined) return;
  log.event('charged_above_reserve', {
    request_id: identity.requestId,
    account: key.account,
    model: report.model,
    channel: report.channel?.id,
    reserved: settled.exceeded,
    charge: settled.charge,
  });
}

/** The answer and the line of a call that is refused. */
async function refuseCall(
  relay: RelayDeps,
  edge: Edge,
  { refusal: refused, caller, asked }: RefusedCall,
): Promise<RelayResponse> {
  const { ports, endpoint, reservations, logger } = relay;
  const { requestId, startedMs, refusedFacts } = edge;
  const { explainRefusal } = await import('./call/call-refusals.ts');
  const refusal = explainRefusal(refused);
  if (refused.reason === 'fault' && refusal.body.error.code === 'internal')
    ports.log.fault(requestId, refused.error);
  const response = respondRefusal(refusal, requestId, endpoint);
  const facts = {
    requestId,
    endpoint: endpoint.name,
    status: response.status,
    key: caller?.key,
    model: asked?.model.base,
    attribution: asked?.attribution,
    droppedTools: asked?.read.droppedTools,
    durationMs: ports.clock.now() - startedMs,
    refusal,
    ...refusedFacts,
  };
  const stored = edge.storeRefusal?.(refusal.body.error);
  const done = Promise.all([logger.logRefusal(facts), reservations.awaitCancel(requestId), stored]).then(
    () => {},
  );
  return { ...response, done };
}

/** A call as it is sent: with the states of its earlier turns, and the limits that the balance pays. */
export const applyLimits = (checked: CheckedCall, { bill, turns }: ReservedWithStates): ReservedCall => {
  const { call } = checked;
  const { alias } = call;
  const limitOf = (model: string): number | undefined =>
    bill.limitOutputTokens(model) ?? call.outputTokensAsked;
  const limitModel = (one: ServingModel): ServingModel => ({ ...one, outputTokensLimit: limitOf(one.model) });
  const [first, ...others] = alias?.models ?? [];
  const paidCall: ChatCall = Object.freeze({
    ...call,
    ...(turns && { states: turns.states, stateDropped: turns.dropped }),
    ...(alias &&
      first && { alias: { ...alias, models: [limitModel(first), ...others.map(limitModel)] as const } }),
    outputTokensLimit: limitOf(call.model.base),
    limitedBy: bill.limitedBy,
  });
  return { ...checked, call: paidCall, bill };
};

interface ReservedWithStates {
  bill: Bill;
  turns: TurnStates | undefined;
}

/** Reserves, and opens the states of the call's earlier turns. Throws what `reserveThenOpenStates` throws. */
export async function reserveWithStates(
  ports: ChatPorts,
  checked: CheckedCall,
  reserve: () => Promise<Bill>,
): Promise<ReservedWithStates> {
  if (!mayHaveStates(checked)) return { bill: await reserve(), turns: undefined };
  const { reserveThenOpenStates } = await import('./state/turn-states.ts');
  return reserveThenOpenStates(ports, checked, reserve);
}

/** Answers the clients of an endpoint, and of others in the same function. Of one that stores it also serves the paths of what is stored. */
export function answerWith(ports: ChatPorts, first: Endpoint, ...others: Endpoint[]): Handle {
  const kept = createRelay(ports, first);
  return async (request) => {
    const endpoint = others.find(({ path }) => path === request.path) ?? first;
    const relay = { ...kept, endpoint };
    const { counting, compacting, storing } = endpoint;
    const isCompacted = request.path === compacting?.path;
    const isOwn = isCompacted || request.path === counting?.path;
    if (storing && request.path.startsWith(responsesPrefix) && !isOwn) {
      const { createStoredHandle } = await import('./stored/routes.ts');
      return createStoredHandle(ports)(request);
    }
    const over = new AbortController();
    const asked = isCompacted ? { ...relay, endpoint: { ...endpoint, ...compacting } } : relay;
    const edge =
      request.path === counting?.path
        ? createCountingEdge(relay, counting, { request, over: over.signal })
        : createClientEdge(asked, request, over.signal);
    const response = await handleCall(asked, edge);
    // Without a reason of ours, each abort makes a DOMException with a stack.
    return { ...response, done: response.done.finally(() => over.abort('over')) };
  };
}

/** Lambda kills at its time-out without notice: fail in-protocol 5 s earlier. */
const hostReserveMs = 5_000;

/** @param over aborts when the call is over */
function createClientEdge(relay: RelayDeps, request: RelayRequest, over: AbortSignal): Edge {
  const { ports } = relay;
  const { clock, concurrencyGiven } = ports;
  const startedMs = clock.now();
  const { id: requestId, hostDeadlineMs, hostEnds } = request;
  const factsOf = ({ snapshot }: Caller): CallFacts => {
    const ownMs = startedMs + snapshot.settings.limits.requestSeconds * 1000;
    const deadlineMs = Math.min(ownMs, hostDeadlineMs - hostReserveMs);
    const signal = createDeadlineSignal(clock, { deadlineMs, hostEnds, over });
    const work = new WorkBudget();
    return { requestId, work, entry: entryOf(request), concurrencyGiven, startedMs, deadlineMs, signal };
  };
  return {
    requestId,
    startedMs,
    commitsAtOnce: false,
    readCall: () => readCall(relay, request, factsOf),
    claimIdempotencyKey: async (checked) => {
      const header = request.headers['idempotency-key'];
      if (header === undefined) return undefined;
      const { claimIdempotencyKey } = await import('./idempotency.ts');
      return claimIdempotencyKey(ports, checked, { header, request });
    },
    reserve: (checked, claim) => reserveForClient(relay, request, checked, claim),
    createRecorder: async ({ call, conversation, read: { storage } }) => {
      if (!storage) return undefined;
      const { KeptAnswer } = await import('./stored/kept-answer.ts');
      const kept = { ...ports, responses: ports.stored.responses };
      return (seal) => new KeptAnswer(kept, { call, storage, conversation, seal });
    },
  };
}

/** A call whose input alone is looked at: it is answered in the place of its reserve. */
function createCountingEdge(
  relay: RelayDeps,
  counting: Counting,
  { request, over }: { request: RelayRequest; over: AbortSignal },
): Edge {
  const { read } = counting;
  const counted = { ...relay, endpoint: { ...relay.endpoint, read } };
  return {
    ...createClientEdge(counted, request, over),
    claimIdempotencyKey: () => Promise.resolve(undefined),
    reserve: async (checked) => {
      const { countTokens } = await import('./count-tokens.ts');
      const readAll = async (): Promise<ReadCall> => {
        if (checked.read.unread) await relay.admission.prove(checked.call);
        return readConversation(counted, request, checked);
      };
      return countTokens(relay, counting, checked, readAll);
    },
  };
}

const entryOf = ({ baseUrl, hops }: RelayRequest): ChatCall['entry'] =>
  hops === undefined ? undefined : Object.freeze({ host: new URL(baseUrl).host, hops });

/** Aborts at a given time, or when its host ends, unless the call is over first. */
function createDeadlineSignal(
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
async function reserveForClient(
  relay: RelayDeps,
  request: RelayRequest,
  checked: CheckedCall,
  claim: IdempotencyClaim | undefined,
): Promise<Reserved | RefusedCall> {
  const { ports, reservations, admission } = relay;
  const { call, source } = checked;
  const billing = { ...ports, inflate: source.facts.work.limitInflate(ports.inflate) };
  const admitted = await admitCall(reservations, billing, call, () => admission.prove(call));
  if (checked.read.unread) await admitted.prove();
  const read = await readConversation(relay, request, checked);
  if ('refusal' in read) return { refusal: read.refusal };
  const whole = read.checked;
  if (!whole.read.storage?.background)
    return applyLimits(whole, await reserveWithStates(ports, whole, () => admitted.reserve(whole.call)));
  const { acceptCall } = await import('./stored/accept.ts');
  const prove = async (): Promise<Record<string, string>> => {
    const headers = await admitted.proveWhole(whole.call);
    if (mayHaveStates(whole)) (await import('./state/turn-states.ts')).statesOf(ports, whole);
    return headers;
  };
  return acceptCall(ports, prove, { ...whole, claim, request });
}

/** A call that refers to stored responses is read and checked again with them. */
async function readConversation(
  relay: RelayDeps,
  request: RelayRequest,
  checked: CheckedCall,
): Promise<ReadCall> {
  const { unread } = checked.read;
  if (!unread) return { checked };
  const { work } = checked.source.facts;
  const { readConversationBefore } = await import('./stored/conversation.ts');
  const conversation = await readConversationBefore(relay.ports, checked.call, { unread, request, work });
  return checkCall(relay, checked.source, conversation);
}
