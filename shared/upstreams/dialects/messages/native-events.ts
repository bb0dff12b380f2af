/**
 * Passes the events of a Messages upstream to a client that speaks Messages: unchanged, but one block after the other,
 * each started and stopped once. Events of another block wait while a call is open, since clients join the pieces of a
 * block in the order in which they arrive. A whole message becomes the events of a stream.
 */
import { JsonScan } from '../../../stream/json-scan.ts';
import type { Kept } from '../../../wire/chat-response.ts';
import {
  asRecord,
  isRecord,
  jsonText,
  listIn,
  recordsIn,
  textIn,
  type JsonRecord,
} from '../../../wire/json.ts';
import { ArgumentsText } from '../../call-arguments.ts';
import type { CallIds } from '../../call-ids.ts';

interface OpenBlock {
  index: unknown;
  block: JsonRecord;
  input: ArgumentsText;
  /** Scans the pieces of its input. */
  scan: JsonScan;
}

/** The kinds of known blocks by the types of their deltas. */
export const deltaKinds = new Map<unknown, 'text' | 'thinking' | 'tool_use'>([
  ['text_delta', 'text'],
  ['citations_delta', 'text'],
  ['thinking_delta', 'thinking'],
  ['signature_delta', 'thinking'],
  ['input_json_delta', 'tool_use'],
]);
const wordId = /^[a-zA-Z0-9_-]{1,64}$/;
const knownBlocks = new Set<unknown>([...deltaKinds.values(), 'redacted_thinking']);

/** The start of a block whose own start never came. A call without one has no name. */
const impliedStarts = new Map<unknown, JsonRecord>([
  ['text_delta', { type: 'text', text: '' }],
  ['thinking_delta', { type: 'thinking', thinking: '', signature: '' }],
]);

/** A message that is not streamed. Some endpoints leave its type out. */
export const isWholeMessage = ({ type, role, content }: JsonRecord): boolean =>
  type === 'message' || (role === 'assistant' && Array.isArray(content));

export class NativeEvents {
  readonly #memory: Kept;
  readonly #callIds: CallIds;
  #open: OpenBlock | undefined;
  #startedCount = 0;
  /** By the upstream's index. */
  readonly #waitingEvents = new Map<unknown, JsonRecord[]>();
  /** The blocks of `message_start`, unless they come with events. */
  #earlyContent: JsonRecord[] = [];

  constructor(memory: Kept, callIds: CallIds) {
    this.#memory = memory;
    this.#callIds = callIds;
  }

