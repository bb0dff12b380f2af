const quote = 0x22;
const backslash = 0x5c;

/** Whether arrays and objects nest deeper than `levels` in a JSON text; linear, and the text may be anything. */
export function nestsDeeperThan(text: string, levels: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === quote) {
      at = endOfString(text, at);
    } else if (character === 0x5b || character === 0x7b) {
      depth += 1;
      if (depth > levels) return true;
    } else if (character === 0x5d || character === 0x7d) {
      depth -= 1;
    }
  }
  return false;
}

/** Where the string that opens at `start` closes; the text's end when it never does. */
function endOfString(text: string, start: number): number {
  // indexOf skips the megabytes of an inline image far faster than a loop.
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}
