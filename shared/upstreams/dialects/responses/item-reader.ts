/** Shows what is new of an item as canonical chunks. What came in pieces and comes again as a whole is shown once. */
import type { ChatChunk, ToolCallDelta, Annotation, ChatDelta } from '../../../wire/chat-response.ts';
import { type JsonRecord, parseJson, isRecord, asRecord } from '../../../wire/json.ts';
import type { ReaderContext } from '../../dialect.ts';
import { calledNameMax } from '../../../wire/ids.ts';
import { UpstreamFailure } from '../../exchange.ts';
import {
  textOf as outputItemsTextOf,
  type AnswerItem,
  type TextKind,
  type TextPart,
  entryBytes,
  type AnswerTurn,
} from './output-items.ts';
import { unwrappedInput } from '../../request-parts.ts';

/** Limits the work, since a part is compared with the others of its item. */
const partsMax = 1024;
/** Items that the vendor wants back as they are, if they are encrypted. */
const opaqueTypes = new Set(['reasoning', 'compaction']);
const callTypes = new Set(['function_call', 'custom_tool_call']);

/** Whether an item without visible text has a place in the layout of the turn. */
export const hasPlace = ({ type }: AnswerItem): boolean => opaqueTypes.has(type) || callTypes.has(type);

interface Piece {
  kind: TextKind;
  index: number;
  text: string;
  logprobs: unknown;
}

export class ItemReader {
  readonly #turn: AnswerTurn;
  readonly #calls: AnswerCalls;

  constructor(turn: AnswerTurn, context: Pick<ReaderContext, 'callIds' | 'sent'>) {
    this.#turn = turn;
    this.#calls = new AnswerCalls(turn, context);
  }

  get anyCalls(): boolean {
    return this.#calls.any;
  }

  /** The first event of an item, or what a later one says of it. Its texts wait for pieces or the whole. */
  start(item: AnswerItem, source: JsonRecord): ChatChunk[] {
    item.id ??= this.#word(source['id']);
    item.callId ??= this.#word(source['call_id']);
    item.name ??= this.#word(source['name']);
    item.phase ??= this.#word(source['phase']);
    if ((item.name?.length ?? 0) > calledNameMax) throw new UpstreamFailure('too_large');
    return callTypes.has(item.type) ? this.#calls.show(item, '') : [];
  }

