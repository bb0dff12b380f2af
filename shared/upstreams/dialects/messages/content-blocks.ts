/**
 * Reads the content blocks of an answer: text with its citations, thinking with its signature, tool calls. Blocks that
 * the upstream ran itself are left out. Order is not trusted: a start may be missing or come twice, an index may be
 * missing or used again.
 */
import {
  type ChatDelta,
  type UrlCitation,
  GrowingText,
  Kept,
  type ToolCallDelta,
} from '../../../wire/chat-response.ts';
import { asRecord, isRecord, type JsonRecord, parseJson } from '../../../wire/json.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import type { ReaderContext } from '../../dialect.ts';
import { UpstreamFailure } from '../../exchange.ts';
import { calledNameMax } from '../../../wire/ids.ts';
import { unwrappedInput } from '../../request-parts.ts';

/** Far more than a model writes, in any script. */
const keptBytesMax = 4 * 1024 * 1024;
const blockBytes = 512;
const blocksMax = 4096;

interface Block {
  kind: 'text' | 'thinking' | 'redacted_thinking' | 'tool_use' | 'other';
  /** The block as it started, with all fields that the vendor wants back. */
  source: JsonRecord;
  text: GrowingText;
  length: number;
  /** Where its text begins in the visible text. */
  from: number;
  signature: string;
  isOpen: boolean;
  call?: CallBlock;
  /** Held until the block ends, since they are about all of its text. */
  citations: { url: string; title: string }[];
}

export class ContentBlocks {
  readonly #numbers: CallNumbers;
  readonly #blocks: Block[] = [];
  /** The latest of each index. */
  readonly #byIndex = new Map<number, Block>();
  readonly #kept = new Kept(keptBytesMax, () => new UpstreamFailure('too_large'));
  /** Of the visible text so far. */
  #textLength = 0;

  constructor(context: ReaderContext) {
    this.#numbers = new CallNumbers(context);
  }

  get any(): boolean {
    return this.#blocks.length > 0;
  }

  get anyCalls(): boolean {
    return this.#numbers.count > 0;
  }

  get anyOpen(): boolean {
    return this.#blocks.some(({ isOpen }) => isOpen);
  }

  /** A call has neither its end nor all of its arguments. */
  get anyCutCall(): boolean {
    return this.#blocks.some(({ isOpen, call }) => isOpen && call?.isIncomplete === true);
  }

  /** The parts of the turn so far; undefined if none is opaque. */
  get state(): readonly StatePart[] | undefined {
    const parts = this.#blocks.flatMap(statePart);
    return parts.some((part) => 'opaque' in part) ? parts : undefined;
  }

  start(index: unknown, source: JsonRecord): ChatDelta[] {
    const found = this.#find(index);
    if (!found?.isOpen) return this.#open(index, source);
    if (!isSameBlock(found.source, source)) return [...this.#close(found), ...this.#open(index, source)];
    return found.kind === 'text' || found.kind === 'thinking' ? this.#push(found, source) : [];
  }

  delta(index: unknown, delta: JsonRecord): ChatDelta[] {
    const kind = kindOfDelta(delta);
    if (!kind) return [];
    const found = this.#find(index);
    if (found?.kind === 'other') return [];
    // Without a start a call has no name, and so cannot be run.
    if (found?.kind !== kind && kind === 'tool_use') return [];
    if (found?.kind === kind) return this.#push(found, delta);
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
    if (this.#blocks.length >= blocksMax) throw new UpstreamFailure('too_large');
    const kind = kinds.get(source['type']) ?? 'other';
    const held = heldFields(kind, source);
    this.#kept.bytes(blockBytes);
    this.#kept.value(held);
    const block: Block = {
      kind,
      source: held,
      text: new GrowingText(),
      length: 0,
      from: this.#textLength,
      signature: '',
      isOpen: true,
      citations: [],
    };
    this.#blocks.push(block);
    if (typeof index === 'number') this.#byIndex.set(index, block);
    if (kind === 'tool_use') {
      block.call = new CallBlock(source, this.#numbers);
      return callDelta(block.call.start());
    }
    return this.#push(block, source);
  }

  /** Reads a piece, or the start of a block, which may hold all of it. */
  #push(block: Block, piece: JsonRecord): ChatDelta[] {
    if (block.kind === 'tool_use') {
      const json = textOf(piece['partial_json']);
      this.#kept.text(json);
      return callDelta(block.call?.push(json) ?? []);
    }
    if (block.kind === 'text') {
      const citations = Array.isArray(piece['citations']) ? piece['citations'] : [piece['citation']];
      for (const citation of citations.flatMap(readCitation)) {
        this.#kept.value(citation);
        block.citations.push(citation);
      }
      const text = this.#add(block, piece['text']);
      this.#textLength += text.length;
      return text === '' ? [] : [{ content: text }];
    }
    if (block.kind !== 'thinking') return [];
    const signature = textOf(piece['signature']);
    this.#kept.text(signature);
    block.signature += signature;
    const text = this.#add(block, piece['thinking']);
    return text === '' ? [] : [{ reasoning_content: text }];
  }

  #add(block: Block, value: unknown): string {
    const text = textOf(value);
    this.#kept.text(text);
    block.text.add(text);
    block.length += text.length;
    return text;
  }

  #close(block: Block, isCut = false): ChatDelta[] {
    block.isOpen = false;
    if (isCut && block.kind === 'thinking' && block.signature === '') block.kind = 'other';
    if (block.call) return callDelta(block.call.end(isCut));
    if (block.citations.length === 0) return [];
    const range = { start_index: block.from, end_index: block.from + block.length };
    const annotations = block.citations.map((citation): UrlCitation => ({
      type: 'url_citation',
      url_citation: { ...citation, ...range },
    }));
    return [{ annotations }];
  }

