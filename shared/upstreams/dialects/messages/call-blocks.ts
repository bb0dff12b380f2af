/**
 * Reads one tool call of an answer. A call of a tool that was sent as a function with one text `input` is held until
 * its JSON is complete, and then becomes a custom call; cut inside, it is never shown, so that nobody runs it.
 */
import type { ToolCallDelta } from '../../../wire/chat-response.ts';
import { isRecord, parseJson, type JsonRecord } from '../../../wire/json-record.ts';
import { calledNameMax } from '../../../wire/name-patterns.ts';
import { unwrappedInput } from '../../calls/custom-tools.ts';
import type { ReaderContext } from '../../dialect.ts';
import { UpstreamFailure } from '../../upstream-failure.ts';

/** Far more calls than a model makes. */
const callsMax = 1024;

/** The ids and indexes of the calls of one answer: dense, in the order in which clients see the calls. */
export class CallNumbers {
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

export class CallBlock {
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