  piece(item: AnswerItem, { kind, index, text, logprobs }: Piece): ChatChunk[] {
    const part = this.#part(item, kind, index);
    if (part.whole || item.closed) return [];
    const probabilities = chatLogprobs(logprobs, 0);
    part.logprobs += probabilities?.content.length ?? 0;
    return this.#show(item, part, { text, logprobs: probabilities });
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
    const chunks = this.#show(item, part, { text: added, logprobs });
    const notes = details['annotations'];
    return Array.isArray(notes)
      ? [...chunks, ...this.#annotations(part, notes.slice(part.annotations))]
      : chunks;
  }

  annotation(
    item: AnswerItem,
    index: number,
    { note, place }: { note: unknown; place: unknown },
  ): ChatChunk[] {
    const part = this.#part(item, 'text', index);
    if (item.closed || (typeof place === 'number' && place < part.annotations)) return [];
    return this.#annotations(part, [note]);
  }

  /** The whole item. */
  end(item: AnswerItem, source: JsonRecord): ChatChunk[] {
    const chunks = this.start(item, source);
    const encrypted =
      opaqueTypes.has(item.type) && outputItemsTextOf(source['encrypted_content']) !== undefined;
    if (encrypted && !item.opaque) {
      this.#turn.kept.value(source);
      item.opaque = source;
    }
    const taken = new Set<TextPart>();
    for (const whole of wholesOf(source)) chunks.push(...this.whole(item, whole, taken));
    if (callTypes.has(item.type)) chunks.push(...this.#calls.end(item, source['status'] !== 'incomplete'));
    if (item.type === 'image_generation_call' && !item.closed) {
      const image = imageDelta(source);
      if (image) chunks.push(this.#turn.delta(image));
    }
    item.closed = true;
    return chunks;
  }

  /** What was held of items that never ended. `isComplete`: the upstream called the answer complete. */
  last(items: readonly AnswerItem[], isComplete: boolean): ChatChunk[] {
    const open = items.filter(({ type, closed }) => callTypes.has(type) && !closed);
    return open.flatMap((item) => this.#calls.end(item, isComplete));
  }

  #word(value: unknown): string | undefined {
    const word = outputItemsTextOf(value);
    this.#turn.kept.text(word ?? '');
    return word;
  }

  #part(item: AnswerItem, kind: TextKind, index: number): TextPart {
    const known = item.parts.find((part) => part.kind === kind && part.index === index);
    if (known) return known;
    if (item.parts.length >= partsMax) throw new UpstreamFailure('too_large');
    this.#turn.kept.bytes(entryBytes);
    const part = { kind, index, text: '', whole: false, start: undefined, annotations: 0, logprobs: 0 };
    item.parts.push(part);
    return part;
  }

  #show(
    item: AnswerItem,
    part: TextPart,
    { text, logprobs }: { text: string; logprobs: unknown },
  ): ChatChunk[] {
    const isFirst = part.text === '';
    this.#turn.kept.text(text);
    // Such a chunk may be the beginning of an answer, which is held until its first content.
    if (text === '' && logprobs !== null) this.#turn.kept.value(logprobs);
    part.text += text;
    if (part.kind === 'call') return this.#calls.show(item, text);
    if (text === '' && (logprobs === null || part.kind !== 'text')) return [];
    if (part.kind === 'text') {
      part.start ??= this.#turn.contentLength;
      return this.#turn.text(item, text, logprobs);
    }
    if (part.kind === 'refusal') return [this.#turn.delta({ refusal: text })];
    return this.#showReasoning(
      item,
      part,
      isFirst ? `${this.#turn.anyReasoning ? '\n\n' : ''}${text}` : text,
    );
  }

  /** An item shows its summary or its text, whichever comes first: they say the same. */
  #showReasoning(item: AnswerItem, part: TextPart, text: string): ChatChunk[] {
    const shown = item.parts.find(
      ({ kind, text: own }) => own !== '' && (kind === 'summary' || kind === 'reasoning'),
    );
    if (shown && shown.kind !== part.kind) return [];
    this.#turn.anyReasoning = true;
    return [this.#turn.delta({ reasoning_content: text })];
  }

  #annotations(part: TextPart, notes: readonly unknown[]): ChatChunk[] {
    part.annotations += notes.length;
    const offset = part.start ?? this.#turn.contentLength;
    const annotations = notes.flatMap((note) => annotationOf(note, offset) ?? []);
    if (annotations.length > 0) this.#turn.kept.value(annotations);
    return annotations.length > 0 ? [this.#turn.delta({ annotations })] : [];
  }
}

// Shows tool calls as canonical pieces: a dense index, an id of its own for each, id and name in the first piece.

/** Eight times what OpenAI allows. */
const callsMax = 1024;

class AnswerCalls {
  readonly #turn: AnswerTurn;
  readonly #context: Pick<ReaderContext, 'callIds' | 'sent'>;
  readonly #shownIds = new Set<string>();
  #count = 0;

  constructor(turn: AnswerTurn, context: Pick<ReaderContext, 'callIds' | 'sent'>) {
    this.#turn = turn;
    this.#context = context;
  }

  get any(): boolean {
    return this.#count > 0;
  }

