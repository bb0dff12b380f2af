/** Finds the end of a JSON object or array in a growing text. Each character is read once. */
export class JsonEnd {
  #read = 0;
  #depth = 0;
  #inString = false;
  #reached = false;

  /** Whether the object has ended. `text`: the text of the last call, or a longer one that begins with it. */
  reached(text: string): boolean {
    while (!this.#reached && this.#read < text.length) {
      this.#next(text.charAt(this.#read));
      this.#read += 1;
    }
    return this.#reached;
  }

  #next(character: string): void {
    if (this.#inString) {
      if (character === '\\') this.#read += 1;
      else if (character === '"') this.#inString = false;
    } else if (character === '"') this.#inString = true;
    else if (character === '{' || character === '[') this.#depth += 1;
    else if (character === '}' || character === ']') {
      this.#depth -= 1;
      this.#reached = this.#depth <= 0;
    }
  }
}
