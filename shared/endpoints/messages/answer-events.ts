/**
 * Makes the events of a Messages answer from the canonical stream, from `message_start` to `message_stop`, streamed or not. An
 * upstream of the same form has its own blocks passed on as they are; of others the blocks are made here. One block is open at a
 * time, each index comes once: clients end a session on anything else.
 *
 *     start -> (block start -> deltas -> block stop)* -> message_delta -> message_stop
 *                                              any time -> error
 *
 * Source: Anthropic's page "Streaming messages", November 2026.
 */
import { JsonScan } from '../../stream/json-scan.ts';
import {
  type Annotation,
  type AnswerIdentity,
  type ChatChunk,
  type ChatDelta,
  type ChatUsage,
  type FinishReason,
  GrowingText,
  isUrlCitation,
  type Kept,
  type ToolCallDelta,
} from '../../wire/chat-response.ts';
import { sealPrefix } from '../../wire/ids.ts';
import { asRecord, isRecord, parseJson, textIn, type JsonRecord } from '../../wire/json.ts';
import { type AnswerFacts, createKeptForAnswer } from '../endpoint.ts';
import type { ToolNames } from './request.ts';

export type MessagesEvent = { type: string } & JsonRecord;

export interface AskedAnswer {
  /** The client shows thinking, and keeps the state of turns in it. */
  thinks: boolean;
  names: ToolNames;
}

const stopReasons: Record<FinishReason, string> = {
  stop: 'end_turn',
  length: 'max_tokens',
  tool_calls: 'tool_use',
  content_filter: 'refusal',
};

/** A call that cannot be written yet, since another one is open. */
interface WaitingCall {
  id: string;
  name: string;
  pieces: string[];
}

type OpenBlock = { kind: 'text' | 'thinking' | 'native' } | { kind: 'call'; call: number; scan: JsonScan };

export class MessagesAnswer {
  readonly #identity: AnswerIdentity;
  readonly #facts: AnswerFacts;
  readonly #asked: AskedAnswer;
  #started = false;
  #open: OpenBlock | undefined;
  /** The upstream's own blocks came, so none are made. */
  #isNative = false;
  /** The fields of a message at its start and at its end. */
  #nativeStart: JsonRecord = {};
  #nativeEnd: JsonRecord = {};
  /** Blocks that began. */
  #blocks = 0;
  /** Calls that wait, in their order, and those that were begun. */
  readonly #waiting = new Map<number, WaitingCall>();
  readonly #begun = new Set<number>();
  readonly #later: ['text' | 'thinking', string][] = [];
  /** Citations that arrived while no text block was open. The next one gets them. */
  readonly #citations: JsonRecord[] = [];
  readonly #refusal = new GrowingText();
  readonly #kept = createKeptForAnswer();
  /** The opaque parts of the state that the client has. */
  #sealedParts = 0;
  #stop: JsonRecord | undefined;
  #usage: ChatUsage | undefined;
  #quota: number | null | undefined;

  constructor(identity: AnswerIdentity, facts: AnswerFacts, asked: AskedAnswer) {
    this.#identity = identity;
    this.#facts = facts;
    this.#asked = asked;
  }

