/**
 * Reads tool calls of Chat Completions upstreams, which cut calls into pieces in different ways. Never emits a call
 * twice, arguments after their end, or a custom call that was cut inside its wrapper.
 */
import type { ToolCallDelta, Kept } from '../../../wire/chat-response.ts';
import { isRecord, type JsonRecord, canonicalJson, parseJson, asRecord } from '../../../wire/json.ts';
import { unwrappedInput } from '../../request-parts.ts';
import { UpstreamFailure } from '../../exchange.ts';
import { calledNameMax } from '../../../wire/ids.ts';

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

/** Finds the end of a JSON value that comes in pieces. Each character is read once, so the work is linear. */
class JsonScan {
  /** The value is closed. Only objects, arrays and strings have an end of their own. */
  complete = false;
  /** The most levels that were open at once. */
  deepest = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The last character outside strings that is no white space; empty: nothing has begun. */
  #last = '';

  /** The next character begins a value inside an object or array, so that an object may stand there. */
  get wantsValue(): boolean {
    return !this.#inString && (this.#last === ':' || this.#last === ',' || this.#last === '[');
  }

  /** Returns how many characters of `text` belong to the value. */
  push(text: string): number {
    for (let at = 0; at < text.length; at += 1) {
      if (this.complete) return at;
      this.#read(text.charAt(at));
    }
    return text.length;
  }

  #read(character: string): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (character === '\\') this.#escaped = true;
      else if (character === '"') this.#close('"');
      return;
    }
    if (character === '"') this.#inString = this.#depth > 0 || this.#last === '';
    else if (character === '{' || character === '[') this.#open();
    else if (character === '}' || character === ']') {
      this.#depth -= 1;
      this.#close(character);
      return;
    }
    if (character > ' ') this.#last = character;
  }

  #open(): void {
    this.#depth += 1;
    if (this.#depth > this.deepest) this.deepest = this.#depth;
  }

  #close(character: string): void {
    this.#inString = false;
    this.#last = character;
    // Text that closes more than it opened is no JSON and has no end.
    this.complete = this.#depth === 0;
  }
}

/** Whether a text alone is one whole object. */
function isWholeObject(text: string): boolean {
  if (!text.trimStart().startsWith('{')) return false;
  const scan = new JsonScan();
  const end = scan.push(text);
  return scan.complete && text.slice(end).trim() === '';
}

// A call of which pieces come.

interface OpenCall {
  /** The index that clients see: dense, in the order in which calls are shown. Undefined: not shown yet. */
  index: number | undefined;
  readonly upstreamIndex: number | undefined;
  readonly upstreamId: string | undefined;
  /** The number of the delta that it began in. */
  readonly delta: number;
  kind: 'function' | 'custom';
  /** It was taken out of its wrapper and shown whole. */
  unwrapped: boolean;
  name: string;
  /** All argument text so far. */
  text: string;
  /** What of it clients have not got: they need the name in the first piece. */
  unsent: string;
  readonly scan: JsonScan;
  /** The text came as `{}`, which some upstreams send before the real arguments. */
  placeholder: boolean;
  /** The complete arguments in canonical form, made at the first repeat. */
  canonical: string | undefined;
  extra: JsonRecord | undefined;
}

const openCall = (index: number | undefined, id: string | undefined, delta: number): OpenCall => ({
  index: undefined,
  upstreamIndex: index,
  upstreamId: id,
  delta,
  kind: 'function',
  unwrapped: false,
  name: '',
  text: '',
  unsent: '',
  scan: new JsonScan(),
  placeholder: false,
  canonical: undefined,
  extra: undefined,
});

// Whether a piece continues a call, repeats it or starts another one. Upstreams do not say.

/** Writing JSON is recursive and overflows at some thousand levels. */
const levelsMax = 200;

interface SameCallFacts {
  names: DeclaredNames;
  /** The number of the delta of the piece. */
  delta: number;
}

const otherId = (call: OpenCall, { id }: CallPiece): boolean =>
  id !== undefined && call.upstreamId !== undefined && id !== call.upstreamId;

/**
 * Whether a piece with a name starts another call: some upstreams send the index 0 for all. It does not while the
 * arguments of the first are incomplete: some upstreams repeat name, id or both on every piece.
 */
function startsAnother(call: OpenCall, piece: CallPiece, { names, delta }: SameCallFacts): boolean {
  const { name, text } = piece;
  if (name === undefined || call.name === '') return false;
  if (call.text === '' && !call.placeholder)
    return otherId(call, piece) ? name !== call.name : nextName(call, name, names) === undefined;
  if (call.kind === 'custom') return otherId(call, piece) || name !== call.name;
  if (!call.placeholder && !call.scan.complete) return false;
  if (otherId(call, piece) || name !== call.name) return true;
  if (!text.trimStart().startsWith('{')) return false;
  if (call.delta === delta) return true;
  return call.placeholder ? piece.id === undefined && !isRepeat(call, piece) : !isRepeat(call, piece);
}

