/**
 * Runs background responses: an event that has an id alone, delivered once, twice or late. Whoever claims the response takes
 * its reservation over, and answers as to any client. Must ask no upstream before both are its own.
 */
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { Snapshot } from '../config/snapshot.ts';
import type { ChatChunk } from '../wire/chat-response.ts';
import type { ErrorObject } from '../wire/invalid-request.ts';
import { RequestLogger } from './answer/log-line.ts';
import type { ChatCall } from './call/call.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import { ServingChannels } from './call/serving-channels.ts';
import { HealthRecorder } from './health/health-recorder.ts';
import type { RelayResponse } from './http/http.ts';
import { asRefusal, refuse, type Refusal } from './http/refusal.ts';
import { Backoff } from './money/backoff.ts';
import { Bill } from './money/bill.ts';
import { Reservations } from './money/reservations.ts';
import {
  answerPaid,
  modelsOf,
  readCall,
  lateParts,
  type AskedCall,
  type Caller,
  type CallSource,
  type PaidCall,
  type RunOfCall,
  callOf,
  CallStates,
} from './lifecycle.ts';
import type { StoredResponse } from './ports/stored.ts';
import {
  beginsWithinMs,
  callIn,
  requestIdOf,
  runBody,
  waitingIn,
  type HandedCall,
  releaseWaiting,
  takeOver,
  StoppingDispatch,
} from './stored/handed-call.ts';
import { RunRecorder, claimSeconds, RunWatch, EventWriter } from './stored/run.ts';
import { storeSettings } from './stored/may-store.ts';
import { conversationOf } from './stored/conversation.ts';
import { StoredReader } from './stored/reads.ts';

/** The event, and what the host knows of the invocation. */
export interface RunEvent {
  account: string;
  id: string;
  /** Of this invocation alone, though the event may be delivered twice. */
  run: string;
  /** When the host will end the invocation, in epoch milliseconds. */
  hostDeadlineMs: number;
  hostEnds?: AbortSignal | undefined;
}

/** How long a run may take. */
const runMsMax = 14 * 60 * 1000;
/** What the host keeps for the end of an answer, its store and its settle. */
const hostReserveMs = 40_000;
const claimMsMax = 20_000;

/** A run that has claimed its response. */
interface ClaimedRun {
  response: StoredResponse;
  snapshot: Snapshot;
  watch: RunWatch;
  answerRecorder: RunRecorder;
  deadlineMs: number;
}

interface RunnerState {
  reservations: Reservations;
  health: HealthRecorder;
  logger: RequestLogger;
  channels: ServingChannels;
  endpoint: Endpoint;
}

/** Rejects only when it is not known whether there is something to run. */
export function backgroundRuns(ports: ChatPorts, endpoint: Endpoint): (event: RunEvent) => Promise<void> {
  const own: RunnerState = {
    reservations: new Reservations(ports),
    health: new HealthRecorder(ports),
    logger: new RequestLogger(ports),
    channels: new ServingChannels(),
    endpoint,
  };
  return async (event) => {
    const { account, id, run } = event;
    const snapshot = await ports.config.current();
    const until = (): number => Math.floor(ports.clock.now() / 1000) + claimSeconds;
    const response = await new Backoff(ports, claimMsMax).until(() =>
      ports.stored.runs.claim({ account, id, run }, until()),
    );
    if (!response) return ports.log.event('background_not_claimed', { request_id: requestIdOf(id), account });
    const claimed = claimedRun(ports, { response, snapshot, event });
    const { watch, answerRecorder } = claimed;
    const watching = watch.watch();
    try {
      await drained(await begin(ports, own, claimed));
    } catch (error) {
      await answerRecorder.fails(await refused(ports, own, { claimed, error }));
    } finally {
      watch.stop();
      await watching;
    }
  };
}

function claimedRun(
  ports: ChatPorts,
  { response, snapshot, event }: Pick<ClaimedRun, 'response' | 'snapshot'> & { event: RunEvent },
): ClaimedRun {
  const { account, id, hostDeadlineMs, hostEnds } = event;
  const { streamed, until } = response.head.background ?? { streamed: false, until: 0 };
  const { clock, stored, log } = ports;
  const { eventMinutes } = storeSettings(snapshot);
  const deadlineMs = Math.min(clock.now() + runMsMax, hostDeadlineMs - hostReserveMs);
  const run = { account, id, run: event.run };
  const watch = new RunWatch(ports, { run, until, deadlineMs, hostEnds });
  const written = {
    account,
    id,
    accepted: response.body.response,
    expires: Math.ceil(hostDeadlineMs / 1000) + eventMinutes * 60,
    mayWrite: () => watch.holds,
  };
  const events = streamed ? new EventWriter({ clock, log, events: stored.events }, written) : undefined;
  const answerRecorder = new RunRecorder(ports, { run, claimed: response, watch, events, eventMinutes });
  return { response, snapshot, watch, answerRecorder, deadlineMs };
}

