/**
 * The events of an upstream that speaks Messages, for a client that speaks it: as they came, but one block after the other, each
 * begun and ended once. What comes for another block while a call is open waits, since clients join the pieces of a block in
 * the order in which they come. A whole message becomes the events that a stream of it has.
 */
import { JsonScan } from '../../../stream/json-scan.ts';
import type { Kept } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, listIn, recordsIn, textIn, type JsonRecord } from '../../../wire/json.ts';

interface OpenBlock {
  index: unknown;
  block: JsonRecord;
  /** Of the pieces of its input. */
  scan: JsonScan;
}

/** The kinds of blocks that are known, by the pieces that they come in. */
export const deltaKinds = new Map<unknown, 'text' | 'thinking' | 'tool_use'>([
  ['text_delta', 'text'],
  ['citations_delta', 'text'],
  ['thinking_delta', 'thinking'],
  ['signature_delta', 'thinking'],
  ['input_json_delta', 'tool_use'],
]);
const knownBlocks = new Set<unknown>([...deltaKinds.values(), 'redacted_thinking']);

/** How a block begins whose own beginning never came. A call without one has no name. */
const beginnings = new Map<unknown, JsonRecord>([
  ['text_delta', { type: 'text', text: '' }],
  ['thinking_delta', { type: 'thinking', thinking: '', signature: '' }],
]);

/** An answer that is not streamed. Some endpoints leave its type out. */
export const isWholeMessage = ({ type, role, content }: JsonRecord): boolean =>
  type === 'message' || (role === 'assistant' && Array.isArray(content));

export class NativeEvents {
  readonly #kept: Kept;
  #open: OpenBlock | undefined;
  #begun = 0;
  /** What waits, by the upstream's index. */
  readonly #held = new Map<unknown, JsonRecord[]>();
  /** The blocks that `message_start` had, unless they come with events. */
  #early: JsonRecord[] = [];

  constructor(kept: Kept) {
    this.#kept = kept;
  }

