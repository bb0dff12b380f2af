/**
 * Runs background responses: an event that has an id alone, delivered once, twice or late. Whoever claims the response reserves
 * for it, by the tariff that it was accepted with, and answers as to any client. Must ask no upstream before both are its own.
 * A run that was killed is not resumed: its first reader after the claim ended marks it failed, and the sweeper closes its reservation.
 */
import { deserializeTariff } from '../billing/tariff.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { Snapshot } from '../config/snapshot.ts';
import type { ChatChunk } from '../wire/chat-response.ts';
import type { ChatCall, DispatchedCall, DispatchReport } from './call/call.ts';
import { checkCall, type Caller, type ReadCall, type RefusedCall } from './read-call.ts';
import { WorkBudget } from './money/admission.ts';
import type { RelayResponse } from './http/http.ts';
import {
  createRelay,
  handleCall,
  reserveWithStates,
  applyLimits,
  type Edge,
  type RelayDeps,
  type ReservedCall,
} from './lifecycle.ts';
import { Backoff } from './retry.ts';
import { reserveForRun } from './money/bill.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import type { StoredResponse } from './ports/stored.ts';
import { readConversation } from './stored/conversation.ts';
import { readAcceptedCall, requestIdOf, type AcceptedCall } from './stored/accepted-call.ts';
import { StoredReader } from './stored/reads.ts';
import { createEventWriter, RunRecorder } from './stored/run-recorder.ts';
import { claimSeconds, RunWatch } from './stored/run-watch.ts';

/** The event, and what the host knows of the invocation. */
export interface RunEvent {
  account: string;
  id: string;
  /** Unique to this invocation, even if the event is delivered twice. */
  run: string;
  /** When the host will end the invocation, in epoch milliseconds. */
  hostDeadlineMs: number;
  hostEnds?: AbortSignal | undefined;
}

/** How long a run may take. */
const runMsMax = 14 * 60 * 1000;
/** Time that the host keeps for the end of an answer, its storage and its settle. */
const hostReserveMs = 40_000;
const claimMsMax = 20_000;

/** Rejects only when it is not known whether there is something to run. */
export function createBackgroundRuns(
  ports: ChatPorts,
  endpoint: Endpoint,
): (event: RunEvent) => Promise<void> {
  const relay = createRelay(ports, endpoint);
  return async (event) => {
    const { account, id, run } = event;
    const snapshot = await ports.config.current();
    const until = (): number => Math.floor(ports.clock.now() / 1000) + claimSeconds;
    const response = await new Backoff(ports, claimMsMax).until(() =>
      ports.stored.runs.claim({ account, id, run }, until()),
    );
    if (!response) return ports.log.event('background_not_claimed', { request_id: requestIdOf(id), account });
    const claimed = prepareRun(ports, { response, snapshot, event });
    const watching = claimed.watch.watch();
    try {
      await drain(await handleCall(relay, createRunEdge(relay, claimed)));
    } finally {
      claimed.watch.stop();
      await watching;
    }
  };
}

/** A run that has claimed its response. */
interface ClaimedRun {
  response: StoredResponse;
  snapshot: Snapshot;
  watch: RunWatch;
  recorder: RunRecorder;
  deadlineMs: number;
}

function prepareRun(
  ports: ChatPorts,
  { response, snapshot, event }: Pick<ClaimedRun, 'response' | 'snapshot'> & { event: RunEvent },
): ClaimedRun {
  const { account, id, hostDeadlineMs, hostEnds } = event;
  const { streamed, until } = response.head.background ?? { streamed: false, until: 0 };
  const { clock, stored, log } = ports;
  const { eventMinutes } = snapshot.settings.store;
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
  const events = streamed ? createEventWriter({ clock, log, events: stored.events }, written) : undefined;
  const recorder = new RunRecorder(ports, { run, claimed: response, watch, events, eventMinutes });
  return { response, snapshot, watch, recorder, deadlineMs };
}

/** A call whose client has its answer already: its key's minute counted it when it was accepted, and nobody waits for it. */
function createRunEdge(relay: RelayDeps, claimed: ClaimedRun): Edge {
  const { ports, reservations } = relay;
  const { response, watch, recorder } = claimed;
  const accepted = readAcceptedCall(response);
  const { model } = response.body.response;
  return {
    requestId: requestIdOf(response.head.id),
    startedMs: accepted?.startedMs ?? ports.clock.now(),
    commitsAtOnce: true,
    readCall: () =>
      readAccepted(relay, claimed, accepted).catch((error: unknown): RefusedCall => ({
        refusal: { reason: 'fault', error },
      })),
    claimIdempotencyKey: () => Promise.resolve(undefined),
    reserve: async (checked): Promise<ReservedCall | RefusedCall> => {
      const waiting = { untilMs: accepted?.untilMs ?? 0, signal: watch.signal };
      const shard = accepted?.reservation?.part;
      const reserved = await reserveWithStates(ports, checked, () =>
        reserveForRun(reservations, ports, checked.call, { waiting, shard }),
      );
      await watch.look();
      if (!watch.reason) return applyLimits(checked, reserved);
      await reserved.bill.cancel();
      return { refusal: { reason: 'run_stopped' } };
    },
    makeStoppable,
    createRecorder: () => Promise.resolve((seal) => recorder.encryptWith(seal)),
    refusedFacts: {
      key: accepted?.key,
      model: typeof model === 'string' ? model : undefined,
      droppedTools: undefined,
    },
    storeRefusal: (error) => recorder.storeFailure(error),
  };
}

