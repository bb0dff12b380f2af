/** Handles every request of an endpoint: the checks in order, the answer, and the log line of a refusal. */
import type { Endpoint, EndpointRequest, Renderer } from '../endpoints/endpoint.ts';
import { RequestLogger } from './answer/log-line.ts';
import type {
  ChatCall,
  NamedModels,
  CalledAlias,
  ServingModel,
  DispatchedCall,
  Candidate,
} from './call/call.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import { ServingChannels, capableOf } from './call/serving-channels.ts';
import { HealthRecorder } from './health/health-recorder.ts';
import type { Handle, RelayRequest, RelayResponse } from './http/http.ts';
import { responsesPrefix, matchRoute } from './http/http-routes.ts';
import { asRefusal, refusalResponse } from './http/refusal.ts';
import { Reservations } from './money/reservations.ts';
import type { Clock } from './ports/host.ts';
import type { Conversation } from './stored/conversation.ts';
import type { Snapshot } from '../config/snapshot.ts';
import { Answer, type AnswerRecorder } from './answer/answer.ts';
import type * as StopCutting from './answer/stop-cut.ts';
import {
  admitModel,
  aliasOf,
  allowedModels,
  lookUpKey,
  relayClosed,
  type AdmittedKey,
  parseModelName,
  type ModelName,
} from './call/access.ts';
import type { HeldKey } from './call/idempotency.ts';
import { Dispatch } from './dispatch/dispatch.ts';
import type { KeptAnswerParts } from './stored/kept-answer.ts';
import { mayStore } from './stored/may-store.ts';
import { Bill } from './money/bill.ts';
import { refusalAgeMsMax } from './ports/config-store.ts';
import type * as StateRecording from './state/kept-states.ts';
import type { LookingCall, StatePorts } from './state/kept-states.ts';
import { quirksOf } from '../upstreams/types/channel-quirks.ts';
import { bareTurns, openSeals, type TurnStates } from './state/turn-states.ts';

/** Lambda kills at its time-out without notice: fail in-protocol 5 s earlier. */
const hostReserveMs = 5_000;

/**
 * Returns a handle that never rejects: every error becomes a response and a log line. Of an endpoint that stores it also
 * serves the paths of what is stored.
 */
export function answerWith(ports: ChatPorts, endpoint: Endpoint): Handle {
  const reservations = new Reservations(ports);
  const own = { reservations, health: new HealthRecorder(ports), logger: new RequestLogger(ports) };
  const channels = new ServingChannels();
  return async (request) => {
    if (endpoint.storing && request.path.startsWith(responsesPrefix)) {
      const { storedHandle } = await import('./stored/routes.ts');
      return storedHandle(ports)(request);
    }
    const startedMs = ports.clock.now();
    let caller: Caller | undefined;
    let asked: AskedCall | undefined;
    let deadline: Deadline | undefined;
    try {
      const { headers } = request;
      const read = async (by: Caller, body: unknown, conversation?: Conversation): Promise<NamedCall> => {
        asked = await readCall(endpoint, { body, headers, caller: by }, conversation);
        const named = await modelsOf(channels, { caller: by, asked, nowMs: startedMs });
        await checkContents(asked, by);
        return { caller: by, asked, named };
      };
      const check = async (): Promise<NamedCall> => {
        caller = await admitCaller(ports, endpoint, request);
        return read(caller, request.json());
      };
      const checked = await check().catch(async (error: unknown) => {
        const { hasChanged } = await import('./call/second-look.ts');
        const { authorization } = headers;
        if (await hasChanged(ports, { error, authorization, seen: caller })) return check();
        throw error;
      });
      const by = checked.caller;
      const untilMs = deadlineOf(by, request, startedMs);
      deadline = new Deadline(ports.clock, untilMs, request.hostEnds);
      const times = { startedMs, deadlineMs: untilMs, signal: deadline.signal };
      const from = { requestId: request.id, endpoint: endpoint.name, entry: entryOf(request) };
      const facts = { ...from, ...times, concurrencyGiven: ports.concurrencyGiven };
      const callWith = (named: NamedCall): CheckedCall => {
        const call = callOf(named, facts);
        return { call, asked: named.asked, states: new CallStates(ports, call, named.asked.read) };
      };
      const response = await payAndAnswer(ports, own, {
        ...callWith(checked),
        goingOn: async (conversation) => callWith(await read(by, checked.asked.body, conversation)),
        request,
        idempotencyKey: headers['idempotency-key'],
      });
      return { ...response, done: response.done.finally(() => deadline?.stop()) };
    } catch (error) {
      deadline?.stop();
      const refusal = asRefusal(error);
      if (refusal.body.error.code === 'internal') ports.log.fault(request.id, error);
      const facts = {
        requestId: request.id,
        endpoint: endpoint.name,
        key: caller?.key,
        model: asked?.model.base,
        droppedTools: asked?.read.droppedTools,
        durationMs: ports.clock.now() - startedMs,
        refusal,
      };
      const logged = own.logger.refused(facts);
      const done = reservations.cancelled(request.id).then(() => logged);
      return { ...refusalResponse(refusal, request.id), done };
    }
  };
}

