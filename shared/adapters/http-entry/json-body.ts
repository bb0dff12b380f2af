/** Parses a request body as JSON, within limits for size, depth and number of values. */
import { refuse } from '../../relay/http/refusal.ts';

export const bodyBytesMax = 4 * 1024 * 1024;
const levelsMax = 200;
/** Validation needs up to a kilobyte per value, so millions of values would exhaust the function's memory. */
const valuesMax = 100_000;

/** Throws a Refusal that explains what is wrong with the body. */
export function readJsonBody(body: string | Uint8Array): unknown {
  const text = readText(body);
  if (text.trim() === '') throw refuse('empty_body', 'The body is empty. Send a JSON object.');
  const broken = brokenBound(text, { levelsMax, valuesMax });
  if (broken === 'levels') throw refuse('json_too_deep', `The body nests deeper than ${levelsMax} levels.`);
  if (broken === 'values') throw refuse('json_too_wide', `The body holds more than ${valuesMax} values.`);
  try {
    return JSON.parse(text);
  } catch {
    throw refuse('invalid_json', 'The body is not valid JSON.');
  }
}

function readText(body: string | Uint8Array): string {
  refuseAbove(Buffer.byteLength(body));
  return withoutByteOrderMark(typeof body === 'string' ? body : decodeUtf8(body));
}

/** Throws a Refusal for a body of so many bytes if that is too many. */
export function refuseAbove(bytes: number): void {
  if (bytes > bodyBytesMax)
    throw refuse(
      'request_too_large',
      `The body has ${bytes} bytes; at most ${bodyBytesMax} (4 MB) are accepted.`,
    );
}

function decodeUtf8(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw refuse('invalid_encoding', 'The body is not valid UTF-8.');
  }
}

const withoutByteOrderMark = (text: string): string => (text.startsWith('\uFEFF') ? text.slice(1) : text);

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

interface JsonBounds {
  /** Maximum nesting of arrays and objects. */
  levelsMax: number;
  /** Maximum number of values, counted by brackets and commas. */
  valuesMax: number;
}

/**
 * The first limit that the text exceeds, if any. Checked before parsing, because depth and number of values
 * can exhaust memory within the size limit. Takes linear time; the text need not be valid JSON.
 */
function brokenBound(text: string, { levelsMax, valuesMax }: JsonBounds): 'levels' | 'values' | undefined {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === quote) {
      at = endOfString(text, at);
    } else if (character === 0x5b || character === 0x7b) {
      depth += 1;
      values += 1;
      if (depth > levelsMax) return 'levels';
    } else if (character === 0x5d || character === 0x7d) {
      depth -= 1;
    } else if (character === comma) {
      values += 1;
    }
    if (values > valuesMax) return 'values';
  }
  return undefined;
}

/**
 * The index of the quote that closes the string opened at `start`; the text's length when it is not closed.
 */
function endOfString(text: string, start: number): number {
  // indexOf is much faster than a loop over an inline image of several megabytes.
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}
