/**
 * Reads tool calls of Chat Completions upstreams, which cut calls into pieces in different ways. Never emits a call
 * twice, arguments after their end, or a custom call that was cut inside its wrapper.
 */
import type { ToolCallDelta } from '../../../../wire/chat-response.ts';
import type { Kept } from '../../../../wire/chunk-content.ts';
import { isRecord, type JsonRecord } from '../../../../wire/json-record.ts';
import { unwrappedInput } from '../../../calls/custom-tools.ts';
import { UpstreamFailure } from '../../../upstream-failure.ts';
import { readPiece, type CallPiece } from './call-piece.ts';
import type { DeclaredNames } from './declared-names.ts';
import { openCall, type OpenCall } from './open-call.ts';
import { isRepeat, nextName, startsAnother, unsentPart } from './same-call.ts';

/** Eight times what OpenAI allows. */
const callsMax = 1024;

export interface ToolCallReading {
  /** The id that the client sees, for the next call of the answer. */
  showId: (vendorId: string | undefined) => string;
  names: DeclaredNames;
  /** Tools that were sent as functions with one text `input`. */
  wrapped: ReadonlySet<string>;
  kept: Kept;
}

/**
 * The tool calls of one choice. Upstreams differ in which of index, id, type and name they send, and when. Clients get
 * a dense 0-based index, a separate id for each call, and id, type and name in its first piece.
 */
export class UpstreamToolCalls {
  /** State that came with a piece before any call. */
  looseExtra: JsonRecord | undefined;
  readonly #reading: ToolCallReading;
  readonly #calls: OpenCall[] = [];
  readonly #byIndex = new Map<number, OpenCall>();
  readonly #byId = new Map<string, OpenCall>();
  readonly #shown: OpenCall[] = [];
  #deltas = 0;

  constructor(reading: ToolCallReading) {
    this.#reading = reading;
  }

  /** The number of calls that clients see. */
  get shown(): number {
    return this.#shown.length;
  }

