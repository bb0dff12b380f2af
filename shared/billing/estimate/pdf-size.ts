/**
 * What of a PDF an upstream may count: its pages, and the characters that they show. Pages and text are compressed up to
 * a thousand times, and one piece of text may be shown many times, so the pages are walked as a reader walks them. What
 * cannot be followed to its end has no size here, since whatever hides there may fill a model's whole window.
 */
type Ref = { ref: number };
type Dict = Map<string, Value>;
/** A name begins with its slash. Texts, truth values and null are null. */
type Value = string | number | null | Ref | Dict | Value[];

/** What the size of a file cannot be told from. */
class Unreadable extends Error {}

const isRef = (value: Value | undefined): value is Ref =>
  typeof value === 'object' && value !== null && 'ref' in value;

/** Behind the parenthesis that closes it. */
function endOfText(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 92) at += 1;
    else if (code === 40) depth += 1;
    else if (code === 41 && (depth -= 1) === 0) return at + 1;
  }
  return text.length;
}

const nameOf = (written: string): string =>
  !written.includes('#')
    ? written
    : written.replace(/#([0-9a-f]{2})/gi, (_, code: string) =>
        String.fromCharCode(Number.parseInt(code, 16)),
      );

const depthMax = 60;
const blanks = /(?:[\s\0]+|%[^\r\n]*)*/y;
const token =
  /<<|>>|[[\](]|\/[^\s\0()<>[\]{}/%]*|\d{1,10}[\s\0]+\d{1,5}[\s\0]+R(?![A-Za-z0-9])|[+-]*[\d.]+|<[0-9A-Fa-f\s\0]*>|true|false|null/y;

/** The value at a place of a text, of which no more than `lengthMax` is read. `end`: behind it. */
function valueAt(text: string, from: number, lengthMax: number): { value: Value; end: number } {
  let at = from;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? '';
    at += found.length;
    return found;
  };
  const next = (): string => {
    // Most values have none before them.
    if (text.charCodeAt(at) <= 37) take(blanks);
    return take(token);
  };
  const itemsUpTo = (close: string, depth: number): Value[] => {
    const items: Value[] = [];
    for (let found = next(); found !== close; found = next()) items.push(valueOf(found, depth + 1));
    return items;
  };
  const valueOf = (found: string, depth: number): Value => {
    if (depth > depthMax || at > from + lengthMax) throw new Unreadable();
    if (found === '<<') return dictOf(itemsUpTo('>>', depth));
    if (found === '[') return itemsUpTo(']', depth);
    if (found === '(') {
      at = endOfText(text, at);
      return null;
    }
    if (found.startsWith('/')) return nameOf(found);
    if (found.endsWith('R')) return { ref: Number.parseInt(found, 10) };
    if (/^[-+.\d]/.test(found)) return Number(found) || 0;
    if (!/^[<tfn]/.test(found)) throw new Unreadable();
    return null;
  };
  const value = valueOf(next(), 0);
  return { value, end: at };
}

function dictOf(items: readonly Value[]): Dict {
  const dict: Dict = new Map();
  for (let at = 0; at < items.length; at += 2) {
    const [key, value] = [items[at], items[at + 1]];
    // Readers differ in which of two values for a key counts.
    if (typeof key !== 'string' || value === undefined || dict.has(key)) throw new Unreadable();
    dict.set(key, value);
  }
  return dict;
}

/** Inflates a zlib stream that begins with the bytes, to one character a byte; undefined: damaged, or longer than that. */
export type Inflate = (bytes: Uint8Array, lengthMax: number) => string | undefined;

export interface PdfSize {
  pages: number;
  /** Characters of the pages, each page with no fewer than `charactersLeast`. */
  characters: number;
}