  /** Empty from the second call on. */
  start(): MessagesEvent[] {
    if (this.#started) return [];
    this.#started = true;
    const message = {
      ...this.#nativeStart,
      id: this.#facts.threadId?.(textIn(this.#nativeStart['id'])) ?? `msg_${this.#identity.requestId}`,
      type: 'message',
      role: 'assistant',
      model: this.#facts.model?.() ?? this.#identity.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: renderUsage(this.#facts.usage(), this.#facts),
    };
    return [{ type: 'message_start', message }];
  }

  push({ choices, usage, quota, native }: ChatChunk): MessagesEvent[] {
    if (usage) {
      this.#usage = usage;
      this.#quota = quota;
      return [];
    }
    const [choice] = choices;
    if (choice?.finish_reason) this.#stop = { stop_reason: stopReasons[choice.finish_reason] };
    this.#isNative ||= native !== undefined;
    const own = native ? this.#native(native.event) : [];
    const made = choice && !this.#isNative ? this.#translate(choice.delta) : [];
    return [...this.start(), ...own, ...made];
  }

  end(): MessagesEvent[] {
    const calls = [...this.#waiting.keys()].flatMap((call) => this.#begin(call));
    const called = [...this.start(), ...calls, ...this.#close()];
    const texts = this.#waitingTexts();
    const cited =
      this.#citations.length > 0 ? [...this.#close(), ...this.#start('text'), ...this.#writeCitations()] : [];
    const last = [...called, ...texts, ...cited, ...this.#close(), ...this.#sealBlock()];
    const sequence = this.#facts.stoppedAt?.();
    const stop =
      sequence === undefined
        ? { stop_reason: 'end_turn', stop_sequence: null, ...this.#stop, ...this.#describeRefusal() }
        : { stop_reason: 'stop_sequence', stop_sequence: sequence };
    const { delta, usage: _usage, ...beside } = this.#nativeEnd;
    const ended: MessagesEvent = {
      type: 'message_delta',
      ...beside,
      delta: sequence === undefined ? { ...stop, ...removeReason(asRecord(delta)) } : stop,
      usage: renderUsage(this.#usage ?? this.#facts.usage(), this.#facts),
      ...(typeof this.#quota === 'number' && { quota: this.#quota }),
    };
    return [...last, ended, { type: 'message_stop' }];
  }

  // An upstream's own blocks, in the order in which they begin.

  #native({ type, ...event }: JsonRecord): MessagesEvent[] {
    switch (type) {
      case 'message_start':
        this.#nativeStart = asRecord(event['message']);
        return [];
      case 'message_delta': {
        const delta = { ...asRecord(this.#nativeEnd['delta']), ...asRecord(event['delta']) };
        this.#nativeEnd = { ...this.#nativeEnd, ...event, delta };
        return [];
      }
      case 'content_block_start':
        this.#open = { kind: 'native' };
        return [{ type, ...event, index: this.#blocks++ }];
      case 'content_block_delta':
        return [{ type, ...event, index: this.#blocks - 1 }];
      case 'content_block_stop':
        return this.#close();
      default:
        return [];
    }
  }

  // Blocks of other upstreams' answers.

  #translate(delta: ChatDelta): MessagesEvent[] {
    const { reasoning_content: reasoning, content, refusal, tool_calls: calls, annotations } = delta;
    return [
      ...(reasoning && this.#asked.thinks ? this.#text('thinking', reasoning) : []),
      ...(content ? this.#text('text', content) : []),
      ...(refusal ? this.#refuse(refusal) : []),
      ...(annotations ? this.#cite(annotations) : []),
      ...(calls ?? []).flatMap((piece) => this.#call(piece)),
    ];
  }

  /** Text that arrives between the pieces of a call waits until the call is whole. */
  #text(kind: 'text' | 'thinking', text: string): MessagesEvent[] {
    const open = this.#open;
    if (this.#waiting.size > 0 || (open?.kind === 'call' && !open.scan.complete)) {
      this.#kept.value(text);
      this.#later.push([kind, text]);
      return [];
    }
    const opened =
      open?.kind === kind
        ? []
        : [...this.#close(), ...(kind === 'text' ? this.#sealBlock() : []), ...this.#start(kind)];
    const delta = kind === 'text' ? { type: 'text_delta', text } : { type: 'thinking_delta', thinking: text };
    return [...opened, this.#delta(delta), ...(kind === 'text' ? this.#writeCitations() : [])];
  }

  #refuse(text: string): MessagesEvent[] {
    this.#kept.text(text);
    this.#refusal.add(text);
    return this.#text('text', text);
  }

  /** Adds the stop reason of a refusal, because other vendors end a refusal like any answer. */
  #describeRefusal(): JsonRecord {
    const explanation = this.#refusal.text || null;
    const isRefused = explanation !== null || this.#stop?.['stop_reason'] === stopReasons.content_filter;
    if (this.#isNative || !isRefused) return {};
    const stop_details = { type: 'refusal', category: null, explanation };
    return { stop_reason: stopReasons.content_filter, stop_details };
  }

  #cite(annotations: readonly Annotation[]): MessagesEvent[] {
    for (const { url_citation: cited } of annotations.filter(isUrlCitation)) {
      const { url, title } = cited;
      const source = { type: 'web_search_result_location', url, title, cited_text: '' };
      // The index is only a mark. By it the relay removes the citation for Claude's vendor, which would check the index.
      const citation = { ...source, encrypted_index: sealPrefix };
      this.#kept.value(citation);
      this.#citations.push(citation);
    }
    return this.#open?.kind === 'text' ? this.#writeCitations() : [];
  }

  #writeCitations(): MessagesEvent[] {
    return this.#citations.splice(0).map((citation) => this.#delta({ type: 'citations_delta', citation }));
  }

  #start(kind: 'text' | 'thinking'): MessagesEvent[] {
    this.#open = { kind };
    const block =
      kind === 'text' ? { type: 'text', text: '' } : { type: 'thinking', thinking: '', signature: '' };
    return [this.#blockStart(block)];
  }

  /** A later call waits until the one before it is whole: nothing may come between the pieces of a block. */
  #call({ index, id, function: called }: ToolCallDelta): MessagesEvent[] {
    const piece = called?.arguments ?? '';
    const open = this.#open;
    if (open?.kind === 'call' && open.call === index) return this.#arguments(open.scan, piece);
    // Ignore arguments that arrive after the block: its JSON was complete.
    if (this.#begun.has(index)) return [];
    const waiting = this.#waiting.get(index) ?? { id: '', name: '', pieces: [] };
    waiting.id ||= id ?? '';
    waiting.name += called?.name ?? '';
    waiting.pieces.push(piece);
    this.#waiting.set(index, waiting);
    const isFree = open?.kind !== 'call' || open.scan.complete;
    return isFree && this.#waiting.size === 1 ? this.#begin(index) : [];
  }

  #begin(index: number): MessagesEvent[] {
    const call = this.#waiting.get(index);
    if (!call) return [];
    this.#waiting.delete(index);
    this.#begun.add(index);
    const before = [...this.#close(), ...this.#sealBlock()];
    const scan = new JsonScan();
    this.#open = { kind: 'call', call: index, scan };
    const block = {
      type: 'tool_use',
      id: call.id,
      name: this.#asked.names.restoreName(call.name),
      input: {},
    };
    return [...before, this.#blockStart(block), ...this.#arguments(scan, call.pieces.join(''))];
  }

  /** Arguments that are not an object arrive in one piece, at the end of the call. */
  #arguments(scan: JsonScan, given: string): MessagesEvent[] {
    if (given === '') return [];
    const isPlain = scan.deepest > 0 || given.trimStart().startsWith('{');
    const text = isPlain ? given : JSON.stringify(inputOf(given));
    scan.push(text);
    const [next] = scan.complete ? this.#waiting.keys() : [];
    const delta = this.#delta({ type: 'input_json_delta', partial_json: text });
    if (next !== undefined) return [delta, ...this.#begin(next)];
    return [delta, ...(scan.complete ? this.#waitingTexts() : [])];
  }

  #waitingTexts(): MessagesEvent[] {
    return this.#later.splice(0).flatMap(([kind, text]) => this.#text(kind, text));
  }

  #close(): MessagesEvent[] {
    const open = this.#open;
    if (!open) return [];
    const signed = open.kind === 'thinking' ? [this.#signature()] : [];
    this.#open = undefined;
    return [...signed, { type: 'content_block_stop', index: this.#blocks - 1 }];
  }

  /** Thinking that has no state says that it is of the relay's making: the vendor of Claude refuses it. */
  #signature(): MessagesEvent {
    return this.#delta({ type: 'signature_delta', signature: this.#encryptState() ?? sealPrefix });
  }

  /** State that came without thinking to show has a block of its own, before the call that it belongs to. */
  #sealBlock(): MessagesEvent[] {
    const isSealed = this.#asked.thinks && !this.#isNative;
    if (!isSealed || this.#facts.opaqueParts() <= this.#sealedParts) return [];
    const signature = this.#encryptState();
    if (signature === undefined) return [];
    const closed = this.#close();
    const started = this.#start('thinking');
    const signed = this.#delta({ type: 'signature_delta', signature });
    this.#open = undefined;
    return [...closed, ...started, signed, { type: 'content_block_stop', index: this.#blocks - 1 }];
  }

  #encryptState(): string | undefined {
    const parts = this.#facts.opaqueParts();
    const sealed = this.#facts.sealedState('');
    if (sealed !== undefined) this.#sealedParts = parts;
    return sealed;
  }

  #blockStart(block: JsonRecord): MessagesEvent {
    return { type: 'content_block_start', index: this.#blocks++, content_block: block };
  }

  #delta(delta: JsonRecord): MessagesEvent {
    return { type: 'content_block_delta', index: this.#blocks - 1, delta };
  }
}

/** Clients take an end without a reason for none. */
const removeReason = ({ stop_reason: reason, ...delta }: JsonRecord): JsonRecord =>
  typeof reason === 'string' ? { stop_reason: reason, ...delta } : delta;

/** The input counts only tokens that were neither read from the cache nor written to it. */
function renderUsage(usage: ChatUsage, { sent }: AnswerFacts): JsonRecord {
  const {
    cached_tokens: read = 0,
    cache_write_tokens: forMinutes = 0,
    cache_write_1h_tokens: forHour = 0,
  } = usage.prompt_tokens_details ?? {};
  const written = forMinutes + forHour;
  const thinking = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  const tier = sent().serviceTier;
  return {
    input_tokens: Math.max(0, usage.prompt_tokens - read - written),
    cache_creation_input_tokens: written,
    cache_read_input_tokens: read,
    cache_creation: { ephemeral_5m_input_tokens: forMinutes, ephemeral_1h_input_tokens: forHour },
    output_tokens: usage.completion_tokens,
    ...(thinking > 0 && { output_tokens_details: { thinking_tokens: thinking } }),
    // Fast mode is no tier of its own in this form.
    ...(tier === 'fast' && { speed: tier }),
    ...(tier !== undefined && { service_tier: tier === 'default' || tier === 'fast' ? 'standard' : tier }),
  };
}

// The whole message, folded from its events.

interface FoldedBlock {
  block: JsonRecord;
  texts: Map<string, GrowingText>;
  input: GrowingText;
}

export class MessageFold {
  #message: JsonRecord = {};
  readonly #blocks: FoldedBlock[] = [];
  readonly #kept: Kept;

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  push(event: MessagesEvent): void {
    const { type, message, content_block: block, delta, ...beside } = event;
    if (type === 'message_start') this.#message = asRecord(message);
    else if (type === 'content_block_start') {
      this.#kept.value(block);
      this.#blocks.push({ block: { ...asRecord(block) }, texts: new Map(), input: new GrowingText() });
    } else if (type === 'content_block_delta') this.#add(asRecord(delta));
    else if (type === 'message_delta') {
      const { usage, ...more } = beside;
      const folded = { ...this.#message, ...asRecord(delta), ...more };
      this.#message = { ...folded, usage: { ...asRecord(this.#message['usage']), ...asRecord(usage) } };
    }
  }

  #add(delta: JsonRecord): void {
    const last = this.#blocks.at(-1);
    if (!last) return;
    const { type, ...fields } = delta;
    if (type === 'input_json_delta') return this.#append(last.input, delta['partial_json']);
    if (type === 'citations_delta') {
      this.#kept.value(delta);
      const { citations } = last.block;
      last.block['citations'] = [...(Array.isArray(citations) ? citations : []), delta['citation']];
      return;
    }
    // A kind of piece names the field that it adds to, known or not.
    for (const [field, value] of Object.entries(fields)) {
      if (typeof value !== 'string') {
        this.#kept.value(value);
        last.block = { ...last.block, [field]: value };
        continue;
      }
      const text = last.texts.get(field) ?? new GrowingText();
      last.texts.set(field, text);
      this.#append(text, value);
    }
  }

  #append(text: GrowingText, value: unknown): void {
    const piece = textIn(value);
    this.#kept.text(piece);
    text.add(piece);
  }

  whole(): JsonRecord {
    const content = this.#blocks.map(({ block, texts, input }) => ({
      ...block,
      ...Object.fromEntries([...texts].map(([field, { text }]) => [field, textIn(block[field]) + text])),
      ...(input.text !== '' && { input: inputOf(input.text) }),
    }));
    return { ...this.#message, content };
  }
}

/** Arguments that are no object, such as cut ones, are kept as a text. */
function inputOf(text: string): unknown {
  const value = parseJson(text);
  return isRecord(value) ? value : { input: value ?? text };
}
