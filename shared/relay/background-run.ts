/**
 * Runs background responses: an event that has an id alone, delivered once, twice or late. Whoever claims the response reserves
 * for it, by the tariff that it was accepted with, and answers as to any client. Must ask no upstream before both are its own.
 * A run that was killed is not resumed: its first reader after the claim ended marks it failed, and the sweeper closes its reservation.
 */
import { deserializeTariff } from '../billing/tariff.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { Snapshot } from '../config/snapshot.ts';
import { readWindow } from '../wire/service-tier.ts';
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
import { Backoff, retry } from './retry.ts';
import { submitsWindows } from './call/serving-channels.ts';
import { reserveForRun } from './money/bill.ts';
import { serializeReservation } from './money/open-reservation.ts';
import type { ChatPorts } from './ports/chat-ports.ts';
import type { StoredResponse, WaitingRun } from './ports/stored.ts';
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

/** Time that the host keeps for the end of an answer, its storage and its settle. A run may take the remainder: 14 or 29 minutes. */
const hostReserveMs = 60_000;
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

interface ClaimedRun {
  response: StoredResponse;
  snapshot: Snapshot;
  watch: RunWatch;
  recorder: RunRecorder;
  deadlineMs: number;
  /** True if its vendor has answered, so that only storing and settling remain. */
  isAnswered?: boolean | undefined;
}

export function prepareRun(
  ports: ChatPorts,
  given: Pick<ClaimedRun, 'response' | 'snapshot' | 'isAnswered'> & { event: RunEvent },
): ClaimedRun {
  const { response, snapshot, event, isAnswered } = given;
  const { account, id, hostDeadlineMs, hostEnds } = event;
  const { streamed, until } = response.head.background ?? { streamed: false, until: 0 };
  const { clock, stored, log } = ports;
  const { eventMinutes } = snapshot.settings.store;
  const deadlineMs = hostDeadlineMs - hostReserveMs;
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
  const kept = { run, claimed: response, watch, events, eventMinutes, keepsCall: isAnswered };
  const recorder = new RunRecorder(ports, kept);
  return { response, snapshot, watch, recorder, deadlineMs, isAnswered };
}

/** How long to wait for a vendor's answer after its window, and after that for a last reply. */
const answerWaitSeconds = 60 * 60;
const cancelWaitSeconds = 15 * 60;

/** Before this time, nobody closes the reservation or declares the run dead. */
export const endOfWaiting = ({ deadline }: WaitingRun): number => deadline + cancelWaitSeconds;

/** Submits a reserved call to its vendor. Other invocations poll for the answer. Throws a Refusal after releasing the reservation. */
async function submitRun(
  { ports, health, words }: RelayDeps,
  { response: { head }, watch }: ClaimedRun,
  { held: { call, bill }, hours }: { held: ReservedCall; hours: string },
): Promise<void> {
  const { account, id, background } = head;
  const { waiting, runs } = ports.stored;
  try {
    const { askVendor, submitCall } = await import('./dispatch/submitted-call.ts');
    if (!bill.reserved) throw new Error('nothing is reserved for a call in a window');
    const vendor = await submitCall(ports, { call, health, words }, hours);
    const submitted = Math.floor(ports.clock.now() / 1000);
    const deadline = submitted + Number.parseInt(hours, 10) * 3600 + answerWaitSeconds;
    const reservation = serializeReservation(bill.reserved);
    const run = { account, id, run: background?.run ?? '', vendor, submitted, deadline, reservation };
    await retry(ports, () => waiting.put(run)).catch(async (error: unknown) => {
      const channel = call.snapshot.channels.find((one) => one.id === vendor.channel);
      if (channel) await askVendor(ports, channel, { vendor, cancels: true });
      throw error;
    });
    watch.stop();
    // A later poll repeats a step that fails here.
    const handed = [bill.handOver(endOfWaiting(run)), runs.renew(run, endOfWaiting(run))];
    for (const each of await Promise.allSettled(handed))
      if (each.status === 'rejected') ports.log.fault(requestIdOf(id), each.reason);
    const facts = { request_id: requestIdOf(id), account, channel: vendor.channel, hours };
    ports.log.event('background_submitted', facts);
  } catch (error) {
    await bill.cancel();
    throw error;
  }
}

/** A call whose client has its answer already: its key's minute counted it when it was accepted, and nobody waits for it. */
export function createRunEdge(relay: RelayDeps, claimed: ClaimedRun): Edge {
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
    reserve: async (checked): ReturnType<Edge['reserve']> => {
      const waiting = { untilMs: accepted?.untilMs ?? 0, signal: watch.signal };
      const shard = accepted?.reservation?.part;
      const reserved = await reserveWithStates(ports, checked, () =>
        reserveForRun(reservations, ports, checked.call, { waiting, shard }),
      );
      await watch.look();
      if (watch.reason) {
        await reserved.bill.cancel();
        return { refusal: { reason: 'run_stopped' } };
      }
      const held = applyLimits(checked, reserved);
      const hours = readWindow(held.call.request.service_tier);
      if (hours === undefined || !held.call.candidates.every(submitsWindows)) return held;
      await submitRun(relay, claimed, { held, hours });
      return { answered: { status: 200, headers: {}, body: '', done: Promise.resolve() } };
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
  { response, snapshot, watch, deadlineMs, isAnswered }: ClaimedRun,
  accepted: AcceptedCall | undefined,
): Promise<ReadCall> {
  const { ports } = relay;
  const tariff = accepted && deserializeTariff(accepted.tariff);
  if (!tariff) return { refusal: { reason: 'run_of_other_version' } };
  const { startedMs, entry, attribution, concurrencyGiven } = accepted;
  if (!isAnswered && ports.clock.now() > accepted.untilMs) return { refusal: { reason: 'run_too_late' } };
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

/** Restores the caller as it was at acceptance, so that later edits of its rights or its plan don't stop the run. */
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
export async function drain({ body, done }: RelayResponse): Promise<void> {
  if (typeof body !== 'string') for await (const text of body) void text;
  await done;
}
