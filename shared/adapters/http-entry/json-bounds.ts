/** Bounds of a JSON text, checked before it is parsed: depth and number of values cost memory long before size does. */
const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

export interface JsonBounds {
  /** How deep arrays and objects may nest. */
  levelsMax: number;
  /** How many values there may be, counted by brackets and commas. */
  valuesMax: number;
}

/** Which bound the text breaks first, if any. Takes linear time; the text need not be JSON. */
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

/** The index at which the string that opens at `start` closes; the text's length when it never does. */
function endOfString(text: string, start: number): number {
  // indexOf skips the megabytes of an inline image far faster than a loop.
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}
