/** The values of a PDF's objects, and how they are read from its text. */

interface Ref {
  ref: number;
}
export type Dict = Map<string, Value>;
/** A name begins with its slash. Texts, truth values and null are null. */
export type Value = string | number | null | Ref | Dict | Value[];

/** What the size of a file cannot be told from. */
export class Unreadable extends Error {}

export const isRef = (value: Value | undefined): value is Ref =>
  typeof value === 'object' && value !== null && 'ref' in value;

/** Behind the parenthesis that closes it. */
export function endOfText(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 92) at += 1;
    else if (code === 40) depth += 1;
    else if (code === 41 && (depth -= 1) === 0) return at + 1;
  }
  return text.length;
}

export const nameOf = (written: string): string =>
  !written.includes('#')
    ? written
    : written.replace(/#([0-9a-f]{2})/gi, (_, code: string) =>
        String.fromCharCode(Number.parseInt(code, 16)),
      );

const depthMax = 60;

const namePattern = /\/[^\s\0()<>[\]{}/%]*/y;
const refPattern = /\d{1,10}[\s\0]+\d{1,5}[\s\0]+R(?![A-Za-z0-9])/y;
const plainPattern = /[+-]*[\d.]+|<[0-9A-Fa-f\s\0]*>|true|false|null/y;
const blankPattern = /(?:[\s\0]+|%[^\r\n]*)*/y;

/** Reads one value at a place of a text. */
export class Parser {
  readonly #text: string;
  readonly #end: number;
  at: number;

  constructor(text: string, at: number, lengthMax: number) {
    this.#text = text;
    this.#end = at + lengthMax;
    this.at = at;
  }

  value(depth = 0): Value {
    if (depth > depthMax || this.at > this.#end) throw new Unreadable();
    const text = this.#text;
    switch (this.#next()) {
      case 40: // (
        this.at = endOfText(text, this.at + 1);
        return null;
      case 47: // /
        return nameOf(this.#take(namePattern) ?? '');
      case 60: // <
        return text.charCodeAt(this.at + 1) === 60 ? this.#dict(depth) : this.#plain();
      case 91: // [
        return this.#list(depth);
      default:
        return this.#plain();
    }
  }

  #list(depth: number): Value[] {
    const items: Value[] = [];
    this.at += 1;
    while (this.#next() !== 93) items.push(this.value(depth + 1));
    this.at += 1;
    return items;
  }

  #dict(depth: number): Dict {
    const dict: Dict = new Map();
    this.at += 2;
    while (this.#next() !== 62) {
      const key = this.value(depth + 1);
      // Readers differ in which of two values for a key counts.
      if (typeof key !== 'string' || dict.has(key)) throw new Unreadable();
      dict.set(key, this.value(depth + 1));
    }
    this.at += 2;
    return dict;
  }

  #plain(): Value {
    const ref = this.#take(refPattern);
    if (ref !== undefined) return { ref: Number.parseInt(ref, 10) };
    const found = this.#take(plainPattern);
    if (found === undefined) throw new Unreadable();
    return /^[-+.\d]/.test(found) ? Number(found) || 0 : null;
  }

  /** The code of the next character, behind blanks and comments. */
  #next(): number {
    const code = this.#text.charCodeAt(this.at);
    if (code > 37) return code;
    this.#take(blankPattern);
    return this.#text.charCodeAt(this.at);
  }

  #take(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text)?.[0];
    if (found !== undefined) this.at = pattern.lastIndex;
    return found;
  }
}
