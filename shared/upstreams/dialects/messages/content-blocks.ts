/**
 * Reads the content blocks of an answer: text with its citations, thinking with its signature, tool calls. Blocks that
 * the upstream ran itself are left out. Order is not trusted: a start may be missing or come twice, an index may be
 * missing or used again.
 */
import {
  type ChatDelta,
  type ToolCallDelta,
  type UrlCitation,
  GrowingText,
} from '../../../wire/chat-response.ts';
import { isRecord, parseJson, type JsonRecord } from '../../../wire/json.ts';
import { calledNameMax } from '../../../wire/ids.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import { callsMax, telling, tooLarge, type AnswerWriter } from '../../answer-writer.ts';
import { unwrappedInput } from '../../request-parts.ts';

const blockBytes = 512;
const blocksMax = 4096;

type BlockKind = 'text' | 'thinking' | 'redacted_thinking' | 'tool_use' | 'other';

interface Block {
  kind: BlockKind;
  /** The block as it started, with all fields that the vendor wants back. */
  source: JsonRecord;
  /** Of a call, the JSON of its input. */
  text: GrowingText;
  length: number;
  /** Where its text begins in the visible text. */
  from: number;
  signature: string;
  isOpen: boolean;
  /** The index that clients see. Undefined: it is no call, or one that is not shown, or not yet. */
  call: number | undefined;
  /** Held until the block ends, since they are about all of its text. */
  citations: { url: string; title: string }[];
}

export class ContentBlocks {
  readonly #writer: AnswerWriter;
  readonly #wrapped: ReadonlySet<string>;
  readonly #blocks: Block[] = [];
  /** The latest of each index. */
  readonly #byIndex = new Map<number, Block>();
  /** Of the visible text so far. */
  #textLength = 0;

  /** `wrapped`: the tools that were sent as functions with one text `input`. */
  constructor(writer: AnswerWriter, wrapped: ReadonlySet<string>) {
    this.#writer = writer;
    this.#wrapped = wrapped;
  }

  get any(): boolean {
    return this.#blocks.length > 0;
  }

  get anyOpen(): boolean {
    return this.#blocks.some(({ isOpen }) => isOpen);
  }

