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
    if (this.#place === 'after') return { content: text, reasoning: '' };
    const whole = this.#held + text;
    this.#held = '';
    return this.#place === 'inside' ? this.#inside(whole) : this.#start(whole);
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
    // Some upstreams send the reasoning in its own field and leave the closing tag in the content.
    if (begun.startsWith(close)) return this.#after(begun.slice(close.length));
    if (text.length > heldMax || !(open.startsWith(begun) || close.startsWith(begun)))
      return this.#after(text);
    this.#held = text;
    return { content: '', reasoning: '' };
  }

  #inside(text: string): SplitText {
    const end = text.indexOf(close);
    if (end >= 0) {
      const { content } = this.#after(text.slice(end + close.length));
      return { content, reasoning: text.slice(0, end) };
    }
    const cut = text.length - heldLength(text);
    this.#held = text.slice(cut);
    return { content: '', reasoning: text.slice(0, cut) };
  }

  #after(content: string): SplitText {
    this.#place = 'after';
    return { content, reasoning: '' };
  }
}

/** The length of the end of a text that may be the beginning of the closing tag. */
function heldLength(text: string): number {
  for (let length = close.length - 1; length > 0; length -= 1)
    if (text.endsWith(close.slice(0, length))) return length;
  return 0;
}

type Source = 'field' | 'tags';

/**
 * Reasoning that an upstream sends in its own field and again between tags is shown once. Two texts that differ are
 * both shown whole.
 */
export class MirroredReasoning {
  /** The source that came first. Undefined: nothing came, or the two differ. */
  #leader: Source | undefined;
  #differ = false;
  /** What the leader sent, and how much of it the other sent, too: texts, and characters of the next one. */
  #ahead: string[] = [];
  #next = 0;
  #offset = 0;
  /** What the other sent and the leader had. */
  #matched: string[] = [];

  /** The part of the text that is new. */
  push(source: Source, text: string): string {
    if (this.#differ || text === '') return text;
    this.#leader ??= source;
    if (this.#leader === source) {
      this.#ahead.push(text);
      return text;
    }
    let rest = this.#matched.length === 0 ? this.#withoutLeadingSpace(text) : text;
    while (rest !== '') {
      const head = this.#ahead[this.#next];
      if (head === undefined) return this.#overtake(source, rest);
      const length = Math.min(rest.length, head.length - this.#offset);
      const part = rest.slice(0, length);
      if (!head.startsWith(part, this.#offset)) return this.#separate(rest);
      this.#matched.push(part);
      this.#advance(length, head.length);
      rest = rest.slice(length);
    }
    return '';
  }

  #advance(length: number, headLength: number): void {
    this.#offset += length;
    if (this.#offset < headLength) return;
    this.#next += 1;
    this.#offset = 0;
  }

  /** The line feed after the opening tag is no part of the field. */
  #withoutLeadingSpace(text: string): string {
    return /^\s/.test(this.#ahead[0] ?? '') ? text : text.trimStart();
  }

  #overtake(source: Source, rest: string): string {
    this.#leader = source;
    this.#ahead = [rest];
    this.#next = 0;
    this.#offset = 0;
    this.#matched = [''];
    return rest;
  }

  #separate(rest: string): string {
    const shown = this.#matched.join('') + rest;
    this.#differ = true;
    this.#ahead = [];
    this.#matched = [];
    return shown;
  }
}
