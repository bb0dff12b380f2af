/**
 * Converts the answers of Messages upstreams, events or one whole message, to canonical chunks: text with its
 * citations, thinking with its signature, tool calls. Leaves out blocks that the upstream ran itself. Does not trust
 * the order: a start may be missing or come twice, an index may be missing or used again.
 */
import {
  type ChatChunk,
  type ChatDelta,
  type FinishReason,
  type ToolCallDelta,
  type UrlCitation,
  GrowingText,
} from '../../../wire/chat-response.ts';
import {
  asRecord,
  isRecord,
  listIn,
  parseJson,
  recordsIn,
  textIn,
  type JsonRecord,
} from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, AnswerReport, ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure } from '../../exchange.ts';
import { AnswerWriter, callsMax, tooLargeFailure, type VendorCounts } from '../../answer-writer.ts';
import { findError } from '../../vendor-errors.ts';
import { unwrapInput } from '../../request-fields.ts';
import { deltaKinds, isContent, isWholeMessage, NativeEvents } from './native-events.ts';

/** Compatible endpoints send anything, so each field is checked. */
type Message = Partial<
  Record<'role' | 'content' | 'stop_reason' | 'stop_details' | 'usage' | 'input_transformations', unknown>
>;
type MessagesEvent = Message &
  Partial<Record<'type' | 'index' | 'message' | 'content_block' | 'delta' | 'error', unknown>>;

/** The stop reasons that Messages clients know. Synonyms from compatible endpoints are replaced by one of them. */
const ownReasons = new Set<unknown>(
  'end_turn stop_sequence tool_use max_tokens refusal pause_turn model_context_window_exceeded compaction'.split(
    ' ',
  ),
);
const reasonOfMeaning: Record<FinishReason, string> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal',
};

export class MessagesReader implements AnswerReader {
  done = false;
  readonly #writer: AnswerWriter;
  readonly #blocks: ContentBlocks;
  /** Only for clients that speak Messages. */
  readonly #native: NativeEvents | undefined;
  #isUnderstood = false;
  #finish: FinishReason | undefined;
  /** The stop reason that Messages clients get. */
  #shownReason: unknown;
  /** The vendor does not document which usage event carries `speed`. */
  #speed: unknown;
  readonly #asksFast: boolean;
  /** A message with content in `message_start`. It is the answer unless events of blocks follow. */
  #earlyMessage: Message | undefined;

  constructor(context: ReaderContext) {
    this.#writer = new AnswerWriter(context);
    this.#blocks = new ContentBlocks(this.#writer, context.sent.wrappedTools);
    this.#native = context.sent.isNative ? new NativeEvents(this.#writer.memory, context.callIds) : undefined;
    this.#asksFast = context.sent.body['speed'] === 'fast';
  }

  get finishedChoices(): number {
    return this.#finish === undefined ? 0 : 1;
  }

  report(): AnswerReport {
    return this.#writer.report(this.#blocks.all.flatMap(describeBlock));
  }

  /** The end mark came, or a stop reason and the end of every block. */
  get #isComplete(): boolean {
    return this.done || (this.#finish !== undefined && !this.#blocks.all.some(({ isOpen }) => isOpen));
  }

