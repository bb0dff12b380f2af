/**
 * Turns the arguments of every function call into one JSON object. Some vendors send null, an empty text, an object encoded twice,
 * or two objects under one index, which are two calls. Passes the pieces of an object on at once, unchanged.
 * Sources: NousResearch/hermes-agent 12230, open-webui/open-webui 22235, diegosouzapw/OmniRoute 14008.
 */
import { type ToolCallDelta, GrowingText } from '../wire/chat-response.ts';
import { isRecord, parseJson, unwrapArguments } from '../wire/json.ts';
import { JsonScan } from '../stream/json-scan.ts';

/** Passes an object on piece by piece. Holds anything else back until it is complete. */
export class ArgumentsText {
  /** Decided by the first character that is not white space. */
  #isObject: boolean | undefined;
  readonly #held = new GrowingText();

  /** Returns the text that can be sent now. */
  push(text: string): string {
    const piece = this.#isObject === undefined ? text.trimStart() : text;
    if (piece === '') return '';
    this.#isObject ??= piece.startsWith('{');
    if (this.#isObject) return piece;
    this.#held.add(piece);
    return '';
  }

  end(): string {
    return this.#isObject === false ? unwrapArguments(this.#held.text) : '';
  }
}

interface CallText {
  name: string;
  readonly held: ArgumentsText;
  readonly scan: JsonScan;
  /** A hash of the object. The object itself is not kept twice: the reader has it. */
  print: number;
  /** Text after the end of the object. */
  readonly surplus: GrowingText;
}

/** The function calls of one choice. */
export class CallArguments {
  readonly #calls = new Map<number, CallText>();
  #nextIndex = 0;
  readonly #noteText: (text: string) => void;

  /** @param noteText counts the surplus toward the memory limit; the reader counts the arguments */
  constructor(noteText: (text: string) => void) {
    this.#noteText = noteText;
  }

  push(pieces: readonly ToolCallDelta[]): ToolCallDelta[] {
    return pieces.flatMap((piece) => {
      this.#nextIndex = Math.max(this.#nextIndex, piece.index + 1);
      return piece.function ? this.#pushPiece(piece, piece.function) : [piece];
    });
  }

  /** Returns the arguments that were held back, and a new call for each further object. `assignId` creates its id. */
  end(assignId: () => string): ToolCallDelta[] {
    return [...this.#calls].flatMap(([index, call]) => {
      const text = call.held.end();
      const last: ToolCallDelta[] = text === '' ? [] : [{ index, function: { arguments: text } }];
      for (const given of findOtherObjects(call)) {
        const called = { name: call.name, arguments: given };
        last.push({ index: this.#nextIndex++, id: assignId(), type: 'function', function: called });
      }
      return last;
    });
  }

  #pushPiece(piece: ToolCallDelta, called: NonNullable<ToolCallDelta['function']>): ToolCallDelta[] {
    const call = this.#find(piece.index);
    call.name += called.name ?? '';
    const { arguments: given = '' } = called;
    const text = call.held.push(given);
    const end = call.scan.push(text);
    call.print = hashWords(text.slice(0, end), call.print);
    call.surplus.add(text.slice(end));
    this.#noteText(text.slice(end));
    const shown = { ...piece, function: { ...called, arguments: text.slice(0, end) } };
    const isHeld = given !== '' && end === 0 && called.name === undefined;
    if (!isHeld) return [shown];
    const { function: _held, ...beside } = shown;
    return Object.keys(beside).length > 1 ? [beside] : [];
  }

  #find(index: number): CallText {
    const known = this.#calls.get(index);
    if (known) return known;
    const call = {
      name: '',
      held: new ArgumentsText(),
      scan: new JsonScan(),
      print: 0,
      surplus: new GrowingText(),
    };
    this.#calls.set(index, call);
    return call;
  }
}

/** Lists the complete objects in the surplus. Skips repeats: some servers send the call's object again at the end. */
function* findOtherObjects({ print, surplus }: CallText): Generator<string> {
  const seen = new Set([print]);
  let left = surplus.text.trimStart();
  while (left.startsWith('{')) {
    const text = left.slice(0, new JsonScan().push(left));
    if (!isRecord(parseJson(text))) break;
    const hash = hashWords(text, 0);
    if (!seen.has(hash)) yield text;
    seen.add(hash);
    left = left.slice(text.length).trimStart();
  }
}

/** FNV-1a over the text without white space, continued from the hash `before`. */
function hashWords(text: string, before: number): number {
  let hash = before;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code > 32) hash = Math.imul(hash ^ (code + 1), 0x01000193);
  }
  return hash;
}