  /**
   * `added`: what is new of its text. Nothing is shown before id and name are known. A custom tool that was sent as a
   * function is shown once its JSON is whole.
   */
  show(item: AnswerItem, added: string): ChatChunk[] {
    if (item.name === undefined || item.callId === undefined || this.#isWrapped(item)) return [];
    if (item.callIndex === undefined) return [this.#first(item, textOfCall(item))];
    return added === '' ? [] : [this.#more(item, item.callIndex, added)];
  }

  /**
   * `isWhole`: the call is not cut. A function without arguments gets an empty object, so that all arguments are JSON.
   */
  end(item: AnswerItem, isWhole: boolean): ChatChunk[] {
    if (this.#isWrapped(item)) return this.#unwrap(item, isWhole);
    const part = item.parts.find(({ kind }) => kind === 'call');
    const index = item.callIndex ?? this.#count;
    const shown = item.callIndex === undefined ? [this.#first(item, part?.text ?? '')] : [];
    if (item.type !== 'function_call' || (part && part.text !== '') || !isWhole) return shown;
    // Later events repeat the empty text, and must not be taken for something new.
    if (part) part.text = '{}';
    return [...shown, this.#more(item, index, '{}')];
  }

  #isWrapped({ type, name }: AnswerItem): boolean {
    return type === 'function_call' && name !== undefined && this.#context.sent.wrapped.has(name);
  }

  /** A call that was cut inside its wrapper is not shown: nobody could run it. */
  #unwrap(item: AnswerItem, isWhole: boolean): ChatChunk[] {
    const text = textOfCall(item);
    const isCut = parseJson(text) === undefined && (!isWhole || text.trimStart().startsWith('{'));
    if (item.callIndex !== undefined || isCut) return [];
    return [this.#first({ ...item, type: 'custom_tool_call' }, unwrappedInput(text), item)];
  }

  #first(as: AnswerItem, text: string, item = as): ChatChunk {
    const index = this.#count;
    if (index >= callsMax) throw new UpstreamFailure('too_large');
    this.#count += 1;
    item.callIndex = index;
    const name = item.name ?? '';
    const id = this.#id(item.callId, index);
    const isCustom = as.type === 'custom_tool_call';
    return this.#delta(
      isCustom
        ? { index, id, type: 'custom', custom: { name, input: text } }
        : { index, id, type: 'function', function: { name, arguments: text } },
    );
  }

  #more({ type }: AnswerItem, index: number, text: string): ChatChunk {
    const isCustom = type === 'custom_tool_call';
    return this.#delta(
      isCustom ? { index, custom: { input: text } } : { index, function: { arguments: text } },
    );
  }

  /** An id that came before is not shown twice: results would be mixed up. */
  #id(callId: string | undefined, index: number): string {
    const own = this.#context.callIds.show(callId, index);
    const id = this.#shownIds.has(own) ? this.#context.callIds.show(undefined, index) : own;
    this.#shownIds.add(id);
    return id;
  }

  #delta(call: ToolCallDelta): ChatChunk {
    return this.#turn.delta({ tool_calls: [call] });
  }
}

const textOfCall = ({ parts }: AnswerItem): string => parts.find(({ kind }) => kind === 'call')?.text ?? '';

// The texts in a whole output item, as its last event and the list of the whole response hold them.

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
  if (item['type'] === 'function_call')
    return [{ kind: 'call', index: 0, text: argumentsText(item['arguments']), part: item }];
  if (item['type'] === 'custom_tool_call')
    return [{ kind: 'call', index: 0, text: argumentsText(item['input']), part: item }];
  return [item['summary'], item['content']].flatMap((list) =>
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

/** Arguments as text; some servers send the object itself. */
export function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

// What comes beside a text, in the form of Chat Completions: citations, probabilities of tokens, images.

/** `offset`: where the annotated part begins in the whole visible text. Undefined for annotations of other kinds. */
function annotationOf(note: unknown, offset: number): Annotation | undefined {
  const { type, url, title, start_index: start, end_index: end, index, ...file } = asRecord(note);
  const range = { start_index: offset + indexOf(start), end_index: offset + indexOf(end) };
  if (type === 'url_citation' && typeof url === 'string')
    return { type, url_citation: { url, title: textOf(title), ...range } };
  const fileId = file['file_id'];
  if (typeof fileId !== 'string') return undefined;
  const named = { file_id: fileId, filename: textOf(file['filename']) };
  if (type === 'file_citation') return { type, ...named, index: indexOf(index) };
  if (type === 'file_path') return { type, file_id: fileId, index: indexOf(index) };
  if (type !== 'container_file_citation') return undefined;
  return { type, container_id: textOf(file['container_id']), ...named, ...range };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
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
function imageDelta({ result, output_format: format }: JsonRecord): ChatDelta | undefined {
  if (typeof result !== 'string' || result === '') return undefined;
  const kind = format === 'jpeg' || format === 'webp' ? format : 'png';
  return { images: [{ type: 'image_url', image_url: { url: `data:image/${kind};base64,${result}` } }] };
}