/** The most pages that vendors read of a file. */
const pagesMax = 600;
/** Vendors name up to 3,000 tokens of text for a page. */
const charactersLeast = 3_000;
/** Some 100 ms, with reading it: twice that at worst, beside busy processes. The text of as many pages as fit into a window is less. */
export const inflatedMax = 4_194_304;
/** What each stream counts for at least: to begin one takes as long as inflating so much. */
const streamLeast = 4_096;
/** To find an object takes as long as inflating so much, and so does to look up a version of one. */
const perObject = 64;
const perLook = 4;
/** Of the objects in all, which are parsed whole. */
const parsedMax = 1_000_000;
/** No window has more tokens; sums stop here. */
const enough = 1e9;
/** Fonts may say that one code stands for a text. Ligatures do, for three letters. */
const lettersUsual = 3;

interface PdfObject {
  value: Value;
  /** Where the data of a stream begins. */
  dataAt?: number | undefined;
}

/** Any letter of a name may be written as its code. */
const encrypt = new RegExp(
  `/${Array.from('Encrypt', (letter) => `(?:${letter}|#${letter.charCodeAt(0).toString(16)})`).join('')}`,
  'i',
);

/** `inflatedMost`: how much may be inflated or done instead, the rest of `inflatedMax`. Undefined: it cannot be read to its end. */
export function measurePdf(
  file: string,
  inflate: Inflate,
  inflatedMost: number,
): { size: PdfSize | undefined; inflated: number } {
  const pdf = new Pdf(file, inflate, inflatedMost);
  try {
    return { size: pdf.size(), inflated: pdf.inflated };
  } catch (error) {
    // A RangeError: it is nested deeper than the stack is.
    if (!(error instanceof Unreadable || error instanceof RangeError)) throw error;
    // What an inflation cost that failed, nobody knows. The call is held for a whole window now, whatever else it has.
    return { size: undefined, inflated: inflatedMost };
  }
}

const bytesOf = (text: string): Uint8Array => {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
};

const sumOf = (numbers: number[]): number => numbers.reduce((sum, each) => sum + each, 0);

const largest = (sizes: PdfSize[]): PdfSize => ({
  pages: sizes.reduce((most, { pages }) => Math.max(most, pages), 0),
  characters: sizes.reduce((most, { characters }) => Math.max(most, characters), 0),
});

class Pdf {
  readonly #file: string;
  readonly #bytes: Uint8Array;
  readonly #inflate: Inflate;
  readonly #inflatedMost: number;
  inflated = 0;
  #parseLeft = parsedMax;
  /** Each with all of its versions: which of them counts is said in places that readers treat differently. */
  readonly #objects = new Map<number, PdfObject[]>();
  readonly #pages = new Map<number, PdfSize | undefined>();
  readonly #contents = new Map<PdfObject, Content>();
  readonly #shown = new Map<PdfObject, number>();
  /** What is being added up now, by its depth, and the least deep of them that was met again since. */
  readonly #open = new Map<PdfObject, number>();
  #metAgain = Number.POSITIVE_INFINITY;
  /** What may be drawn by name, on any page and in any form. */
  readonly #drawn: Drawn = new Map();
  /** The largest of what a character code stands for. */
  #letters = 1;

  constructor(file: string, inflate: Inflate, inflatedMost: number) {
    this.#file = file;
    this.#bytes = bytesOf(file);
    this.#inflate = inflate;
    this.#inflatedMost = inflatedMost;
  }

  size(): PdfSize {
    if (encrypt.test(this.#file)) throw new Unreadable();
    this.#readObjects();
    const roots: Value[] = [];
    for (const { value } of [...this.#objects.values()].flat()) this.#collect(value, roots);
    const { pages, characters } = largest(roots.map((root) => this.#sizeOf(root)));
    if (pages === 0) throw new Unreadable();
    return { pages, characters: Math.ceil(characters * Math.max(1, this.#letters / lettersUsual)) };
  }

  #readObjects(): void {
    const file = this.#file;
    for (const { index } of file.matchAll(/[\s\0\d]obj(?=[\s\0<[(/%\d-])/g)) {
      const head = /(\d{1,10})[\s\0]+\d{1,5}[\s\0]*$/.exec(file.slice(Math.max(0, index - 40), index + 1));
      if (!head) throw new Unreadable();
      const { value, end } = this.#parsed(file, index + 4);
      const data = /^[\s\0]*stream(\r\n|\n|\r)/.exec(file.slice(end, end + 40));
      this.#add(Number(head[1]), { value, dataAt: data ? end + data[0].length : undefined });
    }
    // Objects that are kept in streams: what readers tell them by is not the type alone.
    for (const found of [...this.#objects.values()].flat()) {
      const { value } = found;
      if (!(value instanceof Map) || !value.has('/First') || !value.has('/N')) continue;
      const first = this.#number(value.get('/First'));
      const text = this.#text(found);
      if (/[^\d\s\0]/.test(text.slice(0, first))) throw new Unreadable();
      const heads = text.slice(0, first).match(/\d+/g) ?? [];
      for (let at = 0; at + 1 < heads.length; at += 2)
        this.#add(Number(heads[at]), this.#parsed(text, first + Number(heads[at + 1])));
    }
  }

  #add(number: number, object: PdfObject): void {
    this.#count(perObject);
    const versions = this.#objects.get(number) ?? [];
    versions.push(object);
    this.#objects.set(number, versions);
  }

  #parsed(text: string, from: number): { value: Value; end: number } {
    const parsed = valueAt(text, from, this.#parseLeft);
    this.#parseLeft -= parsed.end - from;
    return parsed;
  }

  /** Finds the roots of pages, what may be drawn, and what fonts say of their codes. */
  #collect(value: Value, roots: Value[]): void {
    if (Array.isArray(value)) for (const item of value) this.#collect(item, roots);
    if (typeof value === 'string') this.#letters = Math.max(this.#letters, lettersOf(value));
    if (!(value instanceof Map)) return;
    for (const [name, item] of value) {
      if (name === '/Pages') roots.push(item);
      if (name === '/XObject') this.#collectDrawn(item, this.#drawn);
      // Marked content may name what it is to be read as, with any text, any number of times.
      if (name === '/Properties')
        for (const marks of this.#dicts(item))
          for (const mark of marks.values())
            if (this.#dicts(mark).some((dict) => dict.has('/ActualText'))) throw new Unreadable();
      if (name === '/ToUnicode' && isRef(item))
        for (const font of this.#versions(item))
          for (const [codes] of this.#text(font).matchAll(/<[0-9A-Fa-f\s]{5,}>/g))
            this.#letters = Math.max(this.#letters, (codes.length - 2) / 4);
      this.#collect(item, roots);
    }
  }

  #collectDrawn(value: Value | undefined, drawn: Drawn): void {
    for (const dict of this.#dicts(value))
      for (const [name, item] of dict)
        if (isRef(item))
          for (const form of this.#versions(item).filter(isForm))
            drawn.set(name, (drawn.get(name) ?? new Set()).add(form));
  }

  /** A dictionary, or all versions of one that is referred to. */
  #dicts(value: Value | undefined): Dict[] {
    const values = isRef(value) ? this.#versions(value).map((object) => object.value) : [value];
    return values.filter((version) => version instanceof Map);
  }

  #versions(value: Value | undefined): PdfObject[] {
    const found = isRef(value) ? this.#objects.get(value.ref) : undefined;
    if (!found) throw new Unreadable();
    this.#count(found.length * perLook);
    return found;
  }

  #number(value: Value | undefined): number {
    if (isRef(value)) return Math.max(...this.#versions(value).map((object) => this.#number(object.value)));
    if (typeof value !== 'number') throw new Unreadable();
    return value;
  }

  /** Of a page, or of all pages below a node. A page that is named twice counts twice. */
  #sizeOf(node: Value): PdfSize {
    if (!isRef(node)) throw new Unreadable();
    this.#count(perLook);
    const known = this.#pages.get(node.ref);
    if (known) return known;
    // A node that leads to itself.
    if (this.#pages.has(node.ref)) throw new Unreadable();
    this.#pages.set(node.ref, undefined);
    const size = largest(
      this.#versions(node).flatMap(({ value }) => (value instanceof Map ? [this.#sizeBelow(value)] : [])),
    );
    this.#pages.set(node.ref, size);
    return size;
  }

  #sizeBelow(node: Dict): PdfSize {
    if (!node.has('/Kids')) {
      const shown = this.#items(node.get('/Contents')).map((part) => this.#most(this.#versions(part)));
      return { pages: 1, characters: Math.min(Math.max(charactersLeast, sumOf(shown)), enough) };
    }
    const kids = this.#items(node.get('/Kids')).map((kid) => this.#sizeOf(kid));
    return {
      pages: Math.min(sumOf(kids.map(({ pages }) => pages)), pagesMax),
      characters: Math.min(sumOf(kids.map(({ characters }) => characters)), enough),
    };
  }

  /** A list, a reference to one, or one item alone. */
  #items(value: Value | undefined): Value[] {
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value;
    if (!isRef(value)) return [value];
    const versions = this.#versions(value).map((object) => object.value);
    const lists = versions.filter((version) => Array.isArray(version));
    if (lists.length === 0) return [value];
    if (lists.length < versions.length) throw new Unreadable();
    return lists.flat();
  }

  #most(objects: Iterable<PdfObject>): number {
    let most = 0;
    for (const object of objects) {
      this.#count(perLook);
      most = Math.max(most, this.#shownBy(object));
    }
    return most;
  }

  /**
   * The characters that a content shows, with those of what it draws. Readers leave out a form inside of itself. Of a form
   * inside of which another one was left out, the sum holds there alone.
   */
  #shownBy(object: PdfObject): number {
    const { value } = object;
    const known = this.#shown.get(object);
    if (known !== undefined) return known;
    const openDepth = this.#open.get(object);
    if (openDepth !== undefined) {
      this.#metAgain = Math.min(this.#metAgain, openDepth);
      return 0;
    }
    if (value === null) return 0;
    const depth = this.#open.size;
    this.#open.set(object, depth);
    const { characters, named, hidden, own } = this.#contentOf(object);
    let sum = characters;
    for (const [name, times] of named)
      sum += times * this.#most(own.get(name) ?? this.#drawn.get(name) ?? []);
    if (hidden > 0) for (const forms of this.#drawn.values()) sum += hidden * this.#most(forms);
    sum = Math.min(sum, enough);
    this.#open.delete(object);
    if (this.#metAgain >= depth) {
      this.#metAgain = Number.POSITIVE_INFINITY;
      this.#shown.set(object, sum);
    }
    return sum;
  }

  #contentOf(object: PdfObject): Content {
    const known = this.#contents.get(object);
    if (known) return known;
    const own: Drawn = new Map();
    if (object.value instanceof Map)
      for (const dict of this.#dicts(object.value.get('/Resources')))
        this.#collectDrawn(dict.get('/XObject'), own);
    const content = { ...shownIn(this.#text(object)), own };
    this.#contents.set(object, content);
    return content;
  }

  /** The data of a stream, decoded. */
  #text({ value, dataAt }: PdfObject): string {
    if (!(value instanceof Map) || dataAt === undefined) throw new Unreadable();
    if (value.has('/F') || predicts(value.get('/DecodeParms') ?? value.get('/DP') ?? null))
      throw new Unreadable();
    const filter = value.get('/Filter') ?? [];
    const filters = Array.isArray(filter) ? filter : [filter];
    let text: string | undefined;
    for (const name of filters) {
      if (name === '/FlateDecode' || name === '/Fl') {
        const bytes = text === undefined ? this.#bytes.subarray(dataAt) : bytesOf(text);
        text = this.#inflate(bytes, this.#inflatedMost - this.inflated);
      } else if (name === '/ASCII85Decode' || name === '/A85')
        text = fromAscii85(text ?? this.#file.slice(dataAt), this.#inflatedMost - this.inflated);
      else throw new Unreadable();
      if (text === undefined) throw new Unreadable();
      this.#count(Math.max(text.length, streamLeast));
    }
    if (text !== undefined) return text;
    const length = value.has('/Length') ? this.#number(value.get('/Length')) : 0;
    const end = this.#file.indexOf('endstream', dataAt);
    if (end < 0) throw new Unreadable();
    text = this.#file.slice(dataAt, Math.max(dataAt + length, end));
    this.#count(Math.max(text.length, streamLeast));
    return text;
  }

  #count(bytes: number): void {
    this.inflated += bytes;
    if (this.inflated > this.#inflatedMost) throw new Unreadable();
  }
}

/** Letters that the name of a glyph stands for: it may list glyphs, and codes of letters. */
const lettersOf = (name: string): number =>
  name.length < 9
    ? 1
    : name
        .split('_')
        .reduce((sum, part) => sum + (/^\/?uni/.test(part) ? Math.max(1, (part.length - 3) / 4) : 1), 0);

const isForm = ({ value }: PdfObject): boolean => value instanceof Map && value.get('/Subtype') !== '/Image';

const predicts = (parms: Value): boolean => {
  if (Array.isArray(parms)) return parms.some(predicts);
  if (isRef(parms)) return true;
  return parms instanceof Map && (parms.get('/Predictor') ?? 1) !== 1;
};

/** Five signs for four bytes; a whole zero group is one sign. Undefined: no such text, or longer than that. */
function fromAscii85(text: string, lengthMax: number): string | undefined {
  const end = text.indexOf('~>');
  const signs = text
    .slice(0, Math.max(0, end))
    .replace(/[\0-\x20]+/g, '')
    .replaceAll('z', '!!!!!');
  const length = Math.floor((signs.length * 4) / 5);
  if (end < 0 || length > lengthMax + 4 || /[^!-u]/.test(signs)) return undefined;
  const groups: string[] = [];
  for (let at = 0; at < signs.length; at += 5) {
    let group = 0;
    // What the last group is short of counts as the highest sign.
    for (let sign = at; sign < at + 5; sign += 1) group = group * 85 + (signs.charCodeAt(sign) || 117) - 33;
    groups.push(String.fromCharCode(...[24, 16, 8, 0].map((shift) => (group >>> shift) & 255)));
  }
  return groups.join('').slice(0, length);
}

/**
 * A content stream: the bytes of its texts, and how often it draws what. `hidden`: draws in what only looks like a text,
 * such as the data of a picture.
 */
interface Shown {
  characters: number;
  named: Map<string, number>;
  hidden: number;
}
type Drawn = Map<string, Set<PdfObject>>;
/** `own`: what the names in it mean, where it says so itself. */
type Content = Shown & { own: Drawn };

function shownIn(text: string): Shown {
  let characters = 0;
  let name = '';
  let hidden = text.match(/(?<![A-Za-z])Do(?![A-Za-z0-9])/g)?.length ?? 0;
  const named = new Map<string, number>();
  const token = /\(|<[0-9A-Fa-f\s]+>|\/[^\s\0()<>[\]{}/%]*|(?<![A-Za-z])Do(?![A-Za-z0-9])/g;
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [found] = match;
    if (found === '(') {
      const end = endOfText(text, token.lastIndex);
      characters += end - token.lastIndex - 1;
      token.lastIndex = end;
    } else if (found.startsWith('<')) characters += (found.length - 2) / 2;
    else if (found === 'Do') {
      named.set(name, (named.get(name) ?? 0) + 1);
      hidden -= 1;
    } else name = nameOf(found);
  }
  return { characters, named, hidden };
}
