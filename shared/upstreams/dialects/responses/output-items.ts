/**
 * Tells the output items of an answer apart. Every event names its item by index and id; compatible servers leave
 * either out, send 0 for all, repeat ids, change them between events, or start items that they never announced.
 */
import type { JsonRecord } from '../../../wire/json-record.ts';
import { UpstreamFailure } from '../../upstream-failure.ts';
import type { TurnItem } from './answer-turn.ts';

/** Twice the limit of calls. Limits the work, since an item is compared with all earlier ones. */
const itemsMax = 2048;

/** A text of an item as far as clients have seen it. */
export interface TextPart {
  kind: TextKind;
  /** Its index in the item's list. */
  index: number;
  text: string;
  /** The whole of it came: later pieces are repeats. */
  whole: boolean;
  /** Where it begins in the answer's visible text, once it has begun. */
  start: number | undefined;
  /** How many of its annotations and token probabilities were read. */
  annotations: number;
  logprobs: number;
}
export type TextKind = 'text' | 'refusal' | 'summary' | 'reasoning' | 'call';

export interface AnswerItem extends TurnItem {
  readonly type: string;
  id: string | undefined;
  outputIndex: number | undefined;
  callId: string | undefined;
  name: string | undefined;
  parts: TextPart[];
  /** Its last event came. */
  closed: boolean;
  /** It was found in the list of the whole response. */
  listed: boolean;
}

export interface ItemEvent {
  outputIndex: number | undefined;
  id: string | undefined;
}

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

export class AnswerItems {
  readonly #items: AnswerItem[] = [];
  readonly #onAdd: (item: AnswerItem) => void;

  constructor(onAdd: (item: AnswerItem) => void) {
    this.#onAdd = onAdd;
  }

  get all(): readonly AnswerItem[] {
    return this.#items;
  }

  /** The item of a piece. Adds one if none fits. */
  ofPiece(type: string, event: ItemEvent): AnswerItem {
    const found =
      event.outputIndex === undefined && event.id === undefined
        ? this.#last((item) => item.type === type && !item.closed)
        : this.#candidate(type, event);
    const isAnother = found?.closed === true && differ(found.id, event.id);
    return found && !isAnother ? found : this.#add(type, event);
  }

  /** The item that begins: a new one, unless it was announced before or its pieces came first. */
  ofStart(type: string, { outputIndex }: ItemEvent, source: JsonRecord): AnswerItem {
    const event = { outputIndex, id: textOf(source['id']) };
    const found = this.#candidate(type, event);
    const isSame =
      found &&
      !differ(found.callId, textOf(source['call_id'])) &&
      !differ(found.id, event.id) &&
      (event.outputIndex !== undefined || event.id !== undefined);
    return isSame ? found : this.#add(type, event);
  }

  /** The item that ends. */
  ofEnd(type: string, { outputIndex }: ItemEvent, source: JsonRecord): AnswerItem {
    const event = { outputIndex, id: textOf(source['id']) };
    const callId = textOf(source['call_id']);
    const fits = (item: AnswerItem): boolean =>
      item.type === type && isAt(item, outputIndex) && !differ(item.callId, callId);
    return (
      this.#last((item) => fits(item) && item.id !== undefined && item.id === event.id) ??
      this.#last(
        (item) => fits(item) && (!item.closed || (event.id === undefined && outputIndex !== undefined)),
      ) ??
      this.#add(type, event)
    );
  }

  /**
   * The item of an entry in the list of the whole response. Its place there is not its index in events where the
   * upstream left gaps, so what fits best is taken, and every item once. `agrees`: what was read of an item is the
   * beginning of the entry.
   */
  ofEntry(source: JsonRecord, agrees: (item: AnswerItem) => boolean): AnswerItem {
    const type = String(source['type']);
    const [id, callId] = [textOf(source['id']), textOf(source['call_id'])];
    const open = this.#items.filter(
      (item) => !item.listed && item.type === type && !differ(item.callId, callId),
    );
    const hasId = (item: AnswerItem): boolean => id !== undefined && item.id === id;
    const item =
      open.find((each) => hasId(each) && agrees(each)) ??
      open.find(hasId) ??
      open.find(agrees) ??
      this.#add(type, { outputIndex: undefined, id });
    item.listed = true;
    return item;
  }

  /** Of several items with one index the one with the id, else the latest. */
  #candidate(type: string, { outputIndex, id }: ItemEvent): AnswerItem | undefined {
    const isThere = (item: AnswerItem): boolean => item.type === type && isAt(item, outputIndex);
    const same = id === undefined ? undefined : this.#last((item) => item.id === id && isThere(item));
    if (same || outputIndex === undefined) return same;
    return this.#last((item) => isThere(item) && (item.outputIndex === outputIndex || !differ(item.id, id)));
  }

  /** From the end, where the current item is. */
  #last(fits: (item: AnswerItem) => boolean): AnswerItem | undefined {
    return this.#items.findLast(fits);
  }

  #add(type: string, { outputIndex, id }: ItemEvent): AnswerItem {
    if (this.#items.length >= itemsMax) throw new UpstreamFailure('too_large');
    const item: AnswerItem = {
      type,
      id,
      outputIndex,
      callId: undefined,
      name: undefined,
      parts: [],
      closed: false,
      listed: false,
      phase: undefined,
      callIndex: undefined,
      opaque: undefined,
    };
    this.#items.push(item);
    this.#onAdd(item);
    return item;
  }
}

/** Both are known, and not the same. */
const differ = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && other !== undefined && one !== other;

const isAt = (item: AnswerItem, outputIndex: number | undefined): boolean =>
  outputIndex === undefined || item.outputIndex === undefined || item.outputIndex === outputIndex;