/**
 * Whether a piece has the whole arguments of a call again, as some servers send them with the finish reason. Without
 * index and id nothing says that it is the same call, and a tool may be called twice with the same arguments.
 */
function isRepeat(call: OpenCall, piece: CallPiece): boolean {
  const { text } = piece;
  if (text === '' || (piece.index === undefined && piece.id === undefined)) return false;
  if (text.length === call.text.length && call.text !== '' && text === call.text)
    return call.kind === 'custom' ? piece.name !== undefined : call.scan.complete;
  if (call.kind === 'custom') return false;
  if (call.placeholder) return text.trim() === '{}';
  return call.scan.complete && sameJson(call, text);
}

/** The call's own form is made once, so that repeats cost no more than their own length. */
function sameJson(call: OpenCall, text: string): boolean {
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
 * The part of a piece's text that was not sent yet: a last piece may have the whole arguments although their beginning
 * was sent. A beginning is compared only with a longer text, so that the work stays linear.
 */
function unsentPart(call: OpenCall, { name, text }: CallPiece): string {
  const sent = call.text;
  if (text.length <= sent.length || sent.trim() === '' || !text.trimStart().startsWith('{')) return text;
  // Where a value is expected, an object that begins like the whole may be a part of it.
  if (name === undefined && call.scan.wantsValue) return text;
  return text.startsWith(sent) && isWholeObject(text) ? text.slice(sent.length) : text;
}

/**
 * The name of a call, of which another piece came before any argument: joined, the same again, or longer each time.
 * Undefined: it is the name of another call.
 */
function nextName(call: OpenCall, piece: string, names: DeclaredNames): string | undefined {
  const joined = call.name + piece;
  if (call.index !== undefined) return piece === call.name ? piece : undefined;
  if (names.has(joined)) return joined;
  if (piece === call.name) return piece;
  if (piece.startsWith(call.name) && names.hasBeginning(piece)) return piece;
  return names.hasBeginning(joined) ? joined : undefined;
}

// One piece of a tool call, whichever of its fields the upstream sent and how.

/** Longer ids than any vendor has are no ids. */
const idLengthMax = 1024;

interface CallPiece {
  index: number | undefined;
  id: string | undefined;
  name: string | undefined;
  /** Arguments, or the input of a custom call. */
  text: string;
  custom: boolean;
  /** The vendor's state of the call. */
  extra: JsonRecord | undefined;
  /** It has state alone. */
  isStateOnly: boolean;
  /** The place among the pieces of its delta; undefined: it is the only one. */
  position: number | undefined;
}

function readPiece(piece: JsonRecord, position: number | undefined): CallPiece {
  const called = asRecord(piece['function']);
  const custom = asRecord(piece['custom']);
  // A `custom` without content stands beside the function at some upstreams and means nothing.
  const isCustom =
    nonEmpty(called['name']) === undefined &&
    (nonEmpty(custom['name']) !== undefined ||
      nonEmpty(custom['input']) !== undefined ||
      piece['type'] === 'custom');
  const id = nonEmpty(piece['id']);
  const name = nonEmpty((isCustom ? custom : called)['name']);
  const text = argumentsText(isCustom ? custom['input'] : called['arguments']);
  const extra = isRecord(piece['extra_content']) ? piece['extra_content'] : undefined;
  return {
    index: indexOf(piece['index']),
    id: id !== undefined && id.length <= idLengthMax ? id : undefined,
    name,
    text,
    custom: isCustom,
    extra,
    isStateOnly: extra !== undefined && name === undefined && text === '',
    position,
  };
}

/** Some upstreams write the index as a string. */
function indexOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value;
  return typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : undefined;
}

function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

const nonEmpty = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

// The names of the tools that an upstream was sent, to tell a whole name from a piece of one.

export class DeclaredNames {
  readonly lengthMax: number;
  readonly #names: ReadonlySet<string>;
  /** Names that another one begins with. */
  readonly #ambiguous: ReadonlySet<string>;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
    const sorted = [...this.#names].toSorted();
    this.#ambiguous = new Set(sorted.filter((name, i) => sorted[i + 1]?.startsWith(name)));
    // A row may set tools of its own.
    this.lengthMax = Math.max(calledNameMax, ...sorted.map(({ length }) => length));
  }

  /** `body`: as it was sent. */
  static of(body: JsonRecord): DeclaredNames {
    const entries = [...listOf(body['tools']), ...listOf(body['functions'])].map(asRecord);
    const names = entries.map((entry) => asRecord(entry['function'] ?? entry['custom'] ?? entry)['name']);
    return new DeclaredNames(names.filter((name) => typeof name === 'string'));
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Whether a name has certainly no more pieces. Without any declared tool every name is taken as whole. */
  isWhole(name: string): boolean {
    return this.#names.size === 0 || (this.#names.has(name) && !this.#ambiguous.has(name));
  }

  /** Whether a tool's name begins so. */
  hasBeginning(text: string): boolean {
    return [...this.#names].some((name) => name.startsWith(text));
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