interface NamedCall {
  caller: Caller;
  asked: AskedCall;
  named: NamedModels;
}

type CallFacts = { requestId: string } & Pick<
  ChatCall,
  'endpoint' | 'entry' | 'concurrencyGiven' | 'startedMs' | 'deadlineMs' | 'signal' | 'isRun'
>;

export function callOf(
  { caller, asked, named }: NamedCall,
  { requestId, startedMs, ...facts }: CallFacts,
): ChatCall {
  return Object.freeze({
    ...caller,
    identity: Object.freeze({
      requestId,
      created: Math.floor(startedMs / 1000),
      model: named.model.base,
    }),
    ...facts,
    ...asked.read.call,
    states: Object.freeze(new Map()),
    stateDropped: false,
    ...named,
    queued: asked.read.storage?.background && !facts.isRun,
    startedMs,
    outputTokensAsked: asked.read.outputTokensMax,
    droppedTools: asked.read.droppedTools,
  });
}

const entryOf = ({ baseUrl, hops }: RelayRequest): ChatCall['entry'] =>
  hops === undefined ? undefined : Object.freeze({ host: new URL(baseUrl).host, hops });

function deadlineOf({ snapshot }: Caller, request: RelayRequest, startedMs: number): number {
  const ownMs = startedMs + snapshot.settings.limits.requestSeconds * 1000;
  return Math.min(ownMs, request.hostDeadlineMs - hostReserveMs);
}

/** Aborts its signal at a given time, or when its host ends, unless it is stopped first. */
class Deadline {
  readonly #abort = new AbortController();
  readonly #stopped = new AbortController();

