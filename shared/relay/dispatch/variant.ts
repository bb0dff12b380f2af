/** The forms in which one candidate is asked: the usual one, and repeats of a refused request. */
import type { Repeat } from '../../upstreams/dialect.ts';
import type { Quirks } from '../../upstreams/quirks.ts';
import { upstreamModel } from '../../upstreams/types/channel-quirks.ts';
import type { ChatMessage } from '../../wire/canonical-call.ts';
import { fingerprint } from '../../wire/fingerprint.ts';
import type { StateOrigin, StatePart, TurnState } from '../../wire/turn-state.ts';
import type { ChatCall, Candidate } from '../call/call.ts';

export interface LimitRefusal {
  /** The limit that was sent. */
  tokens: number;
  /** The prompt and the limit together are more than the model's context; a shorter prompt may have this limit. */
  overContext: boolean;
}

/** How an attempt differs from the usual one. */
export interface Variant {
  /** Overrides the channel's dialect. */
  readonly dialect?: string | undefined;
  readonly without: ReadonlySet<Repeat>;
  /** How the model differs from what its name and its row say, because its refusals said so. */
  readonly quirks: Partial<Quirks>;
  /** Limits from this one on are not sent, because the model refused it. Undefined: none is known. */
  readonly refusedLimit?: number | undefined;
  /** The model's maximum as its refusal named it. */
  readonly limitMost?: number | undefined;
  /** The refusal of a limit that led to this form. */
  readonly limitRefusal?: LimitRefusal | undefined;
}

export const usual: Variant = { without: new Set(), quirks: {} };

/** The same candidate is to be asked again. Nothing of the refused answer was passed on. */
export class AskAgain extends Error {
  override readonly name = 'AskAgain';
  readonly variant: Variant;
  /** What the refusal comes to if the other form cannot be sent. */
  readonly refusal: Error;

  constructor(variant: Variant, refusal: Error) {
    super('the same candidate is asked again');
    this.variant = variant;
    this.refusal = refusal;
  }
}

// Decides which states of earlier turns go to which candidate.

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

interface CandidateStates {
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
