/**
 * Tracks the output items of an answer: tells them apart, shows what is new of each as canonical chunks, and keeps the
 * layout by which the turn can come back. Every event names its item by index and id, but compatible servers leave
 * either out, send 0 for all, repeat ids, change them between events, or start items without announcing them. A text
 * that came in pieces and comes again as a whole is shown once.
 */
import type { Annotation, ChatChunk, ChatDelta, ToolCallDelta } from '../../../wire/chat-response.ts';
import {
  asRecord,
  jsonText,
  listIn,
  parseJson,
  recordsIn,
  textIn,
  type JsonRecord,
} from '../../../wire/json.ts';
import { calledNameMax } from '../../../wire/ids.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import { callsMax, tooLargeFailure, type AnswerWriter } from '../../answer-writer.ts';
import { unwrapInput } from '../../request-fields.ts';

/** Twice the limit of calls. Limits the work, since an item is compared with all earlier ones. */
const itemsMax = 2048;
/** The same for the texts of an item. */
const textsMax = 1024;
/** Memory of a text or an item beside its content, so that empty ones are limited too. */
const entryBytes = 128;
/** Items that the vendor wants back unchanged, if they are encrypted. */
const opaqueTypes = new Set(['reasoning', 'compaction']);
const callTypes = new Set(['function_call', 'custom_tool_call']);
/** Items with content. Items of hosted tools have none. */
export const itemTypes: ReadonlySet<string> = new Set([
  ...callTypes,
  ...opaqueTypes,
  'message',
  'image_generation_call',
]);

export type TextKind = 'text' | 'refusal' | 'summary' | 'reasoning' | 'call';

/** A text of an item, as far as clients have seen it. */
interface ItemText {
  kind: TextKind;
  index: number;
  text: string;
  /** It is complete: later pieces are repeats. */
  whole: boolean;
  /** Its offset in the answer's visible text, once it has begun. */
  start: number | undefined;
  /** Counts of the annotations and token probabilities that were read. */
  annotations: number;
  logprobs: number;
}

export interface AnswerItem {
  readonly type: string;
  id: string | undefined;
  outputIndex: number | undefined;
  callId?: string | undefined;
  name?: string | undefined;
  /** `commentary` or `final_answer`. */
  phase?: string | undefined;
  /** Set once clients have seen the call. */
  callIndex?: number;
  /** The complete item, if the vendor wants it back unchanged. */
  opaque?: JsonRecord;
  texts: ItemText[];
  /** Some of its text is in the layout. */
  hasText?: true;
  /** Its last event came. */
  isClosed?: true;
  /** It was found in the list of the complete response. */
  isListed?: true;
}

export interface ItemEvent {
  outputIndex: number | undefined;
  id: string | undefined;
}

/** An entry in the layout of the turn: a stretch of an item's text, a call or an opaque item. */
interface Slot {
  item: AnswerItem;
  text: number | undefined;
}

/** A piece of a text, or all of it. */
export interface TextPiece {
  kind: TextKind;
  index: number;
  text: string;
  logprobs?: unknown;
  annotations?: unknown;
}

export const readWord = (value: unknown): string | undefined => textIn(value) || undefined;

export class OutputItems {
  readonly #all: AnswerItem[] = [];
  readonly #slots: Slot[] = [];
  readonly #writer: AnswerWriter;
  readonly #wrapped: ReadonlySet<string>;
  /** UTF-16 code units of all visible text so far. */
  #textLength = 0;
  #anyReasoning = false;

  /** `wrapped`: the custom tools that were sent as functions. */
  constructor(writer: AnswerWriter, wrapped: ReadonlySet<string>) {
    this.#writer = writer;
    this.#wrapped = wrapped;
  }

  get hasItems(): boolean {
    return this.#all.length > 0;
  }

