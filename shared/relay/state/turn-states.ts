/**
 * The state of turns, such as signed thinking, which upstreams want back with the next turn. It comes back sealed with the
 * client's request, or is kept by the relay just before a finish chunk is passed on: an agent answers in milliseconds,
 * from another environment. Must never fail an answer or a call whose own seals are whole, nor hold one up for long: without its state a
 * turn goes up with the vendor's replacement. Loaded by the first call that has, or may get, turns with state.
 */
import type { EndpointRequest } from '../../endpoints/endpoint.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { ChatMessage } from '../../wire/canonical-call.ts';
import type { ChatChunk } from '../../wire/chat-response.ts';
import type { TurnState } from '../../wire/turn-state.ts';
import { asRecord, parseJson, textIn } from '../../wire/json.ts';
import type { ServedModel } from '../../upstreams/quirks.ts';
import { quirksOf } from '../../upstreams/called-channel.ts';
import type { ChatCall, DispatchedCall } from '../call/call.ts';
import { within } from '../retry.ts';
import type { ChatPorts } from '../ports/chat-ports.ts';
import type { Sealer } from '../ports/host.ts';
import { StateTooLarge } from '../ports/runtime-stores.ts';
import { encryptSummary, type StateWork } from './summary-seals.ts';

/** How many turns are looked up, and how many seals one call may open, newest first. */
const turnsMax = 200;
/** How long a call waits for what is kept of its turns. */
const stateLookupWaitMs = 1_000;
/** How long a finish chunk waits for the writes. They go on after it. */
const waitMs = 300;
const daySeconds = 24 * 60 * 60;
/**
 * How much state one call may open, in UTF-16 code units, whether or not it fits: 7 ms of processor for each million. The newest
 * turns come first. What is left out ends no session, which would send it again each time.
 */
const statesLengthMax = 16 * 1024 * 1024;

/** The oldest are left out many at a time: vendors drop the state behind a turn that has lost its own, so each step costs all of it. */
const turnsStep = 100;
const countTurnsWithState = (count: number): number =>
  count - turnsStep * Math.max(0, Math.ceil((count - turnsMax) / turnsStep));

type StatePorts = Pick<ChatPorts, 'clock' | 'sealer' | 'turnStates' | 'learned' | 'log'>;

/** The states of a call's turns, and whether any was left out because it did not fit. */
export class TurnStates {
  readonly states = new Map<ChatMessage, TurnState>();
  dropped = false;
  readonly #sealer: Sealer;
  readonly #bindings: StateBindings;
  /** By their text: 200 copies of one under other item ids took 2.7 s. */
  readonly #opened = new Map<string, OpenedState>();
  readonly #work: StateWork;
  #length = 0;
  #isSpent = false;

  constructor(sealer: Sealer, bindings: StateBindings, work: StateWork) {
    this.#sealer = sealer;
    this.#bindings = bindings;
    this.#work = work;
  }

