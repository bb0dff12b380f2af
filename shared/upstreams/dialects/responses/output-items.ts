/**
 * Tells the output items of an answer apart. Every event names its item by index and id; compatible servers leave
 * either out, send 0 for all, repeat ids, change them between events, or start items that they never announced.
 */
import type { JsonRecord } from '../../../wire/json.ts';
import { UpstreamFailure } from '../../exchange.ts';
import {
  type AnswerIdentity,
  type ChatChunk,
  type ChatDelta,
  type ChunkChoice,
  type FinishReason,
  Kept,
} from '../../../wire/chat-response.ts';
import type { StatePart } from '../../../wire/turn-state.ts';

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

// The turn that an answer becomes: makes canonical chunks, and keeps the layout by which the turn can come back.

/** Far more than a model writes, in any script. */
const keptBytesMax = 4 * 1024 * 1024;
/** What a part, an item or a stretch of text takes beside its text, so that empty ones are bounded too. */
export const entryBytes = 128;

/** An item's place in the layout. What is known of it may change until the answer ends. */
interface TurnItem {
  /** `commentary` or `final_answer`, where the upstream says so. */
  phase: string | undefined;
  /** The index of its call, once clients have seen one. */
  callIndex: number | undefined;
  /** The whole item, if the vendor wants it back as it is. */
  opaque: JsonRecord | undefined;
}

interface Slot {
  item: TurnItem;
  /** Undefined for calls and opaque items. */
  text: number | undefined;
}

export class AnswerTurn {
  readonly #identity: AnswerIdentity;
  readonly #slots: Slot[] = [];
  readonly #withText = new Set<TurnItem>();
  #roleSent = false;
  /** What an answer makes the relay keep. */
  readonly kept = new Kept(keptBytesMax, () => new UpstreamFailure('too_large'));
  /** UTF-16 code units of all visible text so far. */
  contentLength = 0;
  anyReasoning = false;

  constructor(identity: AnswerIdentity) {
    this.#identity = identity;
  }

  get opened(): boolean {
    return this.#roleSent;
  }

  /** The parts in their order, if they say more than the visible turn. */
  get state(): StatePart[] | undefined {
    const parts = this.#slots.flatMap(({ item, text }): StatePart[] => {
      const { phase, opaque, callIndex } = item;
      if (text !== undefined) return [{ text, ...(phase !== undefined && { phase }) }];
      if (opaque) return [{ opaque: { item: opaque } }];
      return callIndex === undefined ? [] : [{ call: callIndex }];
    });
    return parts.some((part) => 'opaque' in part || 'phase' in part) ? parts : undefined;
  }

  /** Keeps the place of a call or an opaque item, which may be known whole only later. */
  place(item: TurnItem): void {
    this.kept.bytes(entryBytes);
    this.#slots.push({ item, text: undefined });
  }

  /** A stretch of visible text of an item. Its phase precedes its first one. */
  text(item: TurnItem, content: string, logprobs: unknown): ChatChunk[] {
    const last = this.#slots.at(-1);
    this.contentLength += content.length;
    if (last?.item === item && last.text !== undefined) {
      last.text += content.length;
      return [this.delta({ content }, logprobs)];
    }
    const isFirst = !this.#withText.has(item);
    this.#withText.add(item);
    this.kept.bytes(entryBytes);
    this.#slots.push({ item, text: content.length });
    const { phase } = item;
    const opening = isFirst && phase !== undefined ? [this.delta({ phase })] : [];
    return [...opening, this.delta({ content }, logprobs)];
  }

  delta(delta: ChatDelta, logprobs: unknown = null): ChatChunk {
    const whole: ChatDelta = this.#roleSent ? delta : { role: 'assistant', ...delta };
    this.#roleSent = true;
    return this.chunk([{ index: 0, delta: whole, logprobs, finish_reason: null }]);
  }

  finish(reason: FinishReason): ChatChunk {
    return this.chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: reason }]);
  }

  chunk(choices: ChunkChoice[]): ChatChunk {
    const { requestId, created, model } = this.#identity;
    const object = 'chat.completion.chunk';
    return { id: `chatcmpl-${requestId}`, object, created, model, choices, usage: null };
  }
}
