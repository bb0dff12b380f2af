/**
 * Splits reasoning between `<think>` and `</think>` off the content. The tags count only at the beginning: later ones
 * are text, such as of an answer about them. Nothing is lost but the tags and white space before them.
 */
const open = '<think>';
const close = '</think>';
/** More white space than any model writes before its first word. */
const heldMax = 64;

export interface SplitText {
  content: string;
  reasoning: string;
}

export class ThinkTags {
  #place: 'start' | 'inside' | 'after' = 'start';
  /** The beginning that may become a tag. */
  #held = '';

  push(text: string): SplitText {
    const whole = this.#held + text;
    this.#held = '';
    if (this.#place === 'start') return this.#start(whole);
    return this.#place === 'inside' ? this.#inside(whole) : { content: whole, reasoning: '' };
  }

  /** What is still held when the answer ends. */
  end(): SplitText {
    const held = this.#held;
    this.#held = '';
    return this.#place === 'inside' ? { content: '', reasoning: held } : { content: held, reasoning: '' };
  }

  #start(text: string): SplitText {
    const begun = text.trimStart();
    if (begun.startsWith(open)) {
      this.#place = 'inside';
      return this.#inside(begun.slice(open.length));
    }
    if (text.length <= heldMax && (open.startsWith(begun) || close.startsWith(begun)) && begun !== close) {
      this.#held = text;
      return { content: '', reasoning: '' };
    }
    this.#place = 'after';
    // Some upstreams send the reasoning in its own field and leave the closing tag in the content.
    return { content: begun.startsWith(close) ? begun.slice(close.length) : text, reasoning: '' };
  }

  #inside(text: string): SplitText {
    const end = text.indexOf(close);
    if (end >= 0) {
      this.#place = 'after';
      return { content: text.slice(end + close.length), reasoning: text.slice(0, end) };
    }
    const cut = text.length - heldLength(text);
    this.#held = text.slice(cut);
    return { content: '', reasoning: text.slice(0, cut) };
  }
}

/** The length of the end of a text that may be the beginning of the closing tag. */
function heldLength(text: string): number {
  for (let length = close.length - 1; length > 0; length -= 1)
    if (text.endsWith(close.slice(0, length))) return length;
  return 0;
}
