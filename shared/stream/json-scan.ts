/** Finds the end of a JSON value that comes in pieces. Each character is read once, so the work is linear. */
export class JsonScan {
  /** The value is closed. Only objects, arrays and strings have an end of their own. */
  complete = false;
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
    let at = 0;
    for (; at < text.length && !this.complete; at += 1) this.#read(text.charAt(at));
    return at;
  }

  #read(character: string): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (character === '\\') this.#escaped = true;
      else if (character === '"') this.#close('"');
    } else if (character === '}' || character === ']') {
      this.#depth -= 1;
      this.#close(character);
    } else {
      if (character === '"') this.#inString = this.#depth > 0 || this.#last === '';
      else if (character === '{' || character === '[') this.#depth += 1;
      this.deepest = Math.max(this.deepest, this.#depth);
      if (character > ' ') this.#last = character;
    }
  }

  #close(character: string): void {
    this.#inString = false;
    this.#last = character;
    // Text that closes more than it opened is no JSON and has no end.
    this.complete = this.#depth === 0;
  }
}
