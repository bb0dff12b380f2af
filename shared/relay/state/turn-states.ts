/**
 * Finds the assistant turns of a call whose state may have to go up with them: those that came back with a seal, and
 * those whose state the relay may have kept. Reads no store.
 */
import type { EndpointRequest, SealedState } from '../../endpoints/endpoint.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import type { ChatMessage } from '../../wire/canonical-call.ts';
import type { TurnState, StatePart } from '../../wire/turn-state.ts';
import type { Sealer } from '../ports/host.ts';
import { asRecord, isRecord, parseJson } from '../../wire/json.ts';

/** How many turns are looked up, newest first. */
const lookedUpMax = 200;
/** How much opened state one call may hold, in UTF-16 code units; the newest turns come first. */
const statesLengthMax = 16 * 1024 * 1024;
/** How many seals one call may open, newest first: each costs up to 16 MB of inflating and parsing. */
const openedMax = 200;

/** A turn that called tools and came back without its state. */
export interface BareTurn {
  message: ChatMessage;
  /** The ids of its calls, in order. */
  callIds: readonly string[];
}

/** The states of a call's turns, and whether any was left out because it did not fit. */
export class TurnStates {
  readonly states = new Map<ChatMessage, TurnState>();
  dropped = false;
  readonly #sealer: Sealer;
  readonly #bindings: SealBindings;
  #length = 0;
  #opened = 0;

  constructor(sealer: Sealer, bindings: SealBindings) {
    this.#sealer = sealer;
    this.#bindings = bindings;
  }

  /** False: the seal is damaged. A seal that does not fit is dropped; one beyond the bounds is not opened. */
  add(message: ChatMessage, { text, itemId, whole }: SealedTurn & { whole: boolean }): boolean {
    if (this.#length > statesLengthMax || this.#opened >= openedMax) {
      this.dropped = true;
      return true;
    }
    this.#opened += 1;
    const opened = openTurn(this.#sealer, this.#bindings, { text, itemId });
    if (opened === 'damaged') return false;
    if (opened === 'foreign' || !belongs(opened.state, message, whole)) {
      this.dropped = true;
      return true;
    }
    this.#length += opened.length;
    if (this.#length > statesLengthMax) this.dropped = true;
    else this.states.set(message, opened.state);
    return true;
  }

  /** What the store had. A kept seal that is damaged or does not fit is dropped: the client cannot mend it. */
  addKept(bare: readonly BareTurn[], kept: ReadonlyMap<string, string>): void {
    for (const { message, callIds } of bare) {
      const text = kept.get(callIds[0] ?? '');
      if (text !== undefined && !this.add(message, { text, itemId: undefined, whole: true }))
        this.dropped = true;
    }
  }
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
export function openSeals(
  sealer: Sealer,
  bindings: SealBindings,
  { sealed, call, foreignLeftOut }: Pick<EndpointRequest, 'sealed' | 'call' | 'foreignLeftOut'>,
): TurnStates {
  const turns = new TurnStates(sealer, bindings);
  if (foreignLeftOut) turns.dropped = true;
  if (!sealed) return turns;
  for (const message of call.request.messages.toReversed()) {
    const seal = sealed.get(message);
    if (!seal || turns.add(message, { ...seal, whole: false })) continue;
    if (!seal.stored) throw damaged(seal);
    turns.dropped = true;
  }
  return turns;
}

const damaged = ({ param }: SealedState): InvalidRequest =>
  new InvalidRequest(
    'invalid_encrypted_content',
    param,
    `${param} was changed on its way. Send it back exactly as it came, or leave the item out.`,
  );

/** The turns to look up, newest first. `textIsState`: the model's whole state is its reasoning text. */
export function bareTurns(
  { sealed, call }: Pick<EndpointRequest, 'sealed' | 'call'>,
  textIsState: () => boolean,
): BareTurn[] {
  const bare: BareTurn[] = [];
  let isText: boolean | undefined;
  for (const message of call.request.messages.toReversed()) {
    if (bare.length === lookedUpMax) break;
    if (message.role !== 'assistant' || sealed?.has(message) === true || echoesState(message)) continue;
    const callIds = callIdsOf(message);
    if ((callIds[0] ?? '') === '') continue;
    if (typeof message['reasoning_content'] === 'string' && (isText ??= textIsState())) continue;
    bare.push({ message, callIds });
  }
  return bare;
}

/**
 * Whether the client sent the upstream's own state back. Reasoning text alone is not all of it: clients see the text of
 * signed thinking and of encrypted reasoning, too, and send that text back.
 */
function echoesState({ reasoning_details: details, tool_calls: calls }: ChatMessage): boolean {
  return (
    (Array.isArray(details) && details.length > 0) ||
    (calls ?? []).some(({ extra_content: extra }) => typeof extra === 'object' && extra !== null)
  );
}

// Seals the state of a turn for one account and one model. A seal that does not fit must never reach a call.

/** What a seal is bound to. */
export interface SealBinding {
  account: string;
  /** The base model. */
  model: string;
}

/** What a seal may be bound to, so that a call may open it: one of the models that may answer. */
interface SealBindings {
  account: string;
  models: readonly string[];
}

interface SealedTurn {
  text: string;
  /** The id of the item that came back with it; undefined: none came. */
  itemId: string | undefined;
}

/** @param itemId the id of the item that will hold the seal; empty: none */
export const sealTurn = (
  sealer: Sealer,
  { account, model }: SealBinding,
  { state, itemId }: { state: TurnState; itemId: string },
): string => sealer.seal(JSON.stringify({ account, model, item: itemId, state }));

/**
 * `foreign`: the seal is whole, but its key is gone, or it belongs to another account, model or item. `damaged`: it was
 * changed.
 */
function openTurn(
  sealer: Sealer,
  { account, models }: SealBindings,
  { text, itemId }: SealedTurn,
): { state: TurnState; length: number } | 'foreign' | 'damaged' {
  const opened = sealer.open(text);
  if (opened === 'damaged') return 'damaged';
  if (opened === 'unknown_key') return 'foreign';
  const sealed = asRecord(parseJson(opened.text));
  const fits = sealed['account'] === account && models.some((model) => sealed['model'] === model);
  if (!fits || (itemId !== undefined && sealed['item'] !== itemId)) return 'foreign';
  return isTurnState(sealed['state']) ? { state: sealed['state'], length: opened.text.length } : 'foreign';
}

/** Only the relay seals, but another version of it may have. */
function isTurnState(value: unknown): value is TurnState {
  if (!isRecord(value) || !isRecord(value['origin'])) return false;
  const { dialect, channel, secret, model } = value['origin'];
  return (
    [dialect, channel, secret, model].every((field) => typeof field === 'string') &&
    isListOf(value['callIds'], (id): id is string => typeof id === 'string') &&
    isListOf(value['parts'], isStatePart)
  );
}

const isListOf = <T>(value: unknown, isItem: (item: unknown) => item is T): value is T[] =>
  Array.isArray(value) && value.every(isItem);
const isStatePart = (part: unknown): part is StatePart =>
  isRecord(part) &&
  (typeof part['text'] === 'number' || typeof part['call'] === 'number' || isRecord(part['opaque']));
