/** Finds the end of a JSON value that comes in pieces. Each character is read once, so the work is linear. */
export class JsonScan {
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
export function isWholeObject(text: string): boolean {
  if (!text.trimStart().startsWith('{')) return false;
  const scan = new JsonScan();
  const end = scan.push(text);
  return scan.complete && text.slice(end).trim() === '';
}