  push(event: UpstreamEvent): ChatChunk[] {
    if (this.done) return [];
    if (event.kind === 'done') {
      this.done = this.#finish !== undefined;
      return [];
    }
    if (!isRecord(event.value)) return [];
    const value: MessagesEvent = event.value;
    if (value.type !== 'error' && !isRecord(value.error)) {
      const chunks = this.#writeDeltas(this.#read(value));
      return attachNativeEvents(chunks, this.#native?.push(this.#renameReason(value)), this.#writer);
    }
    if (this.#isComplete) return [];
    throw new ErrorInAnswer(findError(value) ?? {});
  }

  end(): ChatChunk[] {
    const early = this.#writeDeltas(this.#readEarly());
    const { hasBlocks } = this.#blocks;
    if (!this.#isComplete) throw new UpstreamFailure(this.#isUnderstood || hasBlocks ? 'cut' : 'junk');
    if (this.#finish === undefined && !hasBlocks) throw new UpstreamFailure('empty');
    // A client runs the calls of a complete answer.
    const isWithheld = this.#finish === 'length' || this.#finish === 'content_filter';
    if (!isWithheld && this.#blocks.all.some(isCutCall)) throw new UpstreamFailure('cut');
    const last = [...early, ...this.#writeDeltas(this.#blocks.closeAll())];
    const shown = attachNativeEvents(last, this.#native?.end(), this.#writer);
    return [...shown, ...this.#writer.finish(this.#finish ?? 'stop', this.#writer.callCount > 0)];
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    const early = this.#writeDeltas(this.#readEarly());
    if (this.#isComplete) return [...early, ...this.end()];
    throw error;
  }

  #writeDeltas(deltas: readonly ChatDelta[]): ChatChunk[] {
    return deltas.map((delta) => this.#writer.writeDelta(delta));
  }

  #read(value: MessagesEvent): ChatDelta[] {
    const { type, index } = value;
    switch (type) {
      case 'message_start': {
        this.#isUnderstood = true;
        const message: Message = asRecord(value.message);
        this.#note(message);
        if (isFilled(message.content)) this.#earlyMessage = message;
        return [];
      }
      case 'content_block_start': {
        const early = this.#isAfterEarly(index) ? this.#readEarly() : [];
        return [...early, ...this.#blocks.startBlock(index, asRecord(value.content_block))];
      }
      case 'content_block_delta':
        return this.#blocks.readDelta(index, asRecord(value.delta));
      case 'content_block_stop':
        return this.#blocks.stopBlock(index);
      case 'message_delta':
        this.#isUnderstood = true;
        this.#note(value);
        return [...this.#readEarly(), ...this.#stop(asRecord(value.delta))];
      case 'message_stop':
        this.done = this.#isUnderstood || this.#blocks.hasBlocks;
        return this.#readEarly();
      default:
        if (!isWholeMessage(value)) return [];
        this.#isUnderstood = true;
        this.#note(value);
        this.done = true;
        return this.#readMessage(value);
    }
  }

  #isAfterEarly(index: unknown): boolean {
    return (
      typeof index === 'number' &&
      this.#earlyMessage !== undefined &&
      index >= listIn(this.#earlyMessage.content).length
    );
  }

  /** Blocks of the events replace those of the early message. */
  #readEarly(): ChatDelta[] {
    const message = this.#earlyMessage;
    this.#earlyMessage = undefined;
    return message && !this.#blocks.hasBlocks ? this.#readMessage(message) : [];
  }

  #readMessage(message: Message): ChatDelta[] {
    const deltas = listIn(message.content).flatMap((block, index) =>
      this.#blocks.startBlock(index, asRecord(block)).concat(this.#blocks.stopBlock(index)),
    );
    return [...deltas, ...this.#stop(message)];
  }

  /** Shows the vendor's explanation of a refusal, if there is one. */
  #stop({ stop_reason: reason, stop_details: details }: Message): ChatDelta[] {
    const ending = this.#writer.readFinish(reason);
    if (ending === undefined) return [];
    if (ending === 'failed') throw new ErrorInAnswer({});
    if (ending === 'unknown' && !this.#blocks.all.some(isAnswer)) throw new UpstreamFailure('empty');
    this.#finish = ending === 'unknown' ? 'stop' : ending;
    this.#shownReason = ending === 'unknown' || ownReasons.has(reason) ? reason : reasonOfMeaning[ending];
    const explanation = textIn(asRecord(details)['explanation']);
    return reason === 'refusal' && explanation !== '' ? [{ refusal: explanation }] : [];
  }

  #renameReason(event: MessagesEvent): MessagesEvent {
    const { type, delta, stop_reason: whole } = event;
    const { stop_reason: reason } = asRecord(delta);
    const shown = { stop_reason: this.#shownReason };
    if (type === 'message_delta' && reason !== shown.stop_reason && textIn(reason) !== '')
      return { ...event, delta: { ...asRecord(delta), ...shown } };
    return isWholeMessage(event) && textIn(whole) !== '' ? { ...event, ...shown } : event;
  }

  #note({ usage, input_transformations: transformations }: Message): void {
    const { speed = this.#speed, service_tier: capacity } = asRecord(usage);
    this.#speed = speed;
    // Capacity may be called `priority`, which means fast mode elsewhere, so it says nothing about the requested
    // speed.
    const isSpeedStated = speed === 'fast' || (this.#asksFast && typeof speed === 'string');
    this.#writer.noteUsage(countsOf(usage), isSpeedStated ? speed : capacity);
    this.#writer.noteTransformations(transformations);
  }
}

/** An empty text is filled by later events. */
const isFilled = (content: unknown): boolean =>
  listIn(content).some((block) => asRecord(block)['text'] !== '');

/** `message_start` has the input, `message_delta` the output and often the input again. */
export function countsOf(usage: unknown): VendorCounts | undefined {
  if (!isRecord(usage)) return undefined;
  const topLevel = readCounts(usage);
  const runs = recordsIn(usage['iterations']).map(readCounts);
  if (runs.length === 0) return topLevel;
  // Several runs at the upstream, such as a summary before the answer, are charged together. The vendor's own count
  // does not include all of them.
  const sum: VendorCounts = { ...topLevel, ...runs.reduce(addCounts, {}) };
  const isLess = Object.entries(topLevel).some(
    ([name, count]) => typeof count === 'number' && !(Number(sum[name as keyof VendorCounts]) >= count),
  );
  return isLess ? topLevel : { ...sum, topLevel };
}

function readCounts(usage: JsonRecord): VendorCounts {
  const lifetimes = asRecord(usage['cache_creation']);
  return {
    input: usage['input_tokens'],
    output: usage['output_tokens'],
    reasoning: asRecord(usage['output_tokens_details'])['thinking_tokens'],
    cached: usage['cache_read_input_tokens'],
    written: usage['cache_creation_input_tokens'],
    writtenForMinutes: lifetimes['ephemeral_5m_input_tokens'],
    writtenForHour: lifetimes['ephemeral_1h_input_tokens'],
    cacheIsApart: true,
  };
}

/** A count that both runs lack stays unknown. */
function addCounts(a: VendorCounts, b: VendorCounts): VendorCounts {
  const { cacheIsApart: _, ...names } = { ...a, ...b };
  const sums = (Object.keys(names) as (keyof typeof names)[])
    .filter((name) => (a[name] ?? b[name]) !== undefined)
    .map((name) => [name, Number(a[name] ?? 0) + Number(b[name] ?? 0)]);
  return { ...Object.fromEntries(sums), cacheIsApart: true };
}

/** The vendor's own limit on names of tools. */
const nameMax = 128;
const blockBytes = 512;
const blocksMax = 4096;

type BlockKind = 'text' | 'thinking' | 'redacted_thinking' | 'tool_use' | 'other';

interface Block {
  kind: BlockKind;
  /** The start of the block, with all fields that the vendor wants back. */
  source: JsonRecord;
  /** For a call, the JSON of its input. */
  text: GrowingText;
  length: number;
  from: number;
  signature: string;
  isOpen: boolean;
  /** The index that clients see. Undefined until a call is shown. */
  call: number | undefined;
  /** Held until the block ends, because they refer to all of its text. */
  citations: { url: string; title: string }[];
}

class ContentBlocks {
  readonly all: Block[] = [];
  readonly #writer: AnswerWriter;
  readonly #wrapped: ReadonlySet<string>;
  readonly #byIndex = new Map<number, Block>();
  #textLength = 0;

  /** `wrapped`: the tools that were sent as functions with one text `input`. */
  constructor(writer: AnswerWriter, wrapped: ReadonlySet<string>) {
    this.#writer = writer;
    this.#wrapped = wrapped;
  }

  get hasBlocks(): boolean {
    return this.all.length > 0;
  }

  startBlock(index: unknown, source: JsonRecord): ChatDelta[] {
    const found = this.#find(index);
    if (!found?.isOpen) return this.#open(index, source);
    // A repeated start has the same id (calls), data (hidden thinking) or kind (others).
    const isSame = ['type', 'id', 'data'].every((field) => found.source[field] === source[field]);
    if (!isSame) return [...this.#close(found), ...this.#open(index, source)];
    return found.kind === 'text' || found.kind === 'thinking' ? this.#push(found, source) : [];
  }

  readDelta(index: unknown, delta: JsonRecord): ChatDelta[] {
    const kind = deltaKinds.get(delta['type']);
    const found = this.#find(index);
    if (!kind || found?.kind === 'other') return [];
    if (found?.kind === kind) return this.#push(found, delta);
    // A call without a start has no name and cannot be run.
    if (kind === 'tool_use') return [];
    const before = found?.isOpen ? this.#close(found) : [];
    const opened = this.#open(index, { type: kind });
    const block = this.all.at(-1);
    return [...before, ...opened, ...(block ? this.#push(block, delta) : [])];
  }

  stopBlock(index: unknown): ChatDelta[] {
    const block = this.#find(index);
    return block?.isOpen ? this.#close(block) : [];
  }

  /** Closes open blocks after the end mark. A thinking block that was cut before its signature is not state. */
  closeAll(): ChatDelta[] {
    return this.all.filter(({ isOpen }) => isOpen).flatMap((block) => this.#close(block, true));
  }

  /** Without an index, the latest block. */
  #find(index: unknown): Block | undefined {
    return typeof index === 'number' ? this.#byIndex.get(index) : this.all.at(-1);
  }

  #open(index: unknown, source: JsonRecord): ChatDelta[] {
    if (this.all.length >= blocksMax) throw tooLargeFailure();
    const kind = kinds.find((each) => each === source['type']) ?? 'other';
    const keptFields = pickKeptFields(kind, source);
    this.#writer.memory.bytes(blockBytes);
    this.#writer.memory.value(keptFields);
    const block: Block = {
      kind,
      source: keptFields,
      text: new GrowingText(),
      length: 0,
      from: this.#textLength,
      signature: '',
      isOpen: true,
      call: undefined,
      citations: [],
    };
    this.all.push(block);
    if (typeof index === 'number') this.#byIndex.set(index, block);
    if (kind !== 'tool_use') return this.#push(block, source);
    const name = textIn(source['name']);
    if (name.length > nameMax) throw tooLargeFailure();
    return this.#wrapped.has(name)
      ? []
      : this.#showCall(block, { type: 'function', function: { name, arguments: '' } });
  }

  /** Reads a piece, or a start that contains the whole block. */
  #push(block: Block, piece: JsonRecord): ChatDelta[] {
    const { memory } = this.#writer;
    if (block.kind === 'tool_use') return callPiece(block, this.#add(block, piece['partial_json']));
    if (block.kind === 'text') {
      const citations = Array.isArray(piece['citations']) ? piece['citations'] : [piece['citation']];
      for (const citation of citations.flatMap(readCitation)) {
        memory.value(citation);
        block.citations.push(citation);
      }
      const text = this.#add(block, piece['text']);
      this.#textLength += text.length;
      return text === '' ? [] : [{ content: text }];
    }
    if (block.kind !== 'thinking') return [];
    const signature = textIn(piece['signature']);
    memory.text(signature);
    block.signature += signature;
    const text = this.#add(block, piece['thinking']);
    return text === '' ? [] : [{ reasoning_content: text }];
  }

  #add(block: Block, value: unknown): string {
    const text = textIn(value);
    this.#writer.memory.text(text);
    block.text.add(text);
    block.length += text.length;
    return text;
  }

  #close(block: Block, isCut = false): ChatDelta[] {
    block.isOpen = false;
    if (isCut && block.kind === 'thinking' && block.signature === '') block.kind = 'other';
    if (block.kind === 'tool_use') return this.#endCall(block, isCut);
    if (block.citations.length === 0) return [];
    const range = { start_index: block.from, end_index: block.from + block.length };
    const annotations = block.citations.map((citation): UrlCitation => ({
      type: 'url_citation',
      url_citation: { ...citation, ...range },
    }));
    return [{ annotations }];
  }

  #showCall(block: Block, call: Omit<ToolCallDelta, 'index'>): ChatDelta[] {
    const index = this.#writer.callCount;
    if (index >= callsMax) throw tooLargeFailure();
    block.call = index;
    return [{ tool_calls: [{ index, id: this.#writer.assignCallId(textIn(block.source['id'])), ...call }] }];
  }

  /**
   * A call without pieces has its input in its start, or gets an empty object, so that all arguments are JSON. A
   * wrapped call becomes a custom call once its JSON is complete; if it was cut inside, it is never shown, so that
   * nobody runs it.
   */
  #endCall(block: Block, isCut: boolean): ChatDelta[] {
    const { text, source } = block;
    const isWithoutPieces = text.text.trim() === '';
    if (isWithoutPieces) text.add(serializeInput(source['input']));
    const name = textIn(source['name']);
    const whole = text.text;
    if (!this.#wrapped.has(name)) return isWithoutPieces ? callPiece(block, whole) : [];
    const input = unwrapInput(whole);
    // A text without a wrapper is complete only if its block ended.
    const isWhole = isCut
      ? input !== '' && input !== whole
      : parseJson(whole) !== undefined || !whole.trimStart().startsWith('{');
    return isWhole ? this.#showCall(block, { type: 'custom', custom: { name, input } }) : [];
  }
}

// The upstream's own events, for a client that speaks Messages.

/** Attaches each event to a chunk of its own. */
function attachNativeEvents(
  chunks: ChatChunk[],
  events: readonly JsonRecord[] = [],
  writer: AnswerWriter,
): ChatChunk[] {
  const carriers = events.map((event, i) => {
    const chunk = chunks[i] ?? writer.writeDelta({});
    return { ...chunk, native: { event, isContent: isContent(event) } };
  });
  return [...carriers, ...chunks.slice(events.length)];
}

const kinds = ['text', 'thinking', 'redacted_thinking', 'tool_use'] as const;

/** True for text, calls and unknown blocks; false for thinking. */
const isAnswer = ({ kind, length }: Block): boolean =>
  kind === 'text' ? length > 0 : kind === 'tool_use' || kind === 'other';

/** A call without its end and with incomplete arguments. */
const isCutCall = ({ kind, isOpen, text: { text } }: Block): boolean =>
  kind === 'tool_use' && isOpen && text !== '' && parseJson(text) === undefined;

const callPiece = ({ call: index }: Block, text: string): ChatDelta[] =>
  index === undefined || text === '' ? [] : [{ tool_calls: [{ index, function: { arguments: text } }] }];

const serializeInput = (input: unknown): string =>
  isRecord(input) ? JSON.stringify(input) : textIn(input) || '{}';

/**
 * The fields of a block's start that are kept. For text, those that identify a repeated start. For thinking, all that
 * goes back; its text and signature are kept separately, but hold their position so that the order of fields stays.
 */
function pickKeptFields(kind: BlockKind, source: JsonRecord): JsonRecord {
  const { type, id, data, thinking, signature } = source;
  if (kind === 'other') return {};
  if (kind === 'text') return { type, id, data };
  if (kind !== 'thinking') return source;
  return {
    ...source,
    ...(typeof thinking === 'string' && { thinking: '' }),
    ...(typeof signature === 'string' && { signature: '' }),
  };
}

/** Reads citations of web pages and of search results with an address. Others refer to the client's own documents. */
function readCitation(value: unknown): { url: string; title: string }[] {
  const { url, source, title } = asRecord(value);
  const address = textIn(url) || textIn(source);
  return /^https?:\/\//i.test(address) ? [{ url: address, title: textIn(title) }] : [];
}

/** Empty text is skipped, because it would not be sent back. Complete thinking goes back as it was signed. */
function describeBlock({ kind, source, text, length, signature, isOpen, call }: Block): StatePart[] {
  if (kind === 'text') return length === 0 ? [] : [{ text: length }];
  if (kind === 'redacted_thinking') return [{ opaque: source }];
  if (kind !== 'thinking') return call === undefined ? [] : [{ call }];
  const signed = signature === '' ? {} : { signature };
  return isOpen ? [] : [{ opaque: { ...source, thinking: text.text, ...signed } }];
}
