/** Tool calls in the answers of Chat Completions upstreams, which disagree on how a call is cut into pieces. */
import type { ToolCallDelta } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, parseJson, type JsonRecord } from '../../../wire/json-record.ts';
import { UpstreamFailure } from '../../upstream-failure.ts';

/** Eight times what OpenAI allows. Bounds the work, since every new call is compared with all before it. */
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
  /** Dense, by order of first appearance: what clients see. */
  index: number;
  id: string;
  upstreamIndex: number | undefined;
  upstreamId: string | undefined;
  name: string | undefined;
  /** All argument text so far; held back until the name is known, which clients need in the first piece. */
  text: string;
}

/**
 * The tool calls of one choice. Upstreams differ in which of index, id, type and name they send, and when;
 * clients get a dense 0-based index, an id of their own for each call, and id, type and name in its first piece.
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

  /** Last pieces: a call without arguments gets an empty object, so that every call's arguments are JSON. */
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

  /** By index, unless it stands for a second call (some upstreams send 0 for all); else by id; else by position. */
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
 * Whether a piece that repeats a name begins a second call. Not while the first one's arguments are incomplete: some
 * upstreams repeat name, id or both on every piece.
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