  push(event: JsonRecord): JsonRecord[] {
    const { type, index, message } = event;
    switch (type) {
      case 'message_start': {
        const { content, ...beside } = asRecord(message);
        this.#earlyContent = recordsIn(content);
        return [{ type, message: beside }];
      }
      case 'content_block_start': {
        const isNext = typeof index === 'number' && index >= this.#earlyContent.length;
        const early = isNext ? this.#takeEarlyBlocks() : [];
        return [...early, ...this.#pushBlockEvent(event)];
      }
      case 'content_block_delta':
      case 'content_block_stop':
        return this.#pushBlockEvent(event);
      case 'message_delta':
        return [...this.#takeEarlyBlocks(), event];
      default:
        return isWholeMessage(event) ? this.#splitMessage(event) : [];
    }
  }

  end(): JsonRecord[] {
    const last = this.#takeEarlyBlocks();
    while (this.#open || this.#waitingEvents.size > 0) last.push(...this.#close(), ...this.#releaseWaiting());
    return last;
  }

  #takeEarlyBlocks(): JsonRecord[] {
    const early = this.#startedCount === 0 ? this.#earlyContent : [];
    this.#earlyContent = [];
    return early.flatMap(splitBlock).flatMap((event) => this.#pushBlockEvent(event));
  }

  #splitMessage({ type: _type, content, ...message }: JsonRecord): JsonRecord[] {
    const { stop_reason: reason, stop_sequence: sequence = null, stop_details: details, ...beside } = message;
    const ended = {
      stop_reason: reason,
      stop_sequence: sequence,
      ...(details !== undefined && { stop_details: details }),
    };
    const blocks = recordsIn(content).flatMap(splitBlock);
    return [
      { type: 'message_start', message: beside },
      ...blocks.flatMap((event) => this.#pushBlockEvent(event)),
      { type: 'message_delta', delta: ended },
    ];
  }

  #pushBlockEvent(event: JsonRecord): JsonRecord[] {
    const { type, index } = event;
    const open = this.#open;
    const isOther = typeof open?.index === 'number' && typeof index === 'number' && open.index !== index;
    // Some servers leave out the end of a block and start the next one.
    const mayBegin =
      type === 'content_block_start' && open && isWhole(open) && !this.#waitingEvents.has(index);
    if (isOther && !mayBegin) {
      this.#memory.value(event);
      const waiting = this.#waitingEvents.get(index) ?? [];
      waiting.push(event);
      this.#waitingEvents.set(index, waiting);
      return [];
    }
    return [...this.#writeEvent(event), ...this.#releaseWaiting()];
  }

  #releaseWaiting(): JsonRecord[] {
    const events: JsonRecord[] = [];
    for (const [index, waiting] of this.#waitingEvents) {
      if (this.#open) break;
      this.#waitingEvents.delete(index);
      for (const event of waiting) events.push(...this.#writeEvent(event));
    }
    return events;
  }

  #writeEvent(event: JsonRecord): JsonRecord[] {
    const { type, index } = event;
    if (type === 'content_block_stop') return this.#close(event);
    if (type === 'content_block_start') return this.#startBlock(index, event);
    const { delta } = event;
    if (!isRecord(delta)) return [];
    const impliedStart = impliedStarts.get(delta['type']);
    if (this.#open && fitsBlock(this.#open.block, delta)) {
      const { partial_json: given } = delta;
      if (typeof given !== 'string' || given === '') return [{ ...event, index: this.#startedCount - 1 }];
      const text = this.#open.input.push(given);
      this.#open.scan.push(text);
      return text === '' ? [] : this.#writeInput(text, event);
    }
    if (!impliedStart) return [];
    const began = this.#startBlock(index, { type: 'content_block_start', content_block: impliedStart });
    return [...began, { ...event, index: this.#startedCount - 1 }];
  }

  #startBlock(index: unknown, event: JsonRecord): JsonRecord[] {
    const { content_block: block } = event;
    // Some servers start a block twice; a call would be run twice.
    const isAgain = this.#open?.index === index && isRecord(block) && this.#isOpen(block);
    if (!isRecord(block) || isAgain) return [];
    const closed = this.#close();
    this.#open = { index, block, input: new ArgumentsText(), scan: new JsonScan() };
    if (block['type'] !== 'tool_use') return [...closed, { ...event, index: this.#startedCount++ }];
    const { id, input } = block;
    // Other vendors would refuse this id if the session continued with them.
    const isPlain = typeof id !== 'string' || wordId.test(id);
    const shown = isPlain ? {} : { id: this.#callIds.showId(id, this.#startedCount) };
    const text = isRecord(input) ? '' : this.#open.input.push(jsonText(input));
    const started = { ...block, ...shown, ...(!isRecord(input) && { input: {} }) };
    const begun = { ...event, content_block: started, index: this.#startedCount++ };
    return [...closed, begun, ...(text === '' ? [] : this.#writeInput(text))];
  }

  #writeInput(text: string, event: JsonRecord = { type: 'content_block_delta' }): JsonRecord[] {
    const delta = { type: 'input_json_delta', partial_json: text };
    return [{ ...event, delta, index: this.#startedCount - 1 }];
  }

  #isOpen(block: JsonRecord): boolean {
    const open = this.#open?.block;
    return open !== undefined && ['type', 'id', 'data'].every((field) => open[field] === block[field]);
  }

  #close(event: JsonRecord = { type: 'content_block_stop' }): JsonRecord[] {
    if (!this.#open) return [];
    const input = this.#open.input.end();
    this.#open = undefined;
    return [...(input === '' ? [] : this.#writeInput(input)), { ...event, index: this.#startedCount - 1 }];
  }
}

/** An unknown delta fits any block, and any delta fits an unknown block. */
const fitsBlock = ({ type }: JsonRecord, delta: JsonRecord): boolean =>
  !knownBlocks.has(type) || (deltaKinds.get(delta['type']) ?? type) === type;

/** A call needs complete input. */
const isWhole = ({ block, scan }: OpenBlock): boolean =>
  scan.complete || (block['type'] !== 'tool_use' && scan.deepest === 0);

/** A stream starts a block without the content of its deltas. */
function splitBlock(block: JsonRecord, index: number): JsonRecord[] {
  const { type, text, thinking, signature, citations, input } = block;
  const pieces: JsonRecord[] = [];
  const started = { ...block };
  const moveToDelta = (field: string, value: unknown, delta: string): void => {
    if (typeof value !== 'string' || value === '') return;
    started[field] = '';
    pieces.push({ type: delta, [field]: value });
  };
  if (type === 'text') {
    if (Array.isArray(citations)) started['citations'] = [];
    for (const citation of listIn(citations)) pieces.push({ type: 'citations_delta', citation });
    moveToDelta('text', text, 'text_delta');
  } else if (type === 'thinking') {
    moveToDelta('thinking', thinking, 'thinking_delta');
    moveToDelta('signature', signature, 'signature_delta');
  } else if (type === 'tool_use' && isRecord(input)) {
    started['input'] = {};
    pieces.push({ type: 'input_json_delta', partial_json: JSON.stringify(input) });
  }
  return [
    { type: 'content_block_start', index, content_block: started },
    ...pieces.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

/** A start of text or thinking is empty. */
export function isContent({ type, content_block: block }: JsonRecord): boolean {
  const kind = textIn(asRecord(block)['type']);
  return (
    type === 'content_block_delta' || (type === 'content_block_start' && !['text', 'thinking'].includes(kind))
  );
}
