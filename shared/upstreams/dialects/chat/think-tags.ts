/**
 * Splits reasoning between `<think>` and `</think>` from the content. Tags count only at the beginning: later ones are
 * text, such as in an answer about them. Drops nothing but the tags and white space before them.
 */
const open = '<think>';
const close = '</think>';
/** More white space than any model writes before its first word. */
const bufferMax = 64;

export interface SplitText {
  content: string;
  reasoning: string;
}

export class ThinkTags {
  #position: 'start' | 'inside' | 'after' = 'start';
  /** Text that may be the start of a tag. */
  #buffer = '';

  push(text: string): SplitText {
    const buffered = this.#buffer + text;
    this.#buffer = '';
    if (this.#position === 'start') return this.#readStart(buffered);
    return this.#position === 'inside' ? this.#readInside(buffered) : { content: buffered, reasoning: '' };
  }

  end(): SplitText {
    const buffered = this.#buffer;
    this.#buffer = '';
    return this.#position === 'inside'
      ? { content: '', reasoning: buffered }
      : { content: buffered, reasoning: '' };
  }

  #readStart(text: string): SplitText {
    const trimmed = text.trimStart();
    if (trimmed.startsWith(open)) {
      this.#position = 'inside';
      return this.#readInside(trimmed.slice(open.length));
    }
    if (
      text.length <= bufferMax &&
      (open.startsWith(trimmed) || close.startsWith(trimmed)) &&
      trimmed !== close
    ) {
      this.#buffer = text;
      return { content: '', reasoning: '' };
    }
    this.#position = 'after';
    // Some upstreams send the reasoning in its own field and leave the closing tag in the content.
    return { content: trimmed.startsWith(close) ? trimmed.slice(close.length) : text, reasoning: '' };
  }

  #readInside(text: string): SplitText {
    const end = text.indexOf(close);
    if (end >= 0) {
      this.#position = 'after';
      return { content: text.slice(end + close.length), reasoning: text.slice(0, end) };
    }
    const cut = text.length - measureTagStart(text);
    this.#buffer = text.slice(cut);
    return { content: '', reasoning: text.slice(0, cut) };
  }
}

/** Counts the characters at the end of a text that may be the start of the closing tag. */
function measureTagStart(text: string): number {
  for (let length = close.length - 1; length > 0; length -= 1)
    if (text.endsWith(close.slice(0, length))) return length;
  return 0;
}