  /** False: the seal is damaged. A seal that does not fit is dropped; one beyond the bounds is not opened. */
  add(message: ChatMessage, { text, itemId, whole }: SealedTurn & { whole: boolean }): boolean {
    const known = this.#opened.get(text);
    const isSpent = this.#isSpent || this.#length > statesLengthMax || this.#opened.size >= turnsMax;
    if (!known && isSpent) {
      this.dropped = true;
      return true;
    }
    const opened = known ?? openTurn(this.#sealer, this.#bindings, text);
    this.#opened.set(text, opened);
    if (!known) this.#isSpent = !this.#work.openState(opened.length);
    if (opened.is === 'damaged') return false;
    const fits =
      opened.is === 'own' &&
      (itemId === undefined || opened.item === itemId) &&
      belongs(opened.state, message, whole);
    // A copy that fits goes up once more.
    if (!known || fits) this.#length += opened.length;
    if (fits && this.#length <= statesLengthMax) this.states.set(message, opened.state);
    else this.dropped = true;
    return true;
  }
}

/** The parts of a call that decide which states fit it. */
interface WithTurns {
  call: ChatCall;
  read: EndpointRequest;
  source: { facts: { work: StateWork } };
}

/**
 * Reserves, then opens the states of earlier turns, since nobody opens them for a caller who cannot pay. What the relay keeps of turns
 * that came back without their state is looked up meanwhile; a reserve that is refused ends that wait. Throws what the reserve
 * throws, or InvalidRequest for a damaged seal that the client sent: then nothing stays reserved.
 */
export async function reserveThenOpenStates<Held extends { cancel(): Promise<void> }>(
  ports: StatePorts,
  checked: WithTurns,
  reserve: () => Promise<Held>,
): Promise<{ bill: Held; turns: TurnStates }> {
  const { call, read } = checked;
  const bare = findBareTurns(call, read.sealed);
  const refused = new AbortController();
  const { signal } = refused;
  const looking = bare.size > 0 ? lookUp(ports, call, { callIds: [...bare.keys()], signal }) : undefined;
  const bill = await reserve().catch((error: unknown) => {
    refused.abort();
    throw error;
  });
  try {
    const turns = statesOf(ports, checked);
    const kept = await looking;
    // A kept seal that is damaged or does not fit is dropped: the client cannot mend it.
    for (const [callId, message] of bare) {
      const text = kept?.get(callId);
      if (text !== undefined && !turns.add(message, { text, itemId: undefined, whole: true }))
        turns.dropped = true;
    }
    return { bill, turns };
  } catch (error) {
    refused.abort();
    await bill.cancel();
    throw error;
  }
}

/** The states that the client sent. Throws InvalidRequest for a damaged one. */
export function statesOf({ sealer }: Pick<StatePorts, 'sealer'>, checked: WithTurns): TurnStates {
  const { call, read, source } = checked;
  const { key, alias, model } = call;
  const models = alias?.models.map((one) => one.model) ?? [model.base];
  return openStates(sealer, { account: key.account, models }, { ...read, call }, source.facts.work);
}

/**
 * A state rebuilds its turn by the places of its calls, so it must be the state of exactly these calls. A client's item
 * may have been sealed before the turn ended: its state is that of the first calls, and the others follow.
 */
function belongs({ callIds }: TurnState, message: ChatMessage, whole: boolean): boolean {
  const own = callIdsOf(message);
  return (!whole || own.length === callIds.length) && callIds.every((id, index) => id === own[index]);
}

const callIdsOf = ({ tool_calls }: ChatMessage): string[] => (tool_calls ?? []).map(({ id }) => id ?? '');

/** Opens the seals of a call's turns. Throws InvalidRequest for a damaged one that the client sent. */
export function openStates(
  sealer: Sealer,
  bindings: StateBindings,
  { sealed, call, foreignLeftOut }: Pick<EndpointRequest, 'sealed' | 'call' | 'foreignLeftOut'>,
  work: StateWork,
): TurnStates {
  const turns = new TurnStates(sealer, bindings, work);
  if (foreignLeftOut) turns.dropped = true;
  if (!sealed) return turns;
  const sealedMessages = call.request.messages.filter((message) => sealed.has(message));
  if (sealedMessages.length > turnsMax) turns.dropped = true;
  for (const message of sealedMessages.slice(-countTurnsWithState(sealedMessages.length)).toReversed()) {
    const seal = sealed.get(message);
    if (!seal || turns.add(message, { ...seal, whole: false })) continue;
    if (!seal.stored)
      throw new InvalidRequest(
        'invalid_encrypted_content',
        seal.param,
        `${seal.param} was modified. Send it back exactly as you received it, or leave the item out.`,
      );
    turns.dropped = true;
  }
  return turns;
}

/** The turns to look up, newest first, by the id of their first call: what called tools and came back without its state. */
function findBareTurns(
  { request, candidates }: Pick<ChatCall, 'request' | 'candidates'>,
  sealed: EndpointRequest['sealed'],
): Map<string, ChatMessage> {
  const bare = new Map<string, ChatMessage>();
  /** The models' whole state is their reasoning text. */
  let textIsState: boolean | undefined;
  for (const message of request.messages.toReversed()) {
    if (message.role !== 'assistant' || sealed?.has(message) === true || hasEchoedState(message)) continue;
    const [callId = ''] = callIdsOf(message);
    if (callId === '') continue;
    if (typeof message['reasoning_content'] === 'string') {
      textIsState ??= candidates.every(
        ({ channel, model }) => quirksOf(channel, model).wantsBack === 'reasoning_content',
      );
      if (textIsState) continue;
    }
    bare.set(callId, message);
  }
  return new Map([...bare].slice(0, countTurnsWithState(bare.size)));
}

/**
 * True if the client sent the upstream's own state back. Reasoning text alone is not enough: clients also see and
 * return the text of signed or encrypted reasoning.
 */
function hasEchoedState({ reasoning_details: details, tool_calls: calls }: ChatMessage): boolean {
  return (
    (Array.isArray(details) && details.length > 0) ||
    (calls ?? []).some(({ extra_content: extra }) => typeof extra === 'object' && extra !== null)
  );
}

/**
 * The kept states by call id, sealed. Empty: none is kept, none is needed, or the store did not answer in time. Calls
 * no store for models that are known to need no state. Never rejects.
 * @param signal ends the wait
 */
async function lookUp(
  ports: StatePorts,
  call: ChatCall,
  { callIds, signal }: { callIds: readonly string[]; signal: AbortSignal },
): Promise<ReadonlyMap<string, string>> {
  const { clock, turnStates, learned, log } = ports;
  const none: ReadonlyMap<string, string> = new Map();
  const all = call.candidates.map(({ channel, model }) => ({ channel: channel.id, model }));
  const keepsState = (served: ServedModel): boolean =>
    learned.of(served).some(({ fact }) => fact === 'keeps_state');
  if (all.every((served) => !keepsState(served) && learned.isSettled(served, call.startedMs))) return none;
  const { requestId } = call.identity;
  const { account } = call.key;
  const logLostState = (why: string) => {
    log.event('turn_state_lost', { request_id: requestId, account, why });
    return none;
  };
  const work = turnStates.read(account, callIds).then(
    (found) => {
      for (const served of all) learned.settle(served);
      return found;
    },
    (error: unknown) => {
      log.fault(requestId, error);
      return 'unread' as const;
    },
  );
  const found = await within(clock, stateLookupWaitMs, { work, late: 'late' as const, signal });
  if (found === 'late') return signal.aborted ? none : logLostState('read_late');
  return found === 'unread' ? logLostState('read_failed') : found;
}

// The answer's own turn.

interface RecordedTurn {
  call: Pick<ChatCall, 'identity' | 'key' | 'snapshot'>;
  dispatch: DispatchedCall;
  /** The client gets the state sealed; nothing is stored. */
  clientKeeps: boolean;
}

/** The chunks of a dispatched call whose turn is kept. */
export class TurnRecorder {
  /** Can be read as often as those of the call. */
  readonly chunks: AsyncIterable<ChatChunk[]> = { [Symbol.asyncIterator]: () => this.#run() };
  readonly #ports: StatePorts;
  readonly #of: RecordedTurn;
  readonly #writes: Promise<void>[] = [];

  constructor(ports: StatePorts, of: RecordedTurn) {
    this.#ports = ports;
    this.#of = of;
  }

  /** Encrypts the state of the turn so far, or a summary, for an item of the client, if there is any. */
  encryptState(itemId: string, summary?: string): string | undefined {
    const { call, dispatch } = this.#of;
    const { state, model } = dispatch.report();
    const { account } = call.key;
    if (summary !== undefined) return encryptSummary(this.#ports.sealer, account, summary);
    return state && encryptTurn(this.#ports.sealer, { account, model }, { state, itemId });
  }

  /** Resolves when everything is written. Never rejects. */
  async awaitWrites(): Promise<void> {
    await Promise.all(this.#writes);
  }

  async *#run(): AsyncGenerator<ChatChunk[], void, undefined> {
    let called = false;
    let noted = false;
    for await (const batch of this.#of.dispatch.chunks) {
      called ||= batch.some(hasCall);
      const finish = called && !noted ? batch.findIndex(isFinish) : -1;
      if (finish < 0) {
        yield batch;
        continue;
      }
      noted = true;
      if (finish > 0) yield batch.slice(0, finish);
      await this.#note();
      yield batch.slice(finish);
    }
  }

  /** Notes what the turn teaches, and keeps its state if it has one. */
  async #note(): Promise<void> {
    const { learned, clock, turnStates } = this.#ports;
    const { call, dispatch, clientKeeps } = this.#of;
    const { tried, state, model } = dispatch.report();
    const channel = tried.at(-1)?.channel;
    if (channel === undefined) return;
    const served = { channel, model };
    // Without state in an answer with calls, this model needs none.
    if (state === undefined) return learned.settle(served);
    const { account } = call.key;
    const [callId = ''] = state.callIds;
    if (clientKeeps || callId === '') return;
    const nowMs = clock.now();
    const keptSeconds = call.snapshot.settings.limits.stateDays * daySeconds;
    const expires = Math.floor(nowMs / 1000) + keptSeconds;
    const writes = [turnStates.put({ account, callId }, this.encryptState('') ?? '', expires)];
    // Prolonged in time: the fact must outlive the states that it says to look up.
    const known = learned.of(served).find(({ fact }) => fact === 'keeps_state');
    const untilMs = nowMs + 2 * keptSeconds * 1000;
    if (!known || known.untilMs < nowMs + keptSeconds * 1000)
      writes.push(learned.learn({ ...served, fact: 'keeps_state', untilMs }));
    const reported = writes.map((write) => write.catch((error: unknown) => this.#logLost(error)));
    this.#writes.push(...reported);
    await within(clock, waitMs, { work: Promise.all(reported), late: undefined });
  }

  #logLost(error: unknown): void {
    const { log } = this.#ports;
    const { identity, key } = this.#of.call;
    const why = error instanceof StateTooLarge ? 'too_large' : 'write_failed';
    log.event('turn_state_lost', { request_id: identity.requestId, account: key.account, why });
    if (why === 'write_failed') log.fault(identity.requestId, error);
  }
}

const hasCall = ({ choices }: ChatChunk): boolean =>
  choices.some(({ delta }) => (delta.tool_calls?.length ?? 0) > 0);

const isFinish = ({ choices }: ChatChunk): boolean =>
  choices.some(({ finish_reason: reason }) => reason !== null);

// Seals the state of a turn for one account and one model. A seal that does not fit must never reach a call.

/** Bindings that let a call decrypt a state: one of the models that may answer. */
interface StateBindings {
  account: string;
  models: readonly string[];
}

interface SealedTurn {
  text: string;
  /** The id of the item that came back with it; undefined: none came. */
  itemId: string | undefined;
}

/**
 * @param model the model that answers: a call to it, or to an alias of it, opens the seal
 * @param itemId the id of the item that will hold the seal; empty: none
 */
export const encryptTurn = (
  sealer: Sealer,
  { account, model }: { account: string; model: string },
  { state, itemId }: { state: TurnState; itemId: string },
): string => sealer.seal(JSON.stringify({ account, model, item: itemId, state }));

/**
 * `foreign`: the seal is whole, but its key is gone, or it belongs to another account or model. `damaged`: it was changed.
 * `length`: of what was opened.
 */
type OpenedState =
  | { is: 'own'; length: number; item: string; state: TurnState }
  | { is: 'foreign' | 'damaged'; length: number };

function openTurn(sealer: Sealer, { account, models }: StateBindings, text: string): OpenedState {
  const opened = sealer.open(text);
  if (opened === 'damaged') return { is: 'damaged', length: 0 };
  if (opened === 'unknown_key') return { is: 'foreign', length: 0 };
  const { length } = opened.text;
  const sealed = asRecord(parseJson(opened.text));
  if (sealed['account'] !== account || !models.some((model) => sealed['model'] === model))
    return { is: 'foreign', length };
  const item = textIn(sealed['item']);
  // Only the relay can seal, so the content is trusted.
  const state = sealed['state'] as TurnState;
  return { is: 'own', length, item, state: { ...state, item: item || undefined } };
}
