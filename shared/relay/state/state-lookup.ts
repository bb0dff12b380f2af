/**
 * Looks up the kept states of a call's turns, beside its reserve. Must never fail or hold up the call for long: without
 * its state a turn goes up with the vendor's replacement.
 */
import type { ChatCall } from '../call/chat-call.ts';
import type { Clock } from '../ports/clock.ts';
import type { Sealer } from '../ports/sealer.ts';
import type { ServedModel } from '../../config/learned-fact.ts';
import type { LearnedFacts } from '../ports/stores/learned-facts.ts';
import type { TurnStateStore } from '../ports/stores/turn-state-store.ts';
import type { Log } from '../ports/telemetry.ts';
import type { BareTurn, TurnStates } from './returned-turns.ts';

/** How long a call waits for the store. */
const waitMs = 1_000;

export interface StatePorts {
  clock: Clock;
  sealer: Sealer;
  turnStates: TurnStateStore;
  learned: LearnedFacts;
  log: Log;
}

/** What a look-up needs to know of its call. */
export type LookingCall = Pick<ChatCall, 'identity' | 'candidates' | 'model' | 'alias' | 'key' | 'startedMs'>;

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
  const ended = new AbortController();
  const stop = (): void => ended.abort();
  signal.addEventListener('abort', stop);
  const ids = turns.map(({ callIds }) => callIds[0] ?? '');
  const read = turnStates.read(account, ids).then(
    (found) => {
      for (const served of servedModels(call)) learned.settle(served);
      return found;
    },
    (error: unknown) => {
      log.fault(requestId, error);
      return 'unread' as const;
    },
  );
  const timeUp = clock.sleep(waitMs, ended.signal).then(() => 'late' as const);
  try {
    const found = await Promise.race([read, timeUp]);
    if (found === 'late') return signal.aborted ? none : lost('read_late');
    return found === 'unread' ? lost('read_failed') : found;
  } finally {
    signal.removeEventListener('abort', stop);
    ended.abort();
  }
}

function isNeeded({ learned }: StatePorts, call: LookingCall): boolean {
  return servedModels(call).some(
    (served) => keepsState(learned, served) || !learned.isSettled(served, call.startedMs),
  );
}

/** Opens what the store had. A kept seal that is damaged or does not fit is dropped: the client cannot mend it. */
export function addKept(
  turns: TurnStates,
  bare: readonly BareTurn[],
  kept: ReadonlyMap<string, string>,
): void {
  for (const { message, callIds } of bare) {
    const sealed = kept.get(callIds[0] ?? '');
    if (sealed === undefined) continue;
    if (!turns.add(message, { text: sealed, itemId: undefined, whole: true })) turns.dropped = true;
  }
}