  push(event: JsonRecord): JsonRecord[] {
    const { type, index, message } = event;
    switch (type) {
      case 'message_start': {
        const { content, ...beside } = asRecord(message);
        this.#early = recordsIn(content);
        return [{ type, message: beside }];
      }
      case 'content_block_start': {
        const isNext = typeof index === 'number' && index >= this.#early.length;
        const early = isNext ? this.#earlyBlocks() : [];
        return [...early, ...this.#ofBlock(event)];
      }
      case 'content_block_delta':
      case 'content_block_stop':
        return this.#ofBlock(event);
      case 'message_delta':
        return [...this.#earlyBlocks(), event];
      default:
        return isWholeMessage(event) ? this.#whole(event) : [];
    }
  }

  /** What is still open or waits. */
  end(): JsonRecord[] {
    const last = this.#earlyBlocks();
    while (this.#open || this.#held.size > 0) last.push(...this.#close(), ...this.#waiting());
    return last;
  }

  #earlyBlocks(): JsonRecord[] {
    const early = this.#begun === 0 ? this.#early : [];
    this.#early = [];
    return early.flatMap(eventsOfBlock).flatMap((event) => this.#ofBlock(event));
  }

  #whole({ type: _type, content, ...message }: JsonRecord): JsonRecord[] {
    const { stop_reason: reason, stop_sequence: sequence = null, stop_details: details, ...beside } = message;
    const ended = {
      stop_reason: reason,
      stop_sequence: sequence,
      ...(details !== undefined && { stop_details: details }),
    };
    const blocks = recordsIn(content).flatMap(eventsOfBlock);
    return [
      { type: 'message_start', message: beside },
      ...blocks.flatMap((event) => this.#ofBlock(event)),
      { type: 'message_delta', delta: ended },
    ];
  }

  #ofBlock(event: JsonRecord): JsonRecord[] {
    const { type, index } = event;
    const open = this.#open;
    const isOther = typeof open?.index === 'number' && typeof index === 'number' && open.index !== index;
    // Servers that leave the end of a block out begin the next one.
    const mayBegin = type === 'content_block_start' && open && isWhole(open) && !this.#held.has(index);
    if (isOther && !mayBegin) {
      this.#kept.value(event);
      const held = this.#held.get(index) ?? [];
      held.push(event);
      this.#held.set(index, held);
      return [];
    }
    return [...this.#written(event), ...this.#waiting()];
  }

  #waiting(): JsonRecord[] {
    const events: JsonRecord[] = [];
    for (const [index, held] of this.#held) {
      if (this.#open) break;
      this.#held.delete(index);
      for (const event of held) events.push(...this.#written(event));
    }
    return events;
  }

  #written(event: JsonRecord): JsonRecord[] {
    const { type, index } = event;
    if (type === 'content_block_stop') return this.#close(event);
    if (type === 'content_block_start') return this.#begin(index, event);
    const { delta } = event;
    if (!isRecord(delta)) return [];
    const beginning = beginnings.get(delta['type']);
    if (this.#open && fits(this.#open.block, delta)) {
      this.#open.scan.push(textIn(delta['partial_json']));
      return [{ ...event, index: this.#begun - 1 }];
    }
    if (!beginning) return [];
    const began = this.#begin(index, { type: 'content_block_start', content_block: beginning });
    return [...began, { ...event, index: this.#begun - 1 }];
  }

  #begin(index: unknown, event: JsonRecord): JsonRecord[] {
    const { content_block: block } = event;
    // Some servers begin a block twice; a call would be run twice.
    const isAgain = this.#open?.index === index && isRecord(block) && this.#isOpen(block);
    if (!isRecord(block) || isAgain) return [];
    const closed = this.#close();
    this.#open = { index, block, scan: new JsonScan() };
    return [...closed, { ...event, index: this.#begun++ }];
  }

  #isOpen(block: JsonRecord): boolean {
    const open = this.#open?.block;
    return open !== undefined && ['type', 'id', 'data'].every((field) => open[field] === block[field]);
  }

  #close(event: JsonRecord = { type: 'content_block_stop' }): JsonRecord[] {
    if (!this.#open) return [];
    this.#open = undefined;
    return [{ ...event, index: this.#begun - 1 }];
  }
}

/** What is not known may be in any block, and any piece in a block that is not known. */
const fits = ({ type }: JsonRecord, delta: JsonRecord): boolean =>
  !knownBlocks.has(type) || (deltaKinds.get(delta['type']) ?? type) === type;

/** Its input is, or it has none. */
const isWhole = ({ block, scan }: OpenBlock): boolean =>
  scan.complete || (block['type'] !== 'tool_use' && scan.deepest === 0);

/** Streams begin a block without what its deltas bring. */
function eventsOfBlock(block: JsonRecord, index: number): JsonRecord[] {
  const { type, text, thinking, signature, citations, input } = block;
  const pieces: JsonRecord[] = [];
  const started = { ...block };
  const moved = (field: string, value: unknown, delta: string): void => {
    if (typeof value !== 'string' || value === '') return;
    started[field] = '';
    pieces.push({ type: delta, [field]: value });
  };
  if (type === 'text') {
    if (Array.isArray(citations)) started['citations'] = [];
    for (const citation of listIn(citations)) pieces.push({ type: 'citations_delta', citation });
    moved('text', text, 'text_delta');
  } else if (type === 'thinking') {
    moved('thinking', thinking, 'thinking_delta');
    moved('signature', signature, 'signature_delta');
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

/** A start of text or thinking is an empty one. */
export function isContent({ type, content_block: block }: JsonRecord): boolean {
  const kind = textIn(asRecord(block)['type']);
  return (
    type === 'content_block_delta' || (type === 'content_block_start' && !['text', 'thinking'].includes(kind))
  );
}