  describeTurn(): StatePart[] {
    return this.#slots.flatMap(({ item: { phase, opaque, callIndex }, text }): StatePart[] => {
      if (text !== undefined) return [{ text, ...(phase !== undefined && { phase }) }];
      if (opaque) return [{ opaque: { item: opaque } }];
      return callIndex === undefined ? [] : [{ call: callIndex }];
    });
  }

  // Finding the item of an event.

  /** Adds an item if none fits. */
  findForPiece(type: string, event: ItemEvent): AnswerItem {
    const found =
      event.outputIndex === undefined && event.id === undefined
        ? this.#all.findLast((item) => item.type === type && !item.isClosed)
        : this.#findByPosition(type, event);
    const isAnother = found?.isClosed === true && areDifferent(found.id, event.id);
    return found && !isAnother ? found : this.#add(type, event);
  }

  /** A new item, unless it was announced before or its pieces came first. */
  findForStart(type: string, outputIndex: number | undefined, source: JsonRecord): AnswerItem {
    const event = { outputIndex, id: readWord(source['id']) };
    const found = this.#findByPosition(type, event);
    const isSame =
      found &&
      !areDifferent(found.callId, readWord(source['call_id'])) &&
      !areDifferent(found.id, event.id) &&
      (event.outputIndex !== undefined || event.id !== undefined);
    return isSame ? found : this.#add(type, event);
  }

  findForEnd(type: string, outputIndex: number | undefined, source: JsonRecord): AnswerItem {
    const [id, callId] = [readWord(source['id']), readWord(source['call_id'])];
    const fitting = this.#all.filter(
      (item) => item.type === type && isAt(item, outputIndex) && !areDifferent(item.callId, callId),
    );
    return (
      fitting.findLast((item) => item.id !== undefined && item.id === id) ??
      fitting.findLast((item) => !item.isClosed || (id === undefined && outputIndex !== undefined)) ??
      this.#add(type, { outputIndex, id })
    );
  }

  /**
   * The position of an entry in the complete response differs from its index in events if the upstream left gaps, so
   * the best match is taken, and every item once.
   */
  findForEntry(source: JsonRecord): AnswerItem {
    const type = String(source['type']);
    const [id, callId] = [readWord(source['id']), readWord(source['call_id'])];
    const open = this.#all.filter(
      (item) => !item.isListed && item.type === type && !areDifferent(item.callId, callId),
    );
    const named = open.filter((item) => id !== undefined && item.id === id);
    const wholes = readWholeTexts(source);
    const agrees = (item: AnswerItem): boolean => isBeginning(item, wholes);
    const item =
      named.find(agrees) ?? named[0] ?? open.find(agrees) ?? this.#add(type, { outputIndex: undefined, id });
    item.isListed = true;
    return item;
  }

  /** Among several items with one index, the one with the id, or else the latest. */
  #findByPosition(type: string, { outputIndex, id }: ItemEvent): AnswerItem | undefined {
    const isThere = (item: AnswerItem): boolean => item.type === type && isAt(item, outputIndex);
    const same = id === undefined ? undefined : this.#all.findLast((item) => item.id === id && isThere(item));
    if (same || outputIndex === undefined) return same;
    return this.#all.findLast(
      (item) => isThere(item) && (item.outputIndex === outputIndex || !areDifferent(item.id, id)),
    );
  }

  #add(type: string, { outputIndex, id }: ItemEvent): AnswerItem {
    if (this.#all.length >= itemsMax) throw tooLargeFailure();
    const item: AnswerItem = { type, id, outputIndex, texts: [] };
    this.#all.push(item);
    // A call or an opaque item may be completed later.
    if (opaqueTypes.has(type) || callTypes.has(type)) this.#addSlot({ item, text: undefined });
    return item;
  }

  #addSlot(slot: Slot): void {
    this.#writer.memory.bytes(entryBytes);
    this.#slots.push(slot);
  }

  // Showing what is new of an item.

  /** Reads the facts of an item. Its texts wait for their own events. */
  startItem(item: AnswerItem, source: JsonRecord): ChatChunk[] {
    item.id ??= this.#readWord(source['id']);
    item.callId ??= this.#readWord(source['call_id']);
    item.name ??= this.#readWord(source['name']);
    item.phase ??= this.#readWord(source['phase']);
    if ((item.name?.length ?? 0) > calledNameMax) throw tooLargeFailure();
    return callTypes.has(item.type) ? this.#showCall(item, '') : [];
  }

  showPiece(item: AnswerItem, { kind, index, text, logprobs }: TextPiece): ChatChunk[] {
    const part = this.#findText(item, kind, index);
    if (part.whole || item.isClosed) return [];
    return this.#show(item, part, text, logprobs);
  }

  /** Shows a complete text. `taken`: texts that belong to other entries of the same list. */
  showWhole(item: AnswerItem, piece: TextPiece, taken = new Set<ItemText>()): ChatChunk[] {
    const { kind, index, text } = piece;
    const agreeing = (part: ItemText): boolean =>
      part.kind === kind && part.text !== '' && !taken.has(part) && text.startsWith(part.text);
    const exact = item.texts.find((part) => part.kind === kind && part.index === index);
    const part = exact ?? item.texts.find(agreeing) ?? this.#findText(item, kind, index);
    taken.add(part);
    part.whole = true;
    const added = text.startsWith(part.text) ? text.slice(part.text.length) : '';
    const chunks = this.#show(item, part, added, listIn(piece.logprobs).slice(part.logprobs));
    const notes = listIn(piece.annotations).slice(part.annotations);
    return [...chunks, ...this.#showAnnotations(part, notes)];
  }

  /** `place`: the index of the annotation among those of its text. */
  showAnnotation(item: AnswerItem, index: number, note: unknown, place: unknown): ChatChunk[] {
    const part = this.#findText(item, 'text', index);
    if (item.isClosed || (typeof place === 'number' && place < part.annotations)) return [];
    return this.#showAnnotations(part, [note]);
  }

  endItem(item: AnswerItem, source: JsonRecord): ChatChunk[] {
    const chunks = this.startItem(item, source);
    if (opaqueTypes.has(item.type) && textIn(source['encrypted_content']) !== '' && !item.opaque) {
      this.#writer.memory.value(source);
      item.opaque = source;
    }
    const taken = new Set<ItemText>();
    for (const whole of readWholeTexts(source)) chunks.push(...this.showWhole(item, whole, taken));
    if (callTypes.has(item.type)) chunks.push(...this.#endCall(item, source['status'] !== 'incomplete'));
    if (item.type === 'image_generation_call' && !item.isClosed)
      chunks.push(...readImages(source).map((delta) => this.#writer.writeDelta(delta)));
    item.isClosed = true;
    return chunks;
  }

  /** Shows held calls that never ended. `isComplete`: the upstream called the answer complete. */
  endOpenCalls(isComplete: boolean): ChatChunk[] {
    const open = this.#all.filter(({ type, isClosed: closed }) => callTypes.has(type) && !closed);
    return open.flatMap((item) => this.#endCall(item, isComplete));
  }

  #readWord(value: unknown): string | undefined {
    const word = readWord(value);
    this.#writer.memory.text(word ?? '');
    return word;
  }

  #findText(item: AnswerItem, kind: TextKind, index: number): ItemText {
    const known = item.texts.find((part) => part.kind === kind && part.index === index);
    if (known) return known;
    if (item.texts.length >= textsMax) throw tooLargeFailure();
    this.#writer.memory.bytes(entryBytes);
    const part = { kind, index, text: '', whole: false, start: undefined, annotations: 0, logprobs: 0 };
    item.texts.push(part);
    return part;
  }

  #show(item: AnswerItem, part: ItemText, text: string, probabilities: unknown): ChatChunk[] {
    const logprobs = convertLogprobs(probabilities);
    part.logprobs += logprobs?.content.length ?? 0;
    const isFirst = part.text === '';
    this.#writer.memory.text(text);
    // Such a chunk may start an answer, which is held until its first content.
    if (text === '' && logprobs !== null) this.#writer.memory.value(logprobs);
    part.text += text;
    if (part.kind === 'call') return this.#showCall(item, text);
    if (text === '' && (logprobs === null || part.kind !== 'text')) return [];
    if (part.kind === 'text') {
      part.start ??= this.#textLength;
      return [...this.#addText(item, text.length), this.#writer.writeDelta({ content: text }, logprobs)];
    }
    if (part.kind === 'refusal') return [this.#writer.writeDelta({ refusal: text })];
    // An item shows its summary or its text, whichever comes first, because they say the same.
    const shown = item.texts.find(
      ({ kind, text: own }) => own !== '' && (kind === 'summary' || kind === 'reasoning'),
    );
    if (shown && shown.kind !== part.kind) return [];
    const separator = isFirst && this.#anyReasoning ? '\n\n' : '';
    this.#anyReasoning = true;
    return [this.#writer.writeDelta({ reasoning_content: separator + text })];
  }

  /** Adds visible text of an item to the layout. The first stretch names the item's phase. */
  #addText(item: AnswerItem, length: number): ChatChunk[] {
    const last = this.#slots.at(-1);
    this.#textLength += length;
    if (last?.item === item && last.text !== undefined) {
      last.text += length;
      return [];
    }
    this.#addSlot({ item, text: length });
    const isFirst = !item.hasText;
    item.hasText = true;
    return isFirst && item.phase !== undefined ? [this.#writer.writeDelta({ phase: item.phase })] : [];
  }

  #showAnnotations(part: ItemText, notes: readonly unknown[]): ChatChunk[] {
    part.annotations += notes.length;
    const offset = part.start ?? this.#textLength;
    const annotations = notes.flatMap((note) => convertAnnotation(note, offset) ?? []);
    if (annotations.length === 0) return [];
    this.#writer.memory.value(annotations);
    return [this.#writer.writeDelta({ annotations })];
  }

  /**
   * `added`: the new text. Nothing is shown before id and name are known. A custom tool that was sent as a function is
   * shown once its JSON is complete.
   */
  #showCall(item: AnswerItem, added: string): ChatChunk[] {
    if (item.name === undefined || item.callId === undefined || this.#isWrapped(item)) return [];
    if (item.callIndex === undefined) return [this.#callPiece(item, readCallText(item))];
    return added === '' ? [] : [this.#callPiece(item, added)];
  }

  /**
   * `isWhole`: the call is not cut. A function without arguments gets an empty object, so that all arguments are JSON.
   * A wrapped call that was cut inside its wrapper is not shown: nobody could run it.
   */
  #endCall(item: AnswerItem, isWhole: boolean): ChatChunk[] {
    const text = readCallText(item);
    if (this.#isWrapped(item)) {
      const isCut = parseJson(text) === undefined && (!isWhole || text.trimStart().startsWith('{'));
      if (item.callIndex !== undefined || isCut) return [];
      return [this.#callPiece(item, unwrapInput(text), true)];
    }
    const shown = item.callIndex === undefined ? [this.#callPiece(item, text)] : [];
    if (item.type !== 'function_call' || text.trim() !== '' || !isWhole) return shown;
    // Later events repeat the empty text, which must not count as new.
    const part = callTextOf(item);
    if (part) part.text = '{}';
    return [...shown, this.#callPiece(item, '{}')];
  }

  #isWrapped({ type, name }: AnswerItem): boolean {
    return type === 'function_call' && name !== undefined && this.#wrapped.has(name);
  }

  /** The first piece has id, type and name. */
  #callPiece(item: AnswerItem, text: string, isCustom = item.type === 'custom_tool_call'): ChatChunk {
    const { name = '', callId, callIndex: index = this.#writer.callCount } = item;
    const isFirst = item.callIndex === undefined;
    if (index >= callsMax) throw tooLargeFailure();
    item.callIndex = index;
    const type = isCustom ? 'custom' : 'function';
    const named = isFirst && { name };
    const call: ToolCallDelta = {
      index,
      ...(isFirst && { id: this.#writer.assignCallId(callId), type }),
      ...(isCustom ? { custom: { ...named, input: text } } : { function: { ...named, arguments: text } }),
    };
    return this.#writer.writeDelta({ tool_calls: [call] });
  }
}

const areDifferent = (one: string | undefined, other: string | undefined): boolean =>
  one !== undefined && other !== undefined && one !== other;

const isAt = (item: AnswerItem, outputIndex: number | undefined): boolean =>
  outputIndex === undefined || item.outputIndex === undefined || item.outputIndex === outputIndex;

const callTextOf = ({ texts: parts }: AnswerItem): ItemText | undefined =>
  parts.find(({ kind }) => kind === 'call');
const readCallText = (item: AnswerItem): string => callTextOf(item)?.text ?? '';

const textKinds: Partial<Record<string, TextKind>> = {
  output_text: 'text',
  text: 'text',
  refusal: 'refusal',
  summary_text: 'summary',
  reasoning_text: 'reasoning',
};

/** The texts of a complete output item. */
function readWholeTexts({ type, arguments: called, input, summary, content }: JsonRecord): TextPiece[] {
  if (callTypes.has(String(type)))
    return [{ kind: 'call', index: 0, text: jsonText(type === 'function_call' ? called : input) }];
  return [summary, content].flatMap((list) => listIn(list).flatMap(readWholeText));
}

/** Reads the text of a content part, if its type has one. */
export function readWholeText(part: unknown, index: number): TextPiece[] {
  const { type, refusal, text: plain, annotations, logprobs } = asRecord(part);
  const kind = textKinds[String(type)];
  const text = kind === 'refusal' ? refusal : plain;
  return kind && typeof text === 'string' ? [{ kind, index, text, annotations, logprobs }] : [];
}

/** The text read so far is the start of the complete item. */
const isBeginning = ({ texts: parts }: AnswerItem, wholes: readonly TextPiece[]): boolean =>
  parts.every(
    ({ kind, text }) =>
      text === '' || wholes.some((each) => each.kind === kind && each.text.startsWith(text)),
  );

/** `offset`: of the annotated text in the whole visible text. Undefined for other kinds of annotations. */
function convertAnnotation(note: unknown, offset: number): Annotation | undefined {
  const { type, url, title, start_index: start, end_index: end, index, ...file } = asRecord(note);
  const range = { start_index: offset + indexOf(start), end_index: offset + indexOf(end) };
  if (type === 'url_citation' && typeof url === 'string')
    return { type, url_citation: { url, title: textIn(title), ...range } };
  const { file_id: fileId, filename, container_id: container } = file;
  if (typeof fileId !== 'string') return undefined;
  const named = { file_id: fileId, filename: textIn(filename) };
  if (type === 'file_citation') return { type, ...named, index: indexOf(index) };
  if (type === 'file_path') return { type, file_id: fileId, index: indexOf(index) };
  if (type !== 'container_file_citation') return undefined;
  return { type, container_id: textIn(container), ...named, ...range };
}

const indexOf = (value: unknown): number => (typeof value === 'number' && value >= 0 ? Math.floor(value) : 0);

function convertLogprobs(list: unknown): { content: JsonRecord[]; refusal: null } | null {
  const content = recordsIn(list).map((entry) =>
    Object.assign(convertProbability(entry), {
      top_logprobs: recordsIn(entry['top_logprobs']).map(convertProbability),
    }),
  );
  return content.length === 0 ? null : { content, refusal: null };
}

const convertProbability = ({ token, logprob, bytes }: JsonRecord): JsonRecord => ({
  token: textIn(token),
  logprob: typeof logprob === 'number' ? logprob : 0,
  bytes: Array.isArray(bytes) ? bytes : null,
});

function readImages({ result, output_format: format }: JsonRecord): ChatDelta[] {
  if (typeof result !== 'string' || result === '') return [];
  const kind = format === 'jpeg' || format === 'webp' ? format : 'png';
  return [{ images: [{ type: 'image_url', image_url: { url: `data:image/${kind};base64,${result}` } }] }];
}
