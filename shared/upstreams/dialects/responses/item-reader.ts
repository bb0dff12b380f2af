/** Shows what is new of an item as canonical chunks. What came in pieces and comes again as a whole is shown once. */
import type { Annotation, ChatChunk, ChatDelta, ToolCallDelta } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, jsonText, parseJson, type JsonRecord } from '../../../wire/json.ts';
import { calledNameMax } from '../../../wire/ids.ts';
import { callsMax, tooLarge, type AnswerWriter } from '../../answer-writer.ts';
import { unwrappedInput } from '../../request-parts.ts';
import {
  callTypes,
  entryBytes,
  opaqueTypes,
  textOf,
  type AnswerItem,
  type OutputItems,
  type TextKind,
  type TextPart,
} from './output-items.ts';

/** Limits the work, since a part is compared with the others of its item. */
const partsMax = 1024;

interface Piece {
  kind: TextKind;
  index: number;
  text: string;
  logprobs: unknown;
}

export class ItemReader {
  readonly #items: OutputItems;
  readonly #writer: AnswerWriter;
  readonly #wrapped: ReadonlySet<string>;
  #anyReasoning = false;

  /** `wrapped`: the custom tools that were sent as functions. */
  constructor(items: OutputItems, writer: AnswerWriter, wrapped: ReadonlySet<string>) {
    this.#items = items;
    this.#writer = writer;
    this.#wrapped = wrapped;
  }

  /** The first event of an item, or what a later one says of it. Its texts wait for pieces or the whole. */
  start(item: AnswerItem, source: JsonRecord): ChatChunk[] {
    item.id ??= this.#word(source['id']);
    item.callId ??= this.#word(source['call_id']);
    item.name ??= this.#word(source['name']);
    item.phase ??= this.#word(source['phase']);
    if ((item.name?.length ?? 0) > calledNameMax) throw tooLarge();
    return callTypes.has(item.type) ? this.#showCall(item, '') : [];
  }

  piece(item: AnswerItem, { kind, index, text, logprobs }: Piece): ChatChunk[] {
    const part = this.#part(item, kind, index);
    if (part.whole || item.closed) return [];
    const probabilities = chatLogprobs(logprobs, 0);
    part.logprobs += probabilities?.content.length ?? 0;
    return this.#show(item, part, text, probabilities);
  }

