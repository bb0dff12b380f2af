/** A JSON object. JSON from outside passes `isRecord` or `asRecord` before its fields are read. */
export type JsonRecord = Record<string, unknown>;

export const isRecord = (value: unknown): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const asRecord = (value: unknown): JsonRecord => (isRecord(value) ? value : {});

/** Only the fields that have a value: a null of the OpenAI API means that the field is absent. */
export const withoutNulls = (source: object): JsonRecord =>
  Object.fromEntries(Object.entries(source).filter(([, value]) => value !== null && value !== undefined));

/** The value at a path inside a value; undefined if there is none. */
export function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  const [step, ...rest] = path;
  if (step === undefined) return value;
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
  return valueAt((value as Record<PropertyKey, unknown>)[step], rest);
}

/** Returns undefined if the text is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

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
export function brokenBound(
  text: string,
  { levelsMax, valuesMax }: JsonBounds,
): 'levels' | 'values' | undefined {
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
