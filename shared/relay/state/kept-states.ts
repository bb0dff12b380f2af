/**
 * Keeps the state of a turn that called tools, just before its finish chunk is passed on: an agent answers in
 * milliseconds, from another environment. Must never fail an answer, nor hold up its finish for long.
 */
import type { ChatChunk } from '../../wire/chat-response.ts';
import type { TurnState } from '../../wire/turn-state.ts';
import type { ChatCall, DispatchedCall } from '../call/call.ts';
import { StateTooLarge, type LearnedFacts, type TurnStateStore } from '../ports/runtime-stores.ts';
import type { ServedModel } from '../../upstreams/quirks.ts';
import { within } from '../money/backoff.ts';
import { sealTurn, type BareTurn, type SealBinding } from './turn-states.ts';
import type { Clock, Sealer } from '../ports/host.ts';
import type { Log } from '../ports/telemetry.ts';

/** How long a finish chunk waits for the writes. They go on after it. */
const waitMs = 300;
const daySeconds = 24 * 60 * 60;

type KeptCall = Pick<ChatCall, 'identity' | 'key' | 'model' | 'snapshot'>;

/** The chunks of a dispatched call whose turn is kept. `clientKeeps`: the client gets the state sealed; nothing is stored. */
export class TurnRecorder {
  /** Can be read as often as those of the call. */
  readonly chunks: AsyncIterable<ChatChunk[]> = { [Symbol.asyncIterator]: () => this.#run() };
  readonly #ports: StatePorts;
  readonly #call: KeptCall;
  readonly #dispatch: DispatchedCall;
  readonly #clientKeeps: boolean;
  readonly #writes: Promise<void>[] = [];

  constructor(
    ports: StatePorts,
    { call, dispatch, clientKeeps }: { call: KeptCall; dispatch: DispatchedCall; clientKeeps: boolean },
  ) {
    this.#ports = ports;
    this.#call = call;
    this.#dispatch = dispatch;
    this.#clientKeeps = clientKeeps;
  }

  /** The state of the turn so far, sealed for an item of the client's. Undefined: there is none. */
  sealed(itemId: string): string | undefined {
    const { state } = this.#dispatch.report();
    return state && sealTurn(this.#ports.sealer, this.#binding, { state, itemId });
  }

  /** Resolves when everything is written. Never rejects. */
  async written(): Promise<void> {
    await Promise.all(this.#writes);
  }

  async *#run(): AsyncGenerator<ChatChunk[], void, undefined> {
    let called = false;
    let noted = false;
    for await (const batch of this.#dispatch.chunks) {
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
    const { tried, state, model } = this.#dispatch.report();
    const channel = tried.at(-1)?.channel;
    if (channel === undefined) return;
    const served = { channel, model };
    // Without state in an answer with calls, this model needs none.
    if (state === undefined) return this.#ports.learned.settle(served);
    const [callId = ''] = state.callIds;
    if (this.#clientKeeps || callId === '') return;
    await this.#inTime([this.#keep(state, callId), ...this.#learn(served)]);
  }

  /** Prolongs the fact in time: it must outlive the states that it says to look up. */
  #learn(served: ServedModel): Promise<void>[] {
    const { learned, clock } = this.#ports;
    const keptMs = this.#keptSeconds * 1000;
    const nowMs = clock.now();
    const known = learned.of(served).find(({ fact }) => fact === 'keeps_state');
    if (known && known.untilMs >= nowMs + keptMs) return [];
    return [this.#reported(learned.learn({ ...served, fact: 'keeps_state', untilMs: nowMs + 2 * keptMs }))];
  }

  /** The model that answers: a call to it, or to an alias of it, opens the seal. */
  get #binding(): SealBinding {
    return { account: this.#call.key.account, model: this.#dispatch.report().model };
  }

  get #keptSeconds(): number {
    return this.#call.snapshot.settings.limits.stateDays * daySeconds;
  }

  #keep(state: TurnState, callId: string): Promise<void> {
    const { sealer, turnStates, clock } = this.#ports;
    const { account } = this.#call.key;
    const sealed = sealTurn(sealer, this.#binding, { state, itemId: '' });
    const expiresAt = Math.floor(clock.now() / 1000) + this.#keptSeconds;
    return this.#reported(turnStates.put({ account, callId }, sealed, expiresAt));
  }

  /** A write whose failure is reported and fails nothing. */
  #reported(write: Promise<void>): Promise<void> {
    const { log } = this.#ports;
    const { requestId } = this.#call.identity;
    return write.catch((error: unknown) => {
      const why = error instanceof StateTooLarge ? 'too_large' : 'write_failed';
      log.event('turn_state_lost', { request_id: requestId, account: this.#call.key.account, why });
      if (why === 'write_failed') log.fault(requestId, error);
    });
  }

  async #inTime(writes: Promise<void>[]): Promise<void> {
    this.#writes.push(...writes);
    await within(this.#ports.clock, waitMs, { work: Promise.all(writes), late: undefined });
  }
}

const hasCall = ({ choices }: ChatChunk): boolean =>
  choices.some(({ delta }) => (delta.tool_calls?.length ?? 0) > 0);

const isFinish = ({ choices }: ChatChunk): boolean =>
  choices.some(({ finish_reason: reason }) => reason !== null);

// Looks up the kept states of a call's turns, beside its reserve. Must never fail or hold up the call for long: without
// its state a turn goes up with the vendor's replacement.

/** How long a call waits for the store. */
const stateLookupWaitMs = 1_000;

interface StatePorts {
  clock: Clock;
  sealer: Sealer;
  turnStates: TurnStateStore;
  learned: LearnedFacts;
  log: Log;
}

/** What a look-up needs to know of its call. */
type LookingCall = Pick<ChatCall, 'identity' | 'candidates' | 'model' | 'alias' | 'key' | 'startedMs'>;

/** The models that may answer, on each of their channels. */
const servedModels = ({ candidates }: Pick<ChatCall, 'candidates'>): ServedModel[] =>
  candidates.map(({ channel, model }) => ({ channel: channel.id, model }));

const keepsState = (learned: LearnedFacts, served: ServedModel): boolean =>
  learned.of(served).some(({ fact }) => fact === 'keeps_state');

/**
 * The kept states by call id, sealed. Empty: none is kept, none is needed, or the store did not answer in time. Calls
 * no store for models that are known to need no state. Never rejects.
 * @param signal ends the wait
 */
export async function lookUp(
  ports: StatePorts,
  call: LookingCall,
  { turns, signal }: { turns: readonly BareTurn[]; signal: AbortSignal },
): Promise<ReadonlyMap<string, string>> {
  const none: ReadonlyMap<string, string> = new Map();
  if (!isNeeded(ports, call)) return none;
  const { clock, turnStates, learned, log } = ports;
  const { requestId } = call.identity;
  const { account } = call.key;
  const lost = (why: string) => {
    log.event('turn_state_lost', { request_id: requestId, account, why });
    return none;
  };
  const ids = turns.map(({ callIds }) => callIds[0] ?? '');
  const work = turnStates.read(account, ids).then(
    (found) => {
      for (const served of servedModels(call)) learned.settle(served);
      return found;
    },
    (error: unknown) => {
      log.fault(requestId, error);
      return 'unread' as const;
    },
  );
  const found = await within(clock, stateLookupWaitMs, { work, late: 'late' as const, signal });
  if (found === 'late') return signal.aborted ? none : lost('read_late');
  return found === 'unread' ? lost('read_failed') : found;
}

function isNeeded({ learned }: StatePorts, call: LookingCall): boolean {
  return servedModels(call).some(
    (served) => keepsState(learned, served) || !learned.isSettled(served, call.startedMs),
  );
}
