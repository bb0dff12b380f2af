/** Shows what is new of an item as canonical chunks. What came in pieces and comes again as a whole is shown once. */
import type { ChatChunk } from '../../../wire/chat-response.ts';
import type { JsonRecord } from '../../../wire/json-record.ts';
import type { ReaderContext } from '../../dialect.ts';
import { calledNameMax } from '../../../wire/name-patterns.ts';
import { UpstreamFailure } from '../../upstream-failure.ts';
import { AnswerCalls } from './answer-calls.ts';
import { textOf, type AnswerItem, type TextKind, type TextPart } from './output-items.ts';
import { entryBytes, type AnswerTurn } from './answer-turn.ts';
import { wholesOf, type WholeText } from './item-wholes.ts';
import { annotationOf, chatLogprobs, imageDelta } from './text-details.ts';

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
    const encrypted = opaqueTypes.has(item.type) && textOf(source['encrypted_content']) !== undefined;
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
    const word = textOf(value);
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
