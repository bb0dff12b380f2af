import { commonCharacters, ratesFromAbove, ratesFromBelow, ratesUnbiased } from './token-rates.ts';

/**
 * How often each class of character follows each other class in a text. Three estimates of its tokens come from these
 * counts: from above (for a reservation), from below (is a reported count too small?), and unbiased (charged when an
 * upstream reports no count). Uses no tokenizer: loading one takes longer than most upstreams need for their first
 * token, and every vendor has another one.
 */
export class TextShape {
  /** Pairs of classes, 16 to a row. */
  readonly #pairs = new Float64Array(256);
  #before = classOfStart;
  #last = -1;

  /** Adds a text, or the next piece of a stream: pieces add up to what the whole text has. */
  add(text: string): this {
    const pairs = this.#pairs;
    let before = this.#before;
    let last = this.#last;
    for (let at = 0; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      const own = classOf(code);
      const pair = before * 16 + (code === last ? classOfRepeats : own);
      pairs[pair] = pairs[pair]! + 1;
      before = own;
      last = code;
    }
    this.#before = before;
    this.#last = last;
    return this;
  }

  /** The next text begins anew. */
  cut(): this {
    this.#before = classOfStart;
    this.#last = -1;
    return this;
  }

  /** Real tokenizers exceed it by 5 % at most, whatever the text. About twice the count of ordinary text. */
  get tokensFromAbove(): number {
    return this.#sum(ratesFromAbove);
  }

  /** Real tokenizers count hardly less on any kind of text. */
  get tokensFromBelow(): number {
    return this.#sum(ratesFromBelow);
  }

  /** As fractions of a token, so that estimates of parts add up. */
  get tokens(): number {
    return this.#sum(ratesUnbiased);
  }

  #sum(rates: Float64Array): number {
    let sum = 0;
    for (let pair = 16; pair < 256; pair += 1) sum += this.#pairs[pair]! * rates[pair]!;
    return sum;
  }
}

const classOfRepeats = 0;
const classOfStart = 2;
const common = 13;
const rest = 15;

/** The classes of ASCII: 1 space, 2 line, 3 digit, 4 sign, 5 to 8 small letters by how freely they combine, 9 capital. */
const asciiClasses = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code);
  const classes = [
    / /,
    /[\t\n\r]/,
    /\d/,
    /[!-/:-~]/,
    /[aeiouy]/,
    /[tnsrhldcm]/,
    /[bfgkpvw]/,
    /[jqxz]/,
    /[A-Z]/,
  ];
  const found = classes.findLastIndex((pattern) => pattern.test(character));
  return found < 0 ? rest : found + 1;
});

/** The classes of the others: 10 Latin letters, 11 other alphabets, 12 syllables and symbols, 14 rare Chinese and Korean. */
const wideClasses = (() => {
  const ends: [number, number][] = [
    [0xa0, rest],
    [0xc0, 11],
    [0x250, 10],
    [0x800, 11],
    [0x2e80, 12],
    [0x3000, 14],
    [0x3100, common],
    [0xd800, 14],
    [0xff00, rest],
    [0xfff0, common],
    [0x10000, rest],
  ];
  const classes = new Uint8Array(0x10000);
  let from = 0;
  for (const [end, own] of ends) {
    classes.fill(own, from, end);
    from = end;
  }
  classes.set(asciiClasses);
  for (const character of commonCharacters) classes[character.charCodeAt(0)] = common;
  return classes;
})();

const classOf = (code: number): number => wideClasses[code]!;