  constructor(clock: Clock, untilMs: number, hostEnds: AbortSignal | undefined) {
    if (hostEnds?.aborted) this.#abort.abort();
    hostEnds?.addEventListener('abort', () => this.#abort.abort(), { signal: this.#stopped.signal });
    void clock.sleep(Math.max(0, untilMs - clock.now()), this.#stopped.signal).then(() => {
      if (!this.#stopped.signal.aborted) this.#abort.abort();
    });
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  stop(): void {
    // Without a reason of ours, each abort makes a DOMException with a stack.
    this.#stopped.abort('stopped');
  }
}

// The checks of a request in order, as steps that return their results. Each throws a Refusal or an InvalidRequest.

/** The caller, and the configuration that the request uses to its end. */
export interface Caller {
  key: AdmittedKey['row'];
  account: AdmittedKey['account'];
  parts: AdmittedKey['parts'];
  snapshot: Snapshot;
}

/** The requested call, checked against the key. */
export interface AskedCall {
  body: unknown;
  /** What it goes on from. Undefined: nothing, or `read` says what is still to be read. */
  conversation: Conversation | undefined;
  read: EndpointRequest;
  model: ModelName;
}

/** Checks path and method, whether the relay is closed, and the key. */
async function admitCaller(ports: ChatPorts, endpoint: Endpoint, request: RelayRequest): Promise<Caller> {
  if (matchRoute(request) !== endpoint.name) {
    const { refuseRoute } = await import('./http/refuse-route.ts');
    throw refuseRoute(request);
  }
  const keyLookup = lookUpKey(ports, request.headers['authorization']);
  keyLookup.catch(() => {}); // Awaited below. A refusal by the configuration takes precedence.
  const { config } = ports;
  let snapshot = await config.current();
  if (snapshot.settings.relayClosed) snapshot = await config.notOlderThan(refusalAgeMsMax);
  if (snapshot.settings.relayClosed) throw relayClosed(snapshot);
  const { row, account, parts } = await keyLookup;
  return { key: row, account, parts, snapshot };
}

/** Who asks for what. */
export interface CallSource {
  body: unknown;
  headers: RelayRequest['headers'];
  caller: Caller;
}

/**
 * Checks schema, model name, official gate and whitelist. A call that refers to stored responses is read twice: by itself,
 * so that what is wrong with it is refused before the store is asked, and with the conversation that was read for it.
 */
export async function readCall(
  endpoint: Endpoint,
  { body, headers, caller }: CallSource,
  conversation?: Conversation,
): Promise<AskedCall> {
  const { storing } = endpoint;
  const reading = storing && mayStore(caller) ? await storing() : undefined;
  const read = endpoint.read(body, headers, reading && { reading, stored: conversation });
  const { model: requested, official } = read.call.request;
  const model = parseModelName(requested, official === true);
  admitModel(caller, model);
  return { body, conversation, read, model };
}

/** The models that may answer, each with its channels. Throws a Refusal or an InvalidRequest when there are none. */
export async function modelsOf(
  serving: ServingChannels,
  { caller, asked, nowMs }: { caller: Caller; asked: AskedCall; nowMs: number },
): Promise<NamedModels> {
  const { key, snapshot } = caller;
  const { model: name } = asked;
  const { request } = asked.read.call;
  const alias = aliasOf(snapshot, name.base);
  if (alias) {
    const { modelsOfAlias } = await import('./call/alias-models.ts');
    const called = { alias, name, allowed: allowedModels(key, alias), request };
    return modelsOfAlias(called, (model) => serving.find(snapshot, model, nowMs));
  }
  const served = serving.of(snapshot, name.base, nowMs);
  return { model: Object.freeze(name), ...capableOf(served, { model: name.base, request }) };
}

/** What a function keeps over its calls. */
interface FunctionState {
  reservations: Reservations;
  health: HealthRecorder;
  logger: RequestLogger;
}

/**
 * Checks the URLs in a request that has more than text, before anything is reserved: upstreams fetch them. Throws an
 * InvalidRequest.
 */
async function checkContents({ read }: AskedCall, { snapshot }: Caller): Promise<void> {
  const { request } = read.call;
  if (!request.messages.some(hasMoreThanText)) return;
  const { checkContentUrls, contentsOfChat } = await import('./call/content-urls.ts');
  checkContentUrls(read.contents?.() ?? contentsOfChat(request), snapshot.settings);
}

type Message = EndpointRequest['call']['request']['messages'][number];

const hasMoreThanText = ({ content, images }: Message): boolean =>
  (images ?? undefined) !== undefined ||
  (typeof content === 'object' &&
    content?.some(
      (part) => part.type !== 'text' || typeof part.text !== 'string' || Object.keys(part).length > 2,
    ) === true);

/** A call that passed every check of what was read for it. */
interface CheckedCall {
  call: ChatCall;
  asked: AskedCall;
  states: CallStates;
}

interface PayingCall extends CheckedCall {
  /** The same, read and checked again with what it goes on from. */
  goingOn(conversation: Conversation): Promise<CheckedCall>;
  request: RelayRequest;
  idempotencyKey: string | undefined;
}

/**
 * Claims the idempotency key, counts the call in its key's minute, reads what it goes on from, reserves within the limits,
 * and answers. The answer closes claim and reservation, however it ends.
 */
async function payAndAnswer(
  ports: ChatPorts,
  { reservations, ...own }: FunctionState,
  paying: PayingCall,
): Promise<RelayResponse> {
  const { request, idempotencyKey } = paying;
  const { storage, unread } = paying.asked.read;
  const stored = storage || unread ? await import('./stored-call.ts') : undefined;
  const keyed =
    idempotencyKey === undefined
      ? undefined
      : await (
          await import('./keyed-call.ts')
        ).claimed(ports, paying.call, { header: idempotencyKey, request, ...paying.asked });
  if (keyed && 'repeated' in keyed) return keyed.repeated;
  const claim = keyed?.held;
  let bill: Bill | undefined;
  try {
    const admitted = await Bill.admit(reservations, ports, paying.call);
    const conversation = await stored?.conversationBefore(ports, paying.call, { unread, request });
    const { call, asked, states } = conversation ? await paying.goingOn(conversation) : paying;
    if (stored && storage?.background)
      return await stored.accepted(ports, admitted, { call, ...asked, claim, request });
    const late = await lateParts(call, asked);
    const { reserved, ...known } = await states.beside(() => admitted.open(call));
    bill = reserved;
    const recorderOf = storage && stored?.recorderOf(ports);
    return answerPaid(ports, asked, { ...own, ...late, call, known, bill, claim, recorderOf });
  } catch (error) {
    await bill?.cancel();
    await claim?.finish(true);
    throw error;
  }
}

/**
 * What only some answers need, loaded before anything is reserved. Only turns that call tools have state to keep, but a
 * client that keeps it itself gets that of every turn, and so has every stored one.
 */
export async function lateParts(
  { request }: ChatCall,
  { read }: AskedCall,
): Promise<Pick<PaidCall, 'recording' | 'cutting'>> {
  const keepsState = read.keepsState === true || (request.tools?.length ?? 0) > 0 || read.storage;
  const stops = (request.stop?.length ?? 0) > 0;
  return {
    recording: keepsState ? await import('./state/kept-states.ts') : undefined,
    cutting: stops ? await import('./answer/stop-cut.ts') : undefined,
  };
}

export interface PaidCall extends Omit<FunctionState, 'reservations'> {
  call: ChatCall;
  /** The states of earlier turns. */
  known: Omit<Awaited<ReturnType<CallStates['beside']>>, 'reserved'>;
  bill: Bill;
  claim: HeldKey | undefined;
  /** Undefined: the call has no state to keep. */
  recording: typeof StateRecording | undefined;
  /** Undefined: the call has no stop sequence. */
  cutting: typeof StopCutting | undefined;
  /** Undefined: the answer is not stored. */
  recorderOf: ((parts: KeptAnswerParts) => AnswerRecorder & { readonly stored: boolean }) | undefined;
  /** Of a run. Absent: the answer has a client. */
  run?: RunOfCall;
}

/** How an answer differs that no client waits for. */
export interface RunOfCall {
  /** The dispatched call, which ends when the run has to stop. */
  stopping(dispatched: DispatchedCall): DispatchedCall;
  /** The answer is committed at once, so that every failure is rendered. */
  renderer(renderer: Renderer): Renderer;
}

/** Throws only before the answer has begun. From then on the answer closes bill and claim. */
export function answerPaid(
  ports: ChatPorts,
  asked: AskedCall,
  { call, known, bill, claim, recording, cutting, recorderOf, health, logger, run }: PaidCall,
): Promise<RelayResponse> {
  const clientKeeps = asked.read.keepsState === true;
  const limitOf = (model: string): number | undefined =>
    bill.outputTokensLimit(model) ?? call.outputTokensAsked;
  const { alias } = call;
  const paid: ChatCall = Object.freeze({
    ...call,
    ...known,
    ...(alias && { alias: withLimits(alias, limitOf) }),
    outputTokensLimit: limitOf(call.model.base),
    limitedBy: bill.limitedBy,
  });
  const direct = new Dispatch(ports, paid, health);
  const dispatched = run?.stopping(direct) ?? direct;
  const recorder =
    recording && new recording.StateRecorder(ports, { call: paid, dispatch: dispatched, clientKeeps });
  const dispatch = recorder ?? dispatched;
  const { conversation, read } = asked;
  const { storage } = read;
  let cut: StopCutting.StopCut | undefined;
  const stopCut = cutting && (() => (cut = new cutting.StopCut(() => dispatch.report().sent.stop)));
  const answerRecorder =
    storage &&
    recorderOf?.({
      call: paid,
      storage,
      conversation,
      seal: () => (cut?.ended ? undefined : recorder?.sealed(sealId(paid))),
    });
  const fresh = (): Renderer =>
    asked.read.renderer(call.identity, {
      now: () => Math.floor(ports.clock.now() / 1000),
      sent: () => dispatch.report().sent,
      model: () => dispatch.report().model,
      sealedState: (itemId) => (clientKeeps && !cut?.ended ? recorder?.sealed(itemId) : undefined),
      stored: () => answerRecorder?.stored ?? false,
      opaqueParts: () => dispatch.report().state?.parts.filter((part) => 'opaque' in part).length ?? 0,
    });
  const renderer = run ? (): Renderer => run.renderer(fresh()) : fresh;
  const answer = new Answer(ports, paid, {
    renderer,
    bill,
    claim,
    dispatch,
    recorder: answerRecorder,
    stopCut,
    logger,
  });
  return answer.response(answer.produce());
}

/** The item that has the state of a stored turn: no client sees it. */
const sealId = ({ identity }: ChatCall): string => `rs_${identity.requestId}_state`;

const withLimits = (
  { models: [first, ...rest], ...alias }: CalledAlias,
  limitOf: (model: string) => number | undefined,
): CalledAlias => {
  const limited = (one: ServingModel): ServingModel => ({ ...one, outputTokensLimit: limitOf(one.model) });
  return { ...alias, models: [limited(first), ...rest.map(limited)] };
};

// Puts the states of earlier turns to a call, while its money is reserved.

const isText = ({ channel, model }: Candidate): boolean =>
  quirksOf(channel, model).wantsBack === 'reasoning_content';

export class CallStates {
  readonly #ports: StatePorts;
  readonly #call: LookingCall;
  readonly #read: EndpointRequest;
  readonly #turns: TurnStates;

  /** Throws InvalidRequest for a damaged seal. */
  constructor(ports: StatePorts, call: LookingCall, read: EndpointRequest) {
    this.#ports = ports;
    this.#call = call;
    this.#read = read;
    const models = call.alias?.models.map(({ model }) => model) ?? [call.model.base];
    this.#turns = openSeals(ports.sealer, { account: call.key.account, models }, read);
    if (read.foreignLeftOut) this.#turns.dropped = true;
  }

  /**
   * What a reserve returns, and the states of the call, read from the store meanwhile. A reserve that is refused ends
   * the wait.
   */
  async beside<T>(
    reserve: () => Promise<T>,
  ): Promise<{ reserved: T } & Pick<ChatCall, 'states' | 'stateDropped'>> {
    const bare = bareTurns(this.#read, () => this.#call.candidates.every(isText));
    if (bare.length === 0) return { reserved: await reserve(), ...this.#found() };
    // Loaded at the first turn that came back without its state, before anything is reserved.
    const { addKept, lookUp } = await import('./state/kept-states.ts');
    const refused = new AbortController();
    const looking = lookUp(this.#ports, this.#call, { turns: bare, signal: refused.signal });
    let reserved: T;
    try {
      reserved = await reserve();
    } catch (error) {
      refused.abort();
      throw error;
    }
    addKept(this.#turns, bare, await looking);
    return { reserved, ...this.#found() };
  }

  #found(): Pick<ChatCall, 'states' | 'stateDropped'> {
    const { states, dropped } = this.#turns;
    return { states, stateDropped: dropped };
  }
}
