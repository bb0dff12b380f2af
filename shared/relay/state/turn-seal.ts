/** Seals the state of a turn for one account and one model. A seal that does not fit must never reach a call. */
import type { StatePart, TurnState } from '../../wire/turn-state.ts';
import { asRecord, isRecord, parseJson } from '../../wire/json-record.ts';
import type { Sealer } from '../ports/sealer.ts';

/** What a seal is bound to. */
export interface SealBinding {
  account: string;
  /** The base model. */
  model: string;
}

/** What a seal may be bound to, so that a call may open it: one of the models that may answer. */
export interface SealBindings {
  account: string;
  models: readonly string[];
}

export interface SealedTurn {
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
export function openTurn(
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