  /** Without an index it is the latest block. */
  #find(index: unknown): Block | undefined {
    if (typeof index !== 'number') return this.#blocks.at(-1);
    return this.#byIndex.get(index);
  }
}

const kinds = new Map<unknown, Block['kind']>([
  ['text', 'text'],
  ['thinking', 'thinking'],
  ['redacted_thinking', 'redacted_thinking'],
  ['tool_use', 'tool_use'],
]);

const deltaKinds = new Map<unknown, Block['kind']>([
  ['text_delta', 'text'],
  ['citations_delta', 'text'],
  ['thinking_delta', 'thinking'],
  ['signature_delta', 'thinking'],
  ['input_json_delta', 'tool_use'],
]);
const kindOfDelta = ({ type }: JsonRecord): Block['kind'] | undefined => deltaKinds.get(type);

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const callDelta = (calls: NonNullable<ChatDelta['tool_calls']>): ChatDelta[] =>
  calls.length > 0 ? [{ tool_calls: calls }] : [];

/**
 * What a block keeps of its start. Of text, what tells a repeated start. Of thinking, all that goes back, but its text
 * and signature, which are kept apart: they hold their place, so that the fields go back in their order.
 */
function heldFields(kind: Block['kind'], source: JsonRecord): JsonRecord {
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
function statePart(block: Block): StatePart[] {
  if (block.kind === 'text') return block.length === 0 ? [] : [{ text: block.length }];
  if (block.kind === 'redacted_thinking') return [{ opaque: block.source }];
  if (block.kind === 'thinking') return block.isOpen ? [] : [{ opaque: thinkingBlock(block) }];
  const index = block.call?.index;
  return index === undefined ? [] : [{ call: index }];
}

function thinkingBlock({ source, text, signature }: Block): JsonRecord {
  const block = { ...asRecord(source), thinking: text.text };
  return signature === '' ? block : { ...block, signature };
}

// Reads one tool call of an answer. A call of a tool that was sent as a function with one text `input` is held until
// its JSON is complete, and then becomes a custom call; cut inside, it is never shown, so that nobody runs it.

/** Far more calls than a model makes. */
const callsMax = 1024;

/** The ids and indexes of the calls of one answer: dense, in the order in which clients see the calls. */
class CallNumbers {
  readonly #context: ReaderContext;
  readonly #shown = new Set<string>();

  constructor(context: ReaderContext) {
    this.#context = context;
  }

  get count(): number {
    return this.#shown.size;
  }

  isWrapped(name: string): boolean {
    return this.#context.sent.wrapped.has(name);
  }

  /** An id that the upstream used before is another call's. */
  next(vendorId: unknown): { index: number; id: string } {
    const index = this.#shown.size;
    if (index >= callsMax) throw new UpstreamFailure('too_large');
    const { callIds } = this.#context;
    const id = callIds.show(typeof vendorId === 'string' && vendorId !== '' ? vendorId : undefined, index);
    const own = this.#shown.has(id) ? callIds.show(undefined, index) : id;
    this.#shown.add(own);
    return { index, id: own };
  }
}

class CallBlock {
  /** The index that clients see. Undefined: the call is not shown, or not yet. */
  index: number | undefined;
  readonly #numbers: CallNumbers;
  readonly #vendorId: unknown;
  readonly #name: string;
  /** The whole input, which some upstreams send at the start, and then once more in pieces. */
  readonly #input: unknown;
  readonly #isWrapped: boolean;
  #text = '';

  constructor(start: JsonRecord, numbers: CallNumbers) {
    this.#numbers = numbers;
    this.#vendorId = start['id'];
    this.#name = typeof start['name'] === 'string' ? start['name'] : '';
    this.#input = start['input'];
    if (this.#name.length > calledNameMax) throw new UpstreamFailure('too_large');
    this.#isWrapped = numbers.isWrapped(this.#name);
  }

  start(): ToolCallDelta[] {
    if (this.#isWrapped) return [];
    const { index, id } = this.#numbers.next(this.#vendorId);
    this.index = index;
    return [{ index, id, type: 'function', function: { name: this.#name, arguments: '' } }];
  }

  push(piece: string): ToolCallDelta[] {
    this.#text += piece;
    return this.index === undefined || piece === ''
      ? []
      : [{ index: this.index, function: { arguments: piece } }];
  }

  /** Its arguments began and are no JSON yet. */
  get isIncomplete(): boolean {
    return this.#text !== '' && parseJson(this.#text) === undefined;
  }

  /** A call without arguments gets an empty object, so that all arguments are JSON. */
  end(isCut = false): ToolCallDelta[] {
    const isWithoutPieces = this.#text === '';
    if (isWithoutPieces) this.#text = inputText(this.#input);
    if (this.#isWrapped) return this.#unwrapped(isCut);
    return this.index === undefined || !isWithoutPieces
      ? []
      : [{ index: this.index, function: { arguments: this.#text } }];
  }

  #unwrapped(isCut: boolean): ToolCallDelta[] {
    const text = this.#text;
    const input = unwrappedInput(text);
    // A text without a wrapper is whole only where its block ended.
    const isWhole = isCut
      ? input !== '' && input !== text
      : parseJson(text) !== undefined || !text.trimStart().startsWith('{');
    if (!isWhole) return [];
    const { index, id } = this.#numbers.next(this.#vendorId);
    this.index = index;
    return [{ index, id, type: 'custom', custom: { name: this.#name, input } }];
  }
}

const inputText = (input: unknown): string =>
  typeof input === 'string' && input !== '' ? input : isRecord(input) ? JSON.stringify(input) : '{}';
