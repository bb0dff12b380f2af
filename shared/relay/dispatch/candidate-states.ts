/** Decides which states of earlier turns go to which candidate. */
import type { Quirks } from '../../upstreams/quirks.ts';
import { upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import type { ChatMessage } from '../../wire/chat-request.ts';
import { fingerprint } from '../../wire/fingerprint.ts';
import type { StateOrigin, StatePart, TurnState } from '../../wire/turn-state.ts';
import type { ChatCall } from '../call/chat-call.ts';
import type { Candidate } from '../call/candidate.ts';

/** Where the state of a candidate's answers comes from. `model`: the upstream's name. */
export const originOf = (
  { channel, secret }: Pick<Candidate, 'channel' | 'secret'>,
  { dialect, model }: Pick<StateOrigin, 'dialect' | 'model'>,
): StateOrigin => ({ dialect, channel: channel.id, secret: secretMark(secret), model });

/** The reference is marked, not the secret: a secret that is replaced in its store may stay with its organisation. */
const secretMark = (secret: string | undefined): string => (secret === undefined ? '' : fingerprint(secret));

/**
 * Whether a candidate is the one that a state came from. The row may have mapped its model to another one of the upstream
 * since.
 */
export const isOrigin = (
  { channel, secret, model }: Pick<Candidate, 'channel' | 'secret' | 'model'>,
  origin: Pick<StateOrigin, 'channel' | 'secret' | 'model'>,
): boolean =>
  channel.id === origin.channel &&
  secretMark(secret) === origin.secret &&
  upstreamModel(channel, model) === origin.model;

/** The origin of the newest turn with state. Undefined: no turn has one. */
export function newestOrigin({
  states,
  request,
}: Pick<ChatCall, 'states' | 'request'>): StateOrigin | undefined {
  if (states.size === 0) return undefined;
  const newest = request.messages.findLast((message) => states.has(message));
  return newest && states.get(newest)?.origin;
}

export interface CandidateStates {
  states: ReadonlyMap<ChatMessage, readonly StatePart[]>;
  /** The turns whose state may not. */
  foreign: ReadonlySet<ChatMessage>;
  /** At least one turn's state may not go to this candidate. */
  dropped: boolean;
}

/** The states that may go to a candidate that speaks `dialect`. */
export function statesFor(
  candidate: Pick<Candidate, 'channel' | 'secret' | 'model'>,
  { dialect, wantsBack }: { dialect: string } & Pick<Quirks, 'wantsBack'>,
  call: Pick<ChatCall, 'states' | 'stateDropped'>,
): CandidateStates {
  const fits = ({ origin, parts }: TurnState): boolean =>
    origin.dialect === dialect && (isOrigin(candidate, origin) || isPlain(parts, wantsBack));
  const fitting = [...call.states].filter(([, state]) => fits(state));
  return {
    foreign: new Set([...call.states].filter(([, state]) => !fits(state)).map(([message]) => message)),
    states: new Map(fitting.map(([message, { parts }]) => [message, parts])),
    dropped: call.stateDropped || fitting.length < call.states.size,
  };
}

/** Reasoning as plain text is bound to no organisation, so every upstream that wants such text back may have it. */
const isPlain = (parts: readonly StatePart[], wantsBack: Quirks['wantsBack']): boolean =>
  wantsBack === 'reasoning_content' &&
  parts.every((part) => !('opaque' in part) || Object.keys(part.opaque).join() === wantsBack);
