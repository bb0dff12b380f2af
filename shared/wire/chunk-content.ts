import type { ChatChunk, ChatDelta } from './chat-response.ts';

/** Whether a chunk has content that a client sees. The first such chunk opens the answer. */
export const hasContent = (chunk: ChatChunk): boolean =>
  chunk.choices.some(
    ({ delta }) =>
      deltaText(delta) !== '' || (delta.tool_calls?.length ?? 0) > 0 || (delta.images?.length ?? 0) > 0,
  );

/** All text of a delta, including the names and arguments of tool calls. */
export const deltaText = (delta: ChatDelta): string => visibleText(delta) + besideText(delta);

/** The text of the answer itself and of its calls. */
export function visibleText(delta: ChatDelta): string {
  const calls = (delta.tool_calls ?? []).map(
    ({ function: called, custom }) =>
      (called?.name ?? '') + (called?.arguments ?? '') + (custom?.name ?? '') + (custom?.input ?? ''),
  );
  return (delta.content ?? '') + calls.join('');
}

/** Text beside the answer: reasoning that the vendor shows, and why it refuses. */
export const besideText = ({ reasoning_content: reasoning = '', refusal = '' }: ChatDelta): string =>
  reasoning + refusal;

/**
 * What one answer makes a process keep, in bytes. Every place that accumulates adds what it keeps; what only passes
 * through is not counted. Over the limit, `tooMuch` is thrown.
 */
export class Kept {
  readonly #bytesMax: number;
  readonly #tooMuch: () => Error;
  #bytes = 0;

  constructor(bytesMax: number, tooMuch: () => Error) {
    this.#bytesMax = bytesMax;
    this.#tooMuch = tooMuch;
  }

  text(text: string): void {
    this.bytes(lengthInBytes(text));
  }

  value(value: unknown): void {
    this.bytes(bytesOf(value));
  }

  bytes(count: number): void {
    this.#bytes += count;
    if (this.#bytes > this.#bytesMax) throw this.#tooMuch();
  }
}

const textBytes = 24;
const slotBytes = 8;
const objectBytes = 48;

/** About the memory that a JSON value takes: several times the length of its JSON where its parts are small. */
export function bytesOf(value: unknown): number {
  if (typeof value === 'string') return textBytes + lengthInBytes(value);
  if (typeof value !== 'object' || value === null) return Number.isSafeInteger(value) ? 0 : slotBytes;
  let bytes = objectBytes;
  for (const inner of Object.values(value)) bytes += slotBytes + bytesOf(inner);
  return bytes;
}

const beyondLatin = /[\u0100-\uffff]/;
const lengthInBytes = (text: string): number => (beyondLatin.test(text) ? 2 : 1) * text.length;

/** Pieces that are joined at once. */
const piecesMax = 1024;

/**
 * A text that grows by pieces. Text that is lengthened with `+=` keeps every piece as an object of its own until it is
 * read, which takes ten times the memory of short pieces.
 */
export class GrowingText {
  #whole = '';
  #pieces: string[] = [];

  add(piece: string): void {
    this.#pieces.push(piece);
    if (this.#pieces.length === piecesMax) this.#join();
  }

  get text(): string {
    this.#join();
    return this.#whole;
  }

  #join(): void {
    this.#whole += this.#pieces.join('');
    this.#pieces = [];
  }
}
