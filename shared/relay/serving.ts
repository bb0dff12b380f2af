/** Handles every request of an endpoint: the checks in order, the answer, and the log line of a refusal. */
import type { Endpoint } from '../endpoints/endpoint.ts';
import { refusalLine, Stories } from './answer/log-line.ts';
import type { ChatCall, NamedModels } from './call/chat-call.ts';
import type { ChatPorts } from './call/chat-ports.ts';
import { ServingChannels } from './call/serving-channels.ts';
import { HealthRecorder } from './health/health-recorder.ts';
import type { Handle, RelayRequest } from './http/http.ts';
import { responsesPrefix } from './http/http-routes.ts';
import { asRefusal, refusalResponse } from './http/refusal.ts';
import { Reservations } from './money/reservations.ts';
import {
  admitCaller,
  checkContents,
  modelsOf,
  payAndAnswer,
  readCall,
  type AskedCall,
  type Caller,
  type CheckedCall,
} from './pipeline.ts';
import type { Clock } from './ports/clock.ts';
import { CallStates } from './state/call-states.ts';
import type { Conversation } from './stored/stored-conversation.ts';

/** Lambda kills at its time-out without notice: fail in-protocol 5 s earlier. */
const hostReserveMs = 5_000;

/**
 * Returns a handle that never rejects: every error becomes a response and a log line. Of an endpoint that stores it also
 * serves the paths of what is stored.
 */
export function answerWith(ports: ChatPorts, endpoint: Endpoint): Handle {
  const reservations = new Reservations(ports);
  const own = { reservations, health: new HealthRecorder(ports), stories: new Stories(ports) };
  const channels = new ServingChannels();
  return async (request) => {
    if (endpoint.storing && request.path.startsWith(responsesPrefix)) {
      const { storedHandle } = await import('./stored/routes/stored-handle.ts');
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
      ports.log.request(refusalLine(facts));
      const done = reservations.cancelled(request.id).then(() => own.stories.refused(facts));
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
