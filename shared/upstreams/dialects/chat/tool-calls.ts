/** Reads tool calls of Chat Completions upstreams, which cut calls into pieces in different ways. */
import type { ToolCallDelta } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, parseJson, type JsonRecord } from '../../../wire/json-record.ts';
import { UpstreamFailure } from '../../upstream-failure.ts';

/**
 * Eight times what OpenAI allows. Limits the work, since every new call is compared with all earlier ones.
 */
const callsMax = 1024;

/** The content of a piece, and its place in the delta. */
interface PieceReading {
  id: string | undefined;
  name: string | undefined;
  text: string;
  position: number;
  count: number;
}

interface OpenCall {
  /** The index that clients see: dense, in order of first appearance. */
  index: number;
  id: string;
  upstreamIndex: number | undefined;
  upstreamId: string | undefined;
  name: string | undefined;
  /** All argument text so far, held until the name is known: clients need the name in the first piece. */
  text: string;
}

/**
 * The tool calls of one choice. Upstreams differ in which of index, id, type and name they send, and when.
 * Clients get a dense 0-based index, a separate id for each call, and id, type and name in its first piece.
 */
export class UpstreamToolCalls {
  readonly #idPrefix: string;
  readonly #calls: OpenCall[] = [];

  constructor(idPrefix: string) {
    this.#idPrefix = idPrefix;
  }

  get any(): boolean {
    return this.#calls.length > 0;
  }

  push(pieces: readonly unknown[]): ToolCallDelta[] {
    return pieces.flatMap((piece, position) =>
      isRecord(piece) ? this.#pushPiece(piece, position, pieces.length) : [],
    );
  }

  /**
   * Returns the last pieces. A call without arguments gets an empty object, so that all arguments are JSON.
   */
  end(): ToolCallDelta[] {
    return this.#calls.flatMap((call) => {
      const unnamed = call.name === undefined ? [this.#first(call, '')] : [];
      return call.text === '' ? [...unnamed, { index: call.index, function: { arguments: '{}' } }] : unnamed;
    });
  }

  #pushPiece(piece: JsonRecord, position: number, count: number): ToolCallDelta[] {
    const source = asRecord(piece['function']);
    const name = nonEmpty(source['name']);
    const text = argumentsText(source['arguments']);
    const index = typeof piece['index'] === 'number' ? piece['index'] : undefined;
    const call = this.#find(index, { id: nonEmpty(piece['id']), name, text, position, count });
    call.text += text;
    if (call.name !== undefined) {
      return text === '' ? [] : [{ index: call.index, function: { arguments: text } }];
    }
    return name === undefined ? [] : [this.#first(call, name)];
  }

  #first(call: OpenCall, name: string): ToolCallDelta {
    call.name = name;
    return { index: call.index, id: call.id, type: 'function', function: { name, arguments: call.text } };
  }

  /**
   * Finds the call of a piece by index, else by id, else by position. Adds a call if the piece starts another
   * one: some upstreams send the index 0 for all calls.
   */
  #find(index: number | undefined, piece: PieceReading): OpenCall {
    const { id, position, count } = piece;
    const same = this.#same(index, id, count > 1 ? position : -1);
    return same && !startsAnother(same, piece) ? same : this.#add(index, id);
  }

  #same(index: number | undefined, id: string | undefined, position: number): OpenCall | undefined {
    if (index !== undefined) return this.#calls.findLast((call) => call.upstreamIndex === index);
    if (id !== undefined) return this.#calls.findLast((call) => call.upstreamId === id);
    return this.#calls.at(position);
  }

  #add(upstreamIndex: number | undefined, upstreamId: string | undefined): OpenCall {
    const index = this.#calls.length;
    if (index >= callsMax) throw new UpstreamFailure('too_large');
    const usable = upstreamId !== undefined && !this.#calls.some((call) => call.id === upstreamId);
    const call: OpenCall = {
      index,
      id: usable ? upstreamId : `${this.#idPrefix}${index}`,
      upstreamIndex,
      upstreamId,
      name: undefined,
      text: '',
    };
    this.#calls.push(call);
    return call;
  }
}

/**
 * Whether a piece with a name starts another call. It does not while the arguments of the first are
 * incomplete: some upstreams repeat name, id or both on every piece.
 */
function startsAnother(call: OpenCall, { id, name, text }: PieceReading): boolean {
  if (name === undefined || call.name === undefined) return false;
  if (call.text === '') return name !== call.name;
  if (parseJson(call.text) === undefined) return false;
  const otherId = id !== undefined && id !== call.upstreamId;
  return otherId || name !== call.name || text.trimStart().startsWith('{');
}

function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

const nonEmpty = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
