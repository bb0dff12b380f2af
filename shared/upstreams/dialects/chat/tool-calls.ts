/**
 * Reads tool calls of Chat Completions upstreams, which split calls in different ways. Never emits a call twice,
 * arguments after their end, or a custom call that was cut inside its wrapper.
 */
import {
  canonicalJson,
  asRecord,
  isRecord,
  jsonText,
  listIn,
  parseJson,
  textIn,
  type JsonRecord,
} from '../../../wire/json.ts';
import { JsonScan } from '../../../stream/json-scan.ts';
import type { ToolCallDelta } from '../../../wire/chat-response.ts';
import { calledNameMax } from '../../../wire/ids.ts';
import { callsMax, tooLargeFailure, type AnswerWriter } from '../../answer-writer.ts';
import { unwrapInput } from '../../request-fields.ts';

interface OpenCall {
  /** The index that clients see, in the order in which calls are shown. Undefined until then. */
  index: number | undefined;
  readonly upstreamIndex: number | undefined;
  readonly upstreamId: string | undefined;
  /** The number of its first delta. */
  readonly delta: number;
  kind: 'function' | 'custom';
  /** It was unwrapped and shown in one piece. */
  isUnwrapped: boolean;
  name: string;
  text: string;
  /** Text that clients do not have yet: their first piece needs the name. */
  unsentText: string;
  readonly scan: JsonScan;
  /** Some upstreams send `{}` before the real arguments. */
  isPlaceholder: boolean;
  /** Canonical form of the complete arguments, computed at the first repeat. */
  canonical: string | undefined;
  extra: JsonRecord | undefined;
}

/**
 * The tool calls of one choice. Upstreams differ in which of index, id, type and name they send, and when. Clients get
 * consecutive indexes from 0, a separate id for each call, and id, type and name in its first piece.
 */
export class UpstreamToolCalls {
  /** State that came with a piece before any call. */
  looseExtra: JsonRecord | undefined;
  readonly shownCalls: OpenCall[] = [];
  readonly #writer: Pick<AnswerWriter, 'memory' | 'assignCallId'>;
  readonly #names: DeclaredNames;
  readonly #wrapped: ReadonlySet<string>;
  readonly #calls: OpenCall[] = [];
  #deltas = 0;

  /** `wrapped`: the tools that were sent as functions with one text `input`. */
  constructor(
    writer: Pick<AnswerWriter, 'memory' | 'assignCallId'>,
    names: DeclaredNames,
    wrapped: ReadonlySet<string>,
  ) {
    this.#writer = writer;
    this.#names = names;
    this.#wrapped = wrapped;
  }

  push(pieces: readonly unknown[]): ToolCallDelta[] {
    this.#deltas += 1;
    return pieces.flatMap((piece, position) =>
      isRecord(piece) ? this.#pushPiece(readPiece(piece, pieces.length > 1 ? position : undefined)) : [],
    );
  }

  /**
   * Returns the last pieces. A call without arguments gets an empty object, so that all arguments are JSON.
   * `isComplete`: the answer was not cut.
   */
  end(isComplete: boolean): ToolCallDelta[] {
    return this.#calls.flatMap((call): ToolCallDelta[] => {
      if (call.index === undefined && this.#wrapped.has(call.name))
        return isComplete && !/^\s*["{]/.test(call.text) ? this.#unwrap(call) : [];
      const first = call.index === undefined ? [this.#show(call)] : [];
      const empty = call.kind === 'function' && call.text.trim() === '';
      return empty ? [...first, { index: call.index ?? 0, function: { arguments: '{}' } }] : first;
    });
  }

  #pushPiece(piece: CallPiece): ToolCallDelta[] {
    const { name, id, extra } = piece;
    const found = this.#find(piece);
    if (extra) this.#writer.memory.value(extra);
    if (!found && name === undefined && id === undefined && piece.text === '') {
      if (extra) this.looseExtra = { ...this.looseExtra, ...extra };
      return [];
    }
    const isNew = !found || startsAnother(found, piece, this.#names, this.#deltas);
    const call = isNew ? this.#add(piece) : found;
    if (call.index === undefined) {
      if (piece.custom) call.kind = 'custom';
      if (name !== undefined) this.#setName(call, name);
    }
    const text = isNew || !isRepeat(call, piece) ? this.#addText(call, piece) : '';
    if (extra) call.extra = { ...call.extra, ...extra };
    return this.#emit(call, text, extra && call.extra);
  }

  /** By index, or by id, or by position. */
  #find({ index, id, name, text, extra, position }: CallPiece): OpenCall | undefined {
    const named = id === undefined ? undefined : this.#calls.findLast((call) => call.upstreamId === id);
    if (index !== undefined && named?.upstreamIndex !== index)
      return this.#calls.findLast((call) => call.upstreamIndex === index);
    if (index !== undefined || id !== undefined) return named;
    if (position !== undefined) return this.#calls[position];
    // Only the first of parallel calls is signed, and its signature may come after all of them.
    const [first] = this.#calls;
    const isStateOnly = extra !== undefined && name === undefined && text === '';
    return isStateOnly && first && !first.extra ? first : this.#calls.at(-1);
  }