  /** A call has neither its end nor all of its arguments. */
  get anyCutCall(): boolean {
    return this.#blocks.some(
      ({ kind, isOpen, text: { text } }) =>
        kind === 'tool_use' && isOpen && text !== '' && parseJson(text) === undefined,
    );
  }

  /** The parts of the turn so far. */
  get state(): readonly StatePart[] | undefined {
    return telling(this.#blocks.flatMap(statePart));
  }

  start(index: unknown, source: JsonRecord): ChatDelta[] {
    const found = this.#find(index);
    if (!found?.isOpen) return this.#open(index, source);
    if (!isSameBlock(found.source, source)) return [...this.#close(found), ...this.#open(index, source)];
    return found.kind === 'text' || found.kind === 'thinking' ? this.#push(found, source) : [];
  }

  delta(index: unknown, delta: JsonRecord): ChatDelta[] {
    const kind = deltaKinds.get(delta['type']);
    if (!kind) return [];
    const found = this.#find(index);
    if (found?.kind === 'other') return [];
    if (found?.kind === kind) return this.#push(found, delta);
    // Without a start a call has no name, and so cannot be run.
    if (kind === 'tool_use') return [];
    const before = found?.isOpen ? this.#close(found) : [];
    const opened = this.#open(index, { type: kind });
    const block = this.#blocks.at(-1);
    return [...before, ...opened, ...(block ? this.#push(block, delta) : [])];
  }

  stop(index: unknown): ChatDelta[] {
    const block = this.#find(index);
    return block?.isOpen ? this.#close(block) : [];
  }

  /** Closes what is still open, after the end mark. A thinking block that was cut before its signature is no state. */
  end(): ChatDelta[] {
    return this.#blocks.filter(({ isOpen }) => isOpen).flatMap((block) => this.#close(block, true));
  }

  #open(index: unknown, source: JsonRecord): ChatDelta[] {
    if (this.#blocks.length >= blocksMax) throw tooLarge();
    const kind = kinds.get(source['type']) ?? 'other';
    const held = heldFields(kind, source);
    this.#writer.kept.bytes(blockBytes);
    this.#writer.kept.value(held);
    const block: Block = {
      kind,
      source: held,
      text: new GrowingText(),
      length: 0,
      from: this.#textLength,
      signature: '',
      isOpen: true,
      call: undefined,
      citations: [],
    };
    this.#blocks.push(block);
    if (typeof index === 'number') this.#byIndex.set(index, block);
    if (kind !== 'tool_use') return this.#push(block, source);
    const name = textOf(source['name']);
    if (name.length > calledNameMax) throw tooLarge();
    return this.#wrapped.has(name)
      ? []
      : this.#showCall(block, { type: 'function', function: { name, arguments: '' } });
  }

  /** Reads a piece, or the start of a block, which may hold all of it. */
  #push(block: Block, piece: JsonRecord): ChatDelta[] {
    const { kept } = this.#writer;
    if (block.kind === 'tool_use') return callPiece(block, this.#add(block, piece['partial_json']));
    if (block.kind === 'text') {
      const citations = Array.isArray(piece['citations']) ? piece['citations'] : [piece['citation']];
      for (const citation of citations.flatMap(readCitation)) {
        kept.value(citation);
        block.citations.push(citation);
      }
      const text = this.#add(block, piece['text']);
      this.#textLength += text.length;
      return text === '' ? [] : [{ content: text }];
    }
    if (block.kind !== 'thinking') return [];
    const signature = textOf(piece['signature']);
    kept.text(signature);
    block.signature += signature;
    const text = this.#add(block, piece['thinking']);
    return text === '' ? [] : [{ reasoning_content: text }];
  }

  #add(block: Block, value: unknown): string {
    const text = textOf(value);
    this.#writer.kept.text(text);
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
    const index = this.#writer.calls;
    if (index >= callsMax) throw tooLarge();
    block.call = index;
    return [{ tool_calls: [{ index, id: this.#writer.callId(textOf(block.source['id'])), ...call }] }];
  }

  /**
   * A call whose input did not come in pieces has it at its start, or gets an empty object, so that all arguments are JSON.
   * A wrapped one becomes a custom call once its JSON is complete; cut inside, it is never shown, so that nobody runs it.
   */
  #endCall(block: Block, isCut: boolean): ChatDelta[] {
    const { text, source } = block;
    const isWithoutPieces = text.text === '';
    if (isWithoutPieces) text.add(inputText(source['input']));
    const name = textOf(source['name']);
    const whole = text.text;
    if (!this.#wrapped.has(name)) return isWithoutPieces ? callPiece(block, whole) : [];
    const input = unwrappedInput(whole);
    // A text without a wrapper is whole only where its block ended.
    const isWhole = isCut
      ? input !== '' && input !== whole
      : parseJson(whole) !== undefined || !whole.trimStart().startsWith('{');
    return isWhole ? this.#showCall(block, { type: 'custom', custom: { name, input } }) : [];
  }

  /** Without an index it is the latest block. */
  #find(index: unknown): Block | undefined {
    if (typeof index !== 'number') return this.#blocks.at(-1);
    return this.#byIndex.get(index);
  }
}

const kinds = new Map<unknown, BlockKind>(
  (['text', 'thinking', 'redacted_thinking', 'tool_use'] as const).map((kind) => [kind, kind]),
);

const deltaKinds = new Map<unknown, BlockKind>([
  ['text_delta', 'text'],
  ['citations_delta', 'text'],
  ['thinking_delta', 'thinking'],
  ['signature_delta', 'thinking'],
  ['input_json_delta', 'tool_use'],
]);

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const callPiece = ({ call: index }: Block, text: string): ChatDelta[] =>
  index === undefined || text === '' ? [] : [{ tool_calls: [{ index, function: { arguments: text } }] }];

const inputText = (input: unknown): string =>
  typeof input === 'string' && input !== '' ? input : isRecord(input) ? JSON.stringify(input) : '{}';

/**
 * What a block keeps of its start. Of text, what tells a repeated start. Of thinking, all that goes back, but its text
 * and signature, which are kept apart: they hold their place, so that the fields go back in their order.
 */
function heldFields(kind: BlockKind, source: JsonRecord): JsonRecord {
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

/** Whether a start only repeats the one before: calls by their id, hidden thinking by its data, others by their kind. */
const isSameBlock = (one: JsonRecord, other: JsonRecord): boolean =>
  ['type', 'id', 'data'].every((field) => one[field] === other[field]);

/** Citations of web pages and of search results with an address. Others are about the client's own documents. */
function readCitation(value: unknown): { url: string; title: string }[] {
  if (!isRecord(value)) return [];
  const url = textOf(value['url']) || textOf(value['source']);
  return /^https?:\/\//i.test(url) ? [{ url, title: textOf(value['title']) }] : [];
}

/** An empty text is no part: it would not be sent back. Thinking is one when it is whole: it goes back as it was signed. */
function statePart({ kind, source, text, length, signature, isOpen, call }: Block): StatePart[] {
  if (kind === 'text') return length === 0 ? [] : [{ text: length }];
  if (kind === 'redacted_thinking') return [{ opaque: source }];
  if (kind !== 'thinking') return call === undefined ? [] : [{ call }];
  const signed = signature === '' ? {} : { signature };
  return isOpen ? [] : [{ opaque: { ...source, thinking: text.text, ...signed } }];
}