/** Throws before the answer has begun, with nothing reserved. From then on the answer closes the bill. */
async function begin(
  ports: ChatPorts,
  { reservations, health, logger, channels, endpoint }: RunnerState,
  { response, snapshot, watch, answerRecorder, deadlineMs }: ClaimedRun,
): Promise<RelayResponse> {
  const waiting = waitingIn(response);
  let bill: Bill | undefined;
  try {
    const handed = callIn(response);
    if (!handed) throw refuse('unavailable', 'This version cannot run the response. Send the request again.');
    const { startedMs, entry } = handed;
    if (ports.clock.now() > startedMs + beginsWithinMs) throw tooLate();
    const caller = callerOf(handed, snapshot);
    const asked = await readWhole(ports, endpoint, { body: runBody(handed), headers: {}, caller });
    const named = await modelsOf(channels, { caller, asked, nowMs: startedMs });
    const requestId = requestIdOf(response.head.id);
    const times = { startedMs, deadlineMs, signal: watch.signal };
    const from = { requestId, endpoint: endpoint.name, entry, isRun: true };
    const call = callOf({ caller, asked, named }, { ...from, ...times });
    const states = new CallStates(ports, call, asked.read);
    const late = await lateParts(call, asked);
    const { reserved, ...known } = await states.beside(async () => {
      const reservation = waiting && (await takeOver(ports, waiting, deadlineMs));
      if (waiting && !reservation) throw tooLate();
      return (bill = await Bill.resume(reservations, ports, { call, reservation }));
    });
    await watch.look();
    if (watch.reason) throw refuse('unavailable', 'The response was stopped before it began.');
    const recorderOf: PaidCall['recorderOf'] = ({ seal }) => answerRecorder.sealing(seal);
    const paid = { ...late, call, known, bill: reserved, claim: undefined, recorderOf, health, logger };
    return await answerPaid(ports, asked, { ...paid, run: runOf(call) });
  } catch (error) {
    if (bill) await bill.cancel();
    else if (waiting) await releaseWaiting(ports, waiting, true);
    throw error;
  }
}

/** The call was admitted when it was accepted. */
async function readWhole(ports: ChatPorts, endpoint: Endpoint, from: CallSource): Promise<AskedCall> {
  const asked = await readCall(endpoint, from);
  const { unread } = asked.read;
  if (!unread) return asked;
  return readCall(
    endpoint,
    from,
    await conversationOf(new StoredReader(ports, from.caller.key.account), unread),
  );
}

/** As the caller was when the call was accepted: what was allowed then is done. */
const callerOf = ({ key, account, parts }: HandedCall, snapshot: Snapshot): Caller => ({
  key: { ...key, store: true },
  account,
  parts,
  snapshot,
});

const tooLate = (): Refusal =>
  refuse(
    'unavailable',
    'The response could not begin in time. Nothing was charged; send the request again.',
    {
      reason: 'background_late',
    },
  );

const runOf = ({ identity, signal }: ChatCall): RunOfCall => ({
  stopping: (dispatched) => new StoppingDispatch(dispatched, signal, () => emptyChunk(identity)),
  renderer: (renderer) => ({ ...renderer, commitAfterMs: 0 }),
});

const emptyChunk = ({ requestId, created, model }: ChatCall['identity']): ChatChunk => ({
  id: `chatcmpl-${requestId}`,
  object: 'chat.completion.chunk',
  created,
  model,
  choices: [],
  usage: null,
});

/** Resolves when everything of the answer is done. Its answerRecorder has had each text before. */
async function drained({ body, done }: RelayResponse): Promise<void> {
  if (typeof body !== 'string') for await (const text of body) void text;
  await done;
}

/** The error that the response ends with, after its log line. */
async function refused(
  ports: ChatPorts,
  { endpoint, logger }: RunnerState,
  { claimed: { response }, error }: { claimed: ClaimedRun; error: unknown },
): Promise<ErrorObject> {
  const requestId = requestIdOf(response.head.id);
  const refusal = asRefusal(error);
  if (refusal.body.error.code === 'internal') ports.log.fault(requestId, error);
  const { key, startedMs = ports.clock.now() } = callIn(response) ?? {};
  const durationMs = ports.clock.now() - startedMs;
  const { model } = response.body.response;
  const facts = {
    requestId,
    endpoint: endpoint.name,
    key,
    model: typeof model === 'string' ? model : undefined,
    droppedTools: undefined,
    durationMs,
    refusal,
  };
  await logger.refused(facts);
  return refusal.body.error;
}