  /** The whole of one text. `taken`: parts that other texts of the same list belong to. */
  whole(item: AnswerItem, source: WholeText, taken = new Set<TextPart>()): ChatChunk[] {
    const { kind, index, text, part: details } = source;
    const agreeing = (part: TextPart): boolean =>
      part.kind === kind && part.text !== '' && !taken.has(part) && text.startsWith(part.text);
    const exact = item.parts.find((part) => part.kind === kind && part.index === index);
    const part = exact ?? item.parts.find(agreeing) ?? this.#part(item, kind, index);
    taken.add(part);
    const added = text.startsWith(part.text) ? text.slice(part.text.length) : '';
    const logprobs = chatLogprobs(details['logprobs'], part.logprobs);
    part.logprobs += logprobs?.content.length ?? 0;
    part.whole = true;
    const chunks = this.#show(item, part, added, logprobs);
    const notes = details['annotations'];
    return Array.isArray(notes)
      ? [...chunks, ...this.#annotations(part, notes.slice(part.annotations))]
      : chunks;
  }

  /** `place`: the index of the annotation among those of its part. */
  annotation(item: AnswerItem, index: number, note: unknown, place: unknown): ChatChunk[] {
    const part = this.#part(item, 'text', index);
    if (item.closed || (typeof place === 'number' && place < part.annotations)) return [];
    return this.#annotations(part, [note]);
  }

  /** The whole item. */
  end(item: AnswerItem, source: JsonRecord): ChatChunk[] {
    const chunks = this.start(item, source);
    const encrypted = opaqueTypes.has(item.type) && textOf(source['encrypted_content']) !== undefined;
    if (encrypted && !item.opaque) {
      this.#writer.kept.value(source);
      item.opaque = source;
    }
    const taken = new Set<TextPart>();
    for (const whole of wholesOf(source)) chunks.push(...this.whole(item, whole, taken));
    if (callTypes.has(item.type)) chunks.push(...this.#endCall(item, source['status'] !== 'incomplete'));
    if (item.type === 'image_generation_call' && !item.closed)
      chunks.push(...imagesOf(source).map((delta) => this.#writer.delta(delta)));
    item.closed = true;
    return chunks;
  }

  /** What was held of items that never ended. `isComplete`: the upstream called the answer complete. */
  last(isComplete: boolean): ChatChunk[] {
    const open = this.#items.all.filter(({ type, closed }) => callTypes.has(type) && !closed);
    return open.flatMap((item) => this.#endCall(item, isComplete));
  }

  #word(value: unknown): string | undefined {
    const word = textOf(value);
    this.#writer.kept.text(word ?? '');
    return word;
  }

  #part(item: AnswerItem, kind: TextKind, index: number): TextPart {
    const known = item.parts.find((part) => part.kind === kind && part.index === index);
    if (known) return known;
    if (item.parts.length >= partsMax) throw tooLarge();
    this.#writer.kept.bytes(entryBytes);
    const part = { kind, index, text: '', whole: false, start: undefined, annotations: 0, logprobs: 0 };
    item.parts.push(part);
    return part;
  }

  #show(item: AnswerItem, part: TextPart, text: string, logprobs: unknown): ChatChunk[] {
    const isFirst = part.text === '';
    this.#writer.kept.text(text);
    // Such a chunk may be the beginning of an answer, which is held until its first content.
    if (text === '' && logprobs !== null) this.#writer.kept.value(logprobs);
    part.text += text;
    if (part.kind === 'call') return this.#showCall(item, text);
    if (text === '' && (logprobs === null || part.kind !== 'text')) return [];
    if (part.kind === 'text') {
      part.start ??= this.#items.textLength;
      const { phase } = item;
      const isOpening = this.#items.addText(item, text) && phase !== undefined;
      const opening = isOpening ? [this.#writer.delta({ phase })] : [];
      return [...opening, this.#writer.delta({ content: text }, logprobs)];
    }
    if (part.kind === 'refusal') return [this.#writer.delta({ refusal: text })];
    return this.#showReasoning(item, part, isFirst && this.#anyReasoning ? `\n\n${text}` : text);
  }

  /** An item shows its summary or its text, whichever comes first: they say the same. */
  #showReasoning(item: AnswerItem, part: TextPart, text: string): ChatChunk[] {
    const shown = item.parts.find(
      ({ kind, text: own }) => own !== '' && (kind === 'summary' || kind === 'reasoning'),
    );
    if (shown && shown.kind !== part.kind) return [];
    this.#anyReasoning = true;
    return [this.#writer.delta({ reasoning_content: text })];
  }

  #annotations(part: TextPart, notes: readonly unknown[]): ChatChunk[] {
    part.annotations += notes.length;
    const offset = part.start ?? this.#items.textLength;
    const annotations = notes.flatMap((note) => annotationOf(note, offset) ?? []);
    if (annotations.length > 0) this.#writer.kept.value(annotations);
    return annotations.length > 0 ? [this.#writer.delta({ annotations })] : [];
  }

  /**
   * `added`: what is new of its text. Nothing is shown before id and name are known. A custom tool that was sent as a
   * function is shown once its JSON is whole.
   */
  #showCall(item: AnswerItem, added: string): ChatChunk[] {
    if (item.name === undefined || item.callId === undefined || this.#isWrapped(item)) return [];
    if (item.callIndex === undefined) return [this.#firstOfCall(item, callText(item))];
    return added === '' ? [] : [this.#moreOfCall(item, added)];
  }

  /**
   * `isWhole`: the call is not cut. A function without arguments gets an empty object, so that all arguments are JSON.
   * A wrapped call that was cut inside its wrapper is not shown: nobody could run it.
   */
  #endCall(item: AnswerItem, isWhole: boolean): ChatChunk[] {
    const text = callText(item);
    if (this.#isWrapped(item)) {
      const isCut = parseJson(text) === undefined && (!isWhole || text.trimStart().startsWith('{'));
      if (item.callIndex !== undefined || isCut) return [];
      return [this.#firstOfCall(item, unwrappedInput(text), true)];
    }
    const shown = item.callIndex === undefined ? [this.#firstOfCall(item, text)] : [];
    if (item.type !== 'function_call' || text !== '' || !isWhole) return shown;
    // Later events repeat the empty text, and must not be taken for something new.
    const part = callPart(item);
    if (part) part.text = '{}';
    return [...shown, this.#moreOfCall(item, '{}')];
  }

  #isWrapped({ type, name }: AnswerItem): boolean {
    return type === 'function_call' && name !== undefined && this.#wrapped.has(name);
  }

  #firstOfCall(item: AnswerItem, text: string, isCustom = isCustomCall(item)): ChatChunk {
    const index = this.#writer.calls;
    if (index >= callsMax) throw tooLarge();
    item.callIndex = index;
    const { name = '', callId } = item;
    const id = this.#writer.callId(callId);
    return this.#callDelta(
      isCustom
        ? { index, id, type: 'custom', custom: { name, input: text } }
        : { index, id, type: 'function', function: { name, arguments: text } },
    );
  }

  #moreOfCall(item: AnswerItem, text: string): ChatChunk {
    const index = item.callIndex ?? 0;
    return this.#callDelta(
      isCustomCall(item) ? { index, custom: { input: text } } : { index, function: { arguments: text } },
    );
  }

  #callDelta(call: ToolCallDelta): ChatChunk {
    return this.#writer.delta({ tool_calls: [call] });
  }
}

const isCustomCall = ({ type }: AnswerItem): boolean => type === 'custom_tool_call';
const callPart = ({ parts }: AnswerItem): TextPart | undefined => parts.find(({ kind }) => kind === 'call');
const callText = (item: AnswerItem): string => callPart(item)?.text ?? '';

/** A text in a whole output item, as its last event and the list of the whole response hold it. */
interface WholeText {
  kind: TextKind;
  index: number;
  text: string;
  /** The part that holds it, for its annotations and probabilities. */
  part: JsonRecord;
}

const kinds: Partial<Record<string, TextKind>> = {
  output_text: 'text',
  text: 'text',
  refusal: 'refusal',
  summary_text: 'summary',
  reasoning_text: 'reasoning',
};

function wholesOf(item: JsonRecord): WholeText[] {
  const { type, arguments: called, input, summary, content } = item;
  if (type === 'function_call' || type === 'custom_tool_call') {
    const text = jsonText(type === 'function_call' ? called : input);
    return [{ kind: 'call', index: 0, text, part: item }];
  }
  return [summary, content].flatMap((list) =>
    Array.isArray(list) ? list.flatMap((part: unknown, index) => wholeOfPart(part, index)) : [],
  );
}

/** The text of one part; none for parts of other types. */
export function wholeOfPart(part: unknown, index: number): WholeText[] {
  if (!isRecord(part) || typeof part['type'] !== 'string') return [];
  const kind = kinds[part['type']];
  const text = kind === 'refusal' ? part['refusal'] : part['text'];
  return kind && typeof text === 'string' ? [{ kind, index, text, part }] : [];
}

/** Whether what was read of an item is the beginning of a whole one. */
export function agrees(item: AnswerItem, source: JsonRecord): boolean {
  const wholes = wholesOf(source);
  return item.parts.every(
    ({ kind, text }) =>
      text === '' || wholes.some((each) => each.kind === kind && each.text.startsWith(text)),
  );
}

/** `offset`: where the annotated part begins in the whole visible text. Undefined for annotations of other kinds. */
function annotationOf(note: unknown, offset: number): Annotation | undefined {
  const { type, url, title, start_index: start, end_index: end, index, ...file } = asRecord(note);
  const range = { start_index: offset + indexOf(start), end_index: offset + indexOf(end) };
  if (type === 'url_citation' && typeof url === 'string')
    return { type, url_citation: { url, title: textOf(title) ?? '', ...range } };
  const { file_id: fileId, filename, container_id: container } = file;
  if (typeof fileId !== 'string') return undefined;
  const named = { file_id: fileId, filename: textOf(filename) ?? '' };
  if (type === 'file_citation') return { type, ...named, index: indexOf(index) };
  if (type === 'file_path') return { type, file_id: fileId, index: indexOf(index) };
  if (type !== 'container_file_citation') return undefined;
  return { type, container_id: textOf(container) ?? '', ...named, ...range };
}

const indexOf = (value: unknown): number => (typeof value === 'number' && value >= 0 ? Math.floor(value) : 0);

/** The probabilities from the given one on. Null if there are none. */
function chatLogprobs(list: unknown, from: number): { content: JsonRecord[]; refusal: null } | null {
  const entries = Array.isArray(list) ? list.slice(from).filter(isRecord) : [];
  if (entries.length === 0) return null;
  const content = entries.map((entry) => {
    const { top_logprobs: top } = entry;
    const likeliest = Array.isArray(top) ? top.filter(isRecord).map(probability) : [];
    return Object.assign(probability(entry), { top_logprobs: likeliest });
  });
  return { content, refusal: null };
}

const probability = ({ token, logprob, bytes }: JsonRecord): JsonRecord => ({
  token: typeof token === 'string' ? token : '',
  logprob: typeof logprob === 'number' ? logprob : 0,
  bytes: Array.isArray(bytes) ? bytes : null,
});

/** A finished image, as a data URL. */
function imagesOf({ result, output_format: format }: JsonRecord): ChatDelta[] {
  if (typeof result !== 'string' || result === '') return [];
  const kind = format === 'jpeg' || format === 'webp' ? format : 'png';
  return [{ images: [{ type: 'image_url', image_url: { url: `data:image/${kind};base64,${result}` } }] }];
}