  #add({ index, id }: CallPiece): OpenCall {
    if (this.#calls.length >= callsMax) throw tooLargeFailure();
    this.#writer.memory.value(id);
    const call: OpenCall = {
      index: undefined,
      upstreamIndex: index,
      upstreamId: id,
      delta: this.#deltas,
      kind: 'function',
      isUnwrapped: false,
      name: '',
      text: '',
      unsentText: '',
      scan: new JsonScan(),
      isPlaceholder: false,
      canonical: undefined,
      extra: undefined,
    };
    this.#calls.push(call);
    return call;
  }

  #setName(call: OpenCall, piece: string): void {
    const { lengthMax } = this.#names;
    if (call.name.length + piece.length > 2 * lengthMax) throw tooLargeFailure();
    this.#writer.memory.text(piece);
    call.name = call.name === '' ? piece : (joinName(call, piece, this.#names) ?? call.name);
    if (call.name.length > lengthMax) throw tooLargeFailure();
  }

  /** Returns the new text. */
  #addText(call: OpenCall, piece: CallPiece): string {
    let { text } = piece;
    if (text === '') return '';
    if (call.kind === 'function') {
      // The writer decides if this is another object or a repeat.
      if (call.scan.complete) return text;
      call.isPlaceholder = call.text === '' && text.trim() === '{}';
      if (call.isPlaceholder) return '';
      text = findUnsentText(call, piece);
      const end = call.scan.push(text);
      this.#writer.memory.text(text);
      call.text += text.slice(0, end);
      return text;
    }
    this.#writer.memory.text(text);
    call.text += text;
    return text;
  }

  #emit(call: OpenCall, text: string, extra: JsonRecord | undefined): ToolCallDelta[] {
    const { index, kind, name } = call;
    if (index !== undefined) {
      const shown = call.isUnwrapped ? '' : text;
      if (shown === '' && !extra) return [];
      const said = kind === 'custom' ? { custom: { input: shown } } : { function: { arguments: shown } };
      return [{ index, ...(shown !== '' && said), ...(extra && { extra_content: extra }) }];
    }
    call.unsentText += text;
    if (name === '') return [];
    if (this.#wrapped.has(name) && kind === 'function')
      return call.scan.complete && call.text !== '' ? this.#unwrap(call) : [];
    const known = this.#names.isWhole(name) || call.text !== '' || call.isPlaceholder;
    return known ? [this.#show(call)] : [];
  }

  #show(call: OpenCall): ToolCallDelta {
    const { kind, name, unsentText: unsent, extra } = call;
    const index = this.shownCalls.push(call) - 1;
    call.index = index;
    call.unsentText = '';
    return {
      index,
      id: this.#writer.assignCallId(call.upstreamId),
      type: kind,
      ...(kind === 'custom'
        ? { custom: { name, input: unsent } }
        : { function: { name, arguments: unsent } }),
      ...(extra && { extra_content: extra }),
    };
  }

  /** A wrapped call is sent in one piece, once its wrapper is closed. */
  #unwrap(call: OpenCall): ToolCallDelta[] {
    Object.assign(call, { kind: 'custom', isUnwrapped: true, unsentText: unwrapInput(call.text) });
    return [this.#show(call)];
  }
}

/** Longer than any vendor's ids. */
const idLengthMax = 1024;

/** One piece of a tool call, in one form for all upstreams. */
interface CallPiece {
  index: number | undefined;
  id: string | undefined;
  name: string | undefined;
  /** Arguments, or the input of a custom call. */
  text: string;
  custom: boolean;
  extra: JsonRecord | undefined;
  /** The position among several pieces of one delta. */
  position: number | undefined;
}

function readPiece(piece: JsonRecord, position: number | undefined): CallPiece {
  const called = asRecord(piece['function']);
  const custom = asRecord(piece['custom']);
  // Some upstreams send an empty `custom` beside the function. It means nothing.
  const isCustom =
    textIn(called['name']) === '' &&
    (textIn(custom['name']) !== '' || textIn(custom['input']) !== '' || piece['type'] === 'custom');
  const id = textIn(piece['id']);
  return {
    index: indexOf(piece['index']),
    id: id !== '' && id.length <= idLengthMax ? id : undefined,
    name: textIn((isCustom ? custom : called)['name']) || undefined,
    text: jsonText(isCustom ? custom['input'] : called['arguments']),
    custom: isCustom,
    extra: isRecord(piece['extra_content']) ? piece['extra_content'] : undefined,
    position,
  };
}

/** Some upstreams write the index as a string. */
function indexOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : undefined;
}

