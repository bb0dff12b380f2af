/** Finds the end of a JSON object or array that comes in pieces. Each character is read once. */
export class JsonEnd {
  /** The object has ended. */
  reached = false;
  #depth = 0;
  #inString = false;
  #escaped = false;

  push(piece: string): void {
    for (let at = 0; at < piece.length && !this.reached; at += 1) this.#next(piece.charAt(at));
  }

  #next(character: string): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (character === '\\') this.#escaped = true;
      else if (character === '"') this.#inString = false;
    } else if (character === '"') this.#inString = true;
    else if (character === '{' || character === '[') this.#depth += 1;
    else if (character === '}' || character === ']') {
      this.#depth -= 1;
      this.reached = this.#depth <= 0;
    }
  }
}