  /** The state of the shown calls that have one. */
  get extras(): Map<number, JsonRecord> {
    return new Map(this.#shown.flatMap(({ extra }, index) => (extra ? [[index, extra]] : [])));
  }

  push(pieces: readonly unknown[]): ToolCallDelta[] {
    this.#deltas += 1;
    return pieces.flatMap((piece, position) =>
      isRecord(piece) ? this.#pushPiece(readPiece(piece, pieces.length > 1 ? position : undefined)) : [],
    );
  }

  /**
   * Returns the last pieces. A call without arguments gets an empty object, so that all arguments are JSON. `whole`:
   * the answer was not cut.
   */
  end(whole: boolean): ToolCallDelta[] {
    return this.#calls.flatMap((call): ToolCallDelta[] => {
      if (call.index === undefined && this.#reading.wrapped.has(call.name))
        return whole && !/^\s*["{]/.test(call.text) ? this.#unwrap(call) : [];
      const first = call.index === undefined ? [this.#show(call)] : [];
      const empty = call.kind === 'function' && call.text === '';
      return empty ? [...first, { ...this.#place(call), function: { arguments: '{}' } }] : first;
    });
  }

  #pushPiece(piece: CallPiece): ToolCallDelta[] {
    const found = this.#find(piece);
    if (!found && piece.name === undefined && piece.id === undefined && piece.text === '') {
      this.looseExtra = piece.extra ? { ...this.looseExtra, ...piece.extra } : this.looseExtra;
      this.#keepExtra(piece);
      return [];
    }
    const { names } = this.#reading;
    const isNew = !found || startsAnother(found, piece, { names, delta: this.#deltas });
    const call = isNew ? this.#add(piece) : found;
    if (piece.custom && call.index === undefined) call.kind = 'custom';
    if (piece.name !== undefined && call.index === undefined) this.#setName(call, piece.name);
    const text = isNew || !isRepeat(call, piece) ? this.#addText(call, piece) : '';
    return this.#emit(call, text, piece.extra && this.#addExtra(call, piece));
  }

  /** Finds the call of a piece by index, else by id, else by position. */
  #find({ index, id, position, isStateOnly }: CallPiece): OpenCall | undefined {
    const named = id === undefined ? undefined : this.#byId.get(id);
    if (index !== undefined) return named?.upstreamIndex === index ? named : this.#byIndex.get(index);
    if (id !== undefined) return named;
    if (position !== undefined) return this.#calls[position];
    // Only the first of parallel calls is signed, and its signature may come after all of them.
    const [first] = this.#calls;
    return isStateOnly && first && !first.extra ? first : this.#calls.at(-1);
  }

  #add({ index, id }: CallPiece): OpenCall {
    if (this.#calls.length >= callsMax) throw new UpstreamFailure('too_large');
    this.#reading.kept.value(id);
    const call = openCall(index, id, this.#deltas);
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    if (id !== undefined) this.#byId.set(id, call);
    return call;
  }

  #setName(call: OpenCall, piece: string): void {
    const { names, kept } = this.#reading;
    if (call.name.length + piece.length > 2 * names.lengthMax) throw new UpstreamFailure('too_large');
    kept.text(piece);
    const name = call.name === '' ? piece : nextName(call, piece, names);
    if (name !== undefined) call.name = name;
    if (call.name.length > names.lengthMax) throw new UpstreamFailure('too_large');
  }

  /** Returns the part of the text that is new. */
  #addText(call: OpenCall, piece: CallPiece): string {
    if (piece.text === '') return '';
    if (call.kind === 'custom') return this.#keepText(call, piece.text);
    if (call.scan.complete) return '';
    if (call.text === '' && piece.text.trim() === '{}') {
      call.placeholder = true;
      return '';
    }
    call.placeholder = false;
    const unsent = unsentPart(call, piece);
    return this.#keepText(call, unsent.slice(0, call.scan.push(unsent)));
  }

  #keepText(call: OpenCall, text: string): string {
    this.#reading.kept.text(text);
    call.text += text;
    return text;
  }

  #addExtra(call: OpenCall, piece: CallPiece): JsonRecord {
    this.#keepExtra(piece);
    call.extra = { ...call.extra, ...piece.extra };
    return call.extra;
  }

  #keepExtra({ extra }: CallPiece): void {
    if (extra) this.#reading.kept.value(extra);
  }

  #emit(call: OpenCall, text: string, extra: JsonRecord | undefined): ToolCallDelta[] {
    const { names, wrapped } = this.#reading;
    if (call.index !== undefined) {
      if (text === '' && !extra) return [];
      if (call.unwrapped) return extra ? [{ ...this.#place(call), extra_content: extra }] : [];
      return [{ ...this.#place(call), ...textOf(call, text), ...(extra && { extra_content: extra }) }];
    }
    call.unsent += text;
    if (call.name === '') return [];
    if (wrapped.has(call.name) && call.kind === 'function')
      return call.scan.complete && call.text !== '' ? this.#unwrap(call) : [];
    const known = names.isWhole(call.name) || call.text !== '' || call.placeholder;
    return known ? [this.#show(call)] : [];
  }

  #place(call: OpenCall): { index: number } {
    return { index: call.index ?? 0 };
  }

  #show(call: OpenCall): ToolCallDelta {
    call.index = this.#shown.length;
    this.#shown.push(call);
    const { index, kind, name, unsent, extra } = call;
    call.unsent = '';
    return {
      index,
      id: this.#reading.showId(call.upstreamId),
      type: kind,
      ...(kind === 'custom'
        ? { custom: { name, input: unsent } }
        : { function: { name, arguments: unsent } }),
      ...(extra && { extra_content: extra }),
    };
  }

  /** A wrapped call goes out in one piece, when its wrapper is closed. */
  #unwrap(call: OpenCall): ToolCallDelta[] {
    call.kind = 'custom';
    call.unwrapped = true;
    call.unsent = unwrappedInput(call.text);
    return [this.#show(call)];
  }
}

function textOf({ kind }: OpenCall, text: string): Partial<ToolCallDelta> {
  if (text === '') return {};
  return kind === 'custom' ? { custom: { input: text } } : { function: { arguments: text } };
}