/** The call as it was stored, with all that it goes on from. */
async function readAccepted(
  relay: RelayDeps,
  { response, snapshot, watch, deadlineMs }: ClaimedRun,
  accepted: AcceptedCall | undefined,
): Promise<ReadCall> {
  const { ports } = relay;
  const tariff = accepted && deserializeTariff(accepted.tariff);
  if (!tariff) return { refusal: { reason: 'run_of_other_version' } };
  const { startedMs, entry, attribution, concurrencyGiven } = accepted;
  if (ports.clock.now() > accepted.untilMs) return { refusal: { reason: 'run_too_late' } };
  const requestId = requestIdOf(response.head.id);
  const work = new WorkBudget();
  const { signal } = watch;
  const times = { startedMs, deadlineMs, signal };
  const facts = { requestId, work, entry, concurrencyGiven, ...times, tariff, isRun: true };
  const caller = callerOf(accepted, snapshot);
  // Its answer is made as events, whether or not somebody follows them.
  const body = { ...accepted.body, stream: true };
  const source = { body, headers: {}, attribution, caller, facts };
  const read = await checkCall(relay, source);
  const unread = 'checked' in read && read.checked.read.unread;
  if (!unread) return read;
  const reader = new StoredReader(ports, caller.key.account, { work });
  return checkCall(relay, source, await readConversation(reader, unread));
}

/** Restores the caller as of the acceptance of the call, so that later edits of its rights or its plan don't stop the run. */
const callerOf = ({ key, account, parts, plans }: AcceptedCall, snapshot: Snapshot): Caller => ({
  key: { ...key, store: true },
  account,
  shardCount: parts,
  snapshot: plans ? { ...snapshot, plans } : snapshot,
});

/**
 * A stopped run keeps the text written so far, as an answer that reached a limit. If no upstream was asked it
 * fails, so that nothing is charged.
 */
function makeStoppable(dispatched: DispatchedCall, { signal, identity }: ChatCall): DispatchedCall {
  let wasAsked = false;
  let isCut = false;
  // Before the attempt hears of it and reports a failure.
  const note = (): void => void (wasAsked = isAsked(dispatched.report()));
  if (signal.aborted) note();
  else signal.addEventListener('abort', note, { once: true });
  const { requestId, created, model } = identity;
  const id = `chatcmpl-${requestId}`;
  async function* chunks(): AsyncGenerator<ChatChunk[], void, undefined> {
    let last: ChatChunk = { id, object: 'chat.completion.chunk', created, model, choices: [], usage: null };
    let index: number | undefined;
    let isFinished = false;
    try {
      for await (const batch of dispatched.chunks) {
        last = batch.at(-1) ?? last;
        const choices = batch.flatMap((chunk) => chunk.choices);
        index ??= choices[0]?.index;
        isFinished ||= choices.some(({ finish_reason: reason }) => reason !== null);
        yield batch;
        if (signal.aborted) break;
      }
    } catch (error) {
      if (!signal.aborted || !wasAsked) throw error;
    }
    if (!signal.aborted) return;
    isCut = true;
    const ended = { index: index ?? 0, delta: {}, logprobs: null, finish_reason: 'length' as const };
    if (!isFinished) yield [{ ...last, choices: [ended], usage: null }];
  }
  return {
    chunks: { [Symbol.asyncIterator]: chunks },
    report: () => ({ ...dispatched.report(), ...(isCut && { isCut }) }),
    awaitWrites: () => dispatched.awaitWrites(),
  };
}

/** An upstream has the call, and has not failed. */
function isAsked({ tried }: DispatchReport): boolean {
  const { outcome } = tried.at(-1) ?? {};
  return outcome === 'under_way' || outcome === 'answered';
}

/** Resolves when everything of the answer is done. Its recorder has had each text before. */
async function drain({ body, done }: RelayResponse): Promise<void> {
  if (typeof body !== 'string') for await (const text of body) void text;
  await done;
}