/** The names of the tools that were sent, to tell a complete name from a piece of one. */
export class DeclaredNames {
  readonly lengthMax: number;
  readonly #names: ReadonlySet<string>;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    // A row may set tools of its own.
    this.lengthMax = Math.max(calledNameMax, ...[...this.#names].map(({ length }) => length));
  }

  /** `body`: as it was sent. */
  static readFrom({ tools, functions }: JsonRecord): DeclaredNames {
    const entries = [tools, functions].flatMap(listIn).map(asRecord);
    const names = entries.map((entry) => asRecord(entry['function'] ?? entry['custom'] ?? entry)['name']);
    return new DeclaredNames(names.filter((name) => typeof name === 'string'));
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** No declared name continues this one. Without declared tools every name is complete. */
  isWhole(name: string): boolean {
    if (this.#names.size === 0) return true;
    return this.#names.has(name) && ![...this.#names].some((one) => one !== name && one.startsWith(name));
  }

  hasBeginning(text: string): boolean {
    return [...this.#names].some((name) => name.startsWith(text));
  }
}

// Upstreams do not say whether a piece continues a call, repeats it or starts another one.

const hasOtherId = (call: OpenCall, { id }: CallPiece): boolean =>
  id !== undefined && call.upstreamId !== undefined && id !== call.upstreamId;

/**
 * Some upstreams send the index 0 for all calls, so a name may start another call. It does not while the arguments of
 * the first are incomplete: some upstreams repeat name, id or both on every piece. `delta`: the number of the piece's
 * delta.
 */
function startsAnother(call: OpenCall, piece: CallPiece, names: DeclaredNames, delta: number): boolean {
  const { name, text } = piece;
  if (name === undefined || call.name === '') return false;
  if (call.text === '' && !call.isPlaceholder)
    return hasOtherId(call, piece) ? name !== call.name : joinName(call, name, names) === undefined;
  if (call.kind === 'custom') return hasOtherId(call, piece) || name !== call.name;
  if (!call.isPlaceholder && !call.scan.complete) return false;
  if (hasOtherId(call, piece) || name !== call.name) return true;
  if (!text.trimStart().startsWith('{')) return false;
  if (call.delta === delta) return true;
  return (!call.isPlaceholder || piece.id === undefined) && !isRepeat(call, piece);
}

/**
 * Some servers send the complete arguments again with the finish reason. Without index and id nothing says that it is
 * the same call, and a tool may be called twice with the same arguments.
 */
function isRepeat(call: OpenCall, piece: CallPiece): boolean {
  const { text } = piece;
  if (text === '' || (piece.index === undefined && piece.id === undefined)) return false;
  if (text.length === call.text.length && text === call.text)
    return call.kind === 'custom' ? piece.name !== undefined : call.scan.complete;
  if (call.kind === 'custom') return false;
  if (call.isPlaceholder) return text.trim() === '{}';
  return call.scan.complete && isSameJson(call, text);
}

/** Writing JSON is recursive and overflows at some thousand levels. */
const levelsMax = 200;

/** The call's own form is computed once, so repeats cost no more than their own length. */
function isSameJson(call: OpenCall, text: string): boolean {
  if (call.scan.deepest > levelsMax) return false;
  call.canonical ??= canonicalOf(call.text);
  const scan = new JsonScan();
  scan.push(text);
  return scan.deepest <= levelsMax && canonicalOf(text) === call.canonical;
}

function canonicalOf(text: string): string {
  const value = parseJson(text);
  return isRecord(value) ? canonicalJson(value) : text;
}

/**
 * Returns the new text of a piece: a last piece may have the complete arguments although their beginning was sent.
 * Compares a beginning only with longer texts, so that the work stays linear.
 */
function findUnsentText(call: OpenCall, { name, text }: CallPiece): string {
  const sent = call.text;
  if (text.length <= sent.length || sent.trim() === '' || !text.trimStart().startsWith('{')) return text;
  // If a value is expected, an object that begins like the whole may be a part of it.
  if (name === undefined && call.scan.wantsValue) return text;
  return text.startsWith(sent) && isWholeObject(text) ? text.slice(sent.length) : text;
}

/** The text begins with `{`. */
function isWholeObject(text: string): boolean {
  const scan = new JsonScan();
  const end = scan.push(text);
  return scan.complete && text.slice(end).trim() === '';
}

/**
 * Joins a name with another piece that came before any argument: an addition, a repeat, or a longer name. Undefined if
 * it is the name of another call.
 */
function joinName(call: OpenCall, piece: string, names: DeclaredNames): string | undefined {
  const joined = call.name + piece;
  if (call.index !== undefined) return piece === call.name ? piece : undefined;
  if (names.has(joined)) return joined;
  if (piece === call.name) return piece;
  if (piece.startsWith(call.name) && names.hasBeginning(piece)) return piece;
  return names.hasBeginning(joined) ? joined : undefined;
}
