/** Whether a piece continues a call, repeats it or starts another one. Upstreams do not say. */
import { canonicalJson } from '../../../../wire/canonical-json.ts';
import { isRecord, parseJson } from '../../../../wire/json-record.ts';
import type { CallPiece } from './call-piece.ts';
import type { DeclaredNames } from './declared-names.ts';
import { isWholeObject, JsonScan } from './json-scan.ts';
import type { OpenCall } from './open-call.ts';

/** Writing JSON is recursive and overflows at some thousand levels. */
const levelsMax = 200;

export interface SameCallFacts {
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
export function startsAnother(call: OpenCall, piece: CallPiece, { names, delta }: SameCallFacts): boolean {
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
export function isRepeat(call: OpenCall, piece: CallPiece): boolean {
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
export function unsentPart(call: OpenCall, { name, text }: CallPiece): string {
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
export function nextName(call: OpenCall, piece: string, names: DeclaredNames): string | undefined {
  const joined = call.name + piece;
  if (call.index !== undefined) return piece === call.name ? piece : undefined;
  if (names.has(joined)) return joined;
  if (piece === call.name) return piece;
  if (piece.startsWith(call.name) && names.hasBeginning(piece)) return piece;
  return names.hasBeginning(joined) ? joined : undefined;
}
