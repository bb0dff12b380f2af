/**
 * Tells the output items of an answer apart, and keeps the layout by which its turn can come back. Every event names its
 * item by index and id; compatible servers leave either out, send 0 for all, repeat ids, change them between events, or
 * start items that they never announced.
 */
import type { JsonRecord } from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import { telling, tooLarge, type AnswerWriter } from '../../answer-writer.ts';

/** Twice the limit of calls. Limits the work, since an item is compared with all earlier ones. */
const itemsMax = 2048;
/** What a part, an item or a stretch of text takes beside its text, so that empty ones are bounded too. */
export const entryBytes = 128;
/** Items that the vendor wants back as they are, if they are encrypted. */
export const opaqueTypes = new Set(['reasoning', 'compaction']);
export const callTypes = new Set(['function_call', 'custom_tool_call']);

export type TextKind = 'text' | 'refusal' | 'summary' | 'reasoning' | 'call';

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

export interface AnswerItem {
  readonly type: string;
  id: string | undefined;
  outputIndex: number | undefined;
  callId: string | undefined;
  name: string | undefined;
  /** `commentary` or `final_answer`, where the upstream says so. */
  phase: string | undefined;
  /** The index of its call, once clients have seen one. */
  callIndex: number | undefined;
  /** The whole item, if the vendor wants it back as it is. */
  opaque: JsonRecord | undefined;
  parts: TextPart[];
  /** Some of its text is in the layout. */
  spoke: boolean;
  /** Its last event came. */
  closed: boolean;
  /** It was found in the list of the whole response. */
  listed: boolean;
}

export interface ItemEvent {
  outputIndex: number | undefined;
  id: string | undefined;
}

/** A place in the layout of the turn: a stretch of an item's text, or a call or an opaque item. */
interface Slot {
  item: AnswerItem;
  text: number | undefined;
}

export const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

export class OutputItems {
  readonly all: AnswerItem[] = [];
  /** UTF-16 code units of all visible text so far. */
  textLength = 0;
  readonly #slots: Slot[] = [];
  readonly #writer: AnswerWriter;

  constructor(writer: AnswerWriter) {
    this.#writer = writer;
  }

  /** The parts of the turn in their order. */
  get state(): readonly StatePart[] | undefined {
    return telling(
      this.#slots.flatMap(({ item: { phase, opaque, callIndex }, text }): StatePart[] => {
        if (text !== undefined) return [{ text, ...(phase !== undefined && { phase }) }];
        if (opaque) return [{ opaque: { item: opaque } }];
        return callIndex === undefined ? [] : [{ call: callIndex }];
      }),
    );
  }

  /** A stretch of visible text of an item. Returns whether it is the item's first. */
  addText(item: AnswerItem, { length }: string): boolean {
    const last = this.#slots.at(-1);
    this.textLength += length;
    if (last?.item === item && last.text !== undefined) {
      last.text += length;
      return false;
    }
    const isFirst = !item.spoke;
    item.spoke = true;
    this.#place({ item, text: length });
    return isFirst;
  }

  #place(slot: Slot): void {
    this.#writer.kept.bytes(entryBytes);
    this.#slots.push(slot);
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
    const open = this.all.filter(
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
    return this.all.findLast(fits);
  }

  #add(type: string, { outputIndex, id }: ItemEvent): AnswerItem {
    if (this.all.length >= itemsMax) throw tooLarge();
    const item: AnswerItem = {
      type,
      id,
      outputIndex,
      callId: undefined,
      name: undefined,
      parts: [],
      spoke: false,
      closed: false,
      listed: false,
      phase: undefined,
      callIndex: undefined,
      opaque: undefined,
    };
    this.all.push(item);
    // A call or an opaque item may be known whole only later.
    if (opaqueTypes.has(type) || callTypes.has(type)) this.#place({ item, text: undefined });
    return item;
  }
}

/** Both are known, and not the same. */
const differ = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && other !== undefined && one !== other;

const isAt = (item: AnswerItem, outputIndex: number | undefined): boolean =>
  outputIndex === undefined || item.outputIndex === undefined || item.outputIndex === outputIndex;
