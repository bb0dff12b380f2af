/**
 * Counts the pages of a PDF and the characters that they show, which upstreams charge. Pages and text are compressed up to a thousand
 * times, and one text may be shown many times, so this walks the pages as a reader does. A file that it cannot follow to its end has
 * no size, because the unread part may fill a model's window.
 */
type Ref = { ref: number };
type Dict = Map<string, Value>;
/** A name begins with its slash. Texts and booleans become null. */
type Value = string | number | null | Ref | Dict | Value[];

/** The size of the file cannot be determined. */
class Unreadable extends Error {}

const isRef = (value: Value | undefined): value is Ref =>
  typeof value === 'object' && value !== null && 'ref' in value;

function findTextEnd(text: string, from: number): number {
  let depth = 1;
  for (let at = from; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 92) at += 1;
    else if (code === 40) depth += 1;
    else if (code === 41 && (depth -= 1) === 0) return at + 1;
  }
  return text.length;
}

const decodeName = (written: string): string =>
  !written.includes('#')
    ? written
    : written.replace(/#([0-9a-f]{2})/gi, (_, code: string) =>
        String.fromCharCode(Number.parseInt(code, 16)),
      );

const depthMax = 60;
const blanks = /(?:[\s\0]+|%[^\r\n]*)*/y;
const token =
  /<<|>>|[[\](]|\/[^\s\0()<>[\]{}/%]*|\d{1,10}[\s\0]+\d{1,5}[\s\0]+R(?![A-Za-z0-9])|[+-]*[\d.]+|<[0-9A-Fa-f\s\0]*>|true|false|null/y;

/** Reads at most `lengthMax` characters. `end` is the position after the value. */
function parseValue(text: string, from: number, lengthMax: number): { value: Value; end: number } {
  let at = from;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? '';
    at += found.length;
    return found;
  };
  const takeToken = (): string => {
    // Most values follow no blanks.
    if (text.charCodeAt(at) <= 37) take(blanks);
    return take(token);
  };
  const parseItems = (close: string, depth: number): Value[] => {
    const items: Value[] = [];
    for (let found = takeToken(); found !== close; found = takeToken())
      items.push(parseToken(found, depth + 1));
    return items;
  };
  const parseToken = (found: string, depth: number): Value => {
    if (depth > depthMax || at > from + lengthMax) throw new Unreadable();
    if (found === '<<') return buildDict(parseItems('>>', depth));
    if (found === '[') return parseItems(']', depth);
    if (found === '(') {
      at = findTextEnd(text, at);
      return null;
    }
    if (found.startsWith('/')) return decodeName(found);
    if (found.endsWith('R')) return { ref: Number.parseInt(found, 10) };
    if (/^[-+.\d]/.test(found)) return Number(found) || 0;
    if (!/^[<tfn]/.test(found)) throw new Unreadable();
    return null;
  };
  const value = parseToken(takeToken(), 0);
  return { value, end: at };
}

function buildDict(items: readonly Value[]): Dict {
  const dict: Dict = new Map();
  for (let at = 0; at < items.length; at += 2) {
    const [key, value] = [items[at], items[at + 1]];
    // Readers differ in which of two values of a key they take.
    if (typeof key !== 'string' || value === undefined || dict.has(key)) throw new Unreadable();
    dict.set(key, value);
  }
  return dict;
}

/** Inflates the zlib stream at the start of the bytes, to one character a byte. Returns undefined if it is damaged or too long. */
export type Inflate = (bytes: Uint8Array, lengthMax: number) => string | undefined;

export interface PdfSize {
  pages: number;
  /** Each page counts at least `charactersLeast`. */
  characters: number;
}

/** Vendors read no more pages of a file. */
const pagesMax = 600;
/** Vendors document up to 3,000 tokens of text for a page. */
const charactersLeast = 3_000;
/** Takes some 100 ms, twice that beside busy processes. The pages that fit into a window have less text. */
export const inflatedMax = 4_194_304;
/** Starting a stream takes as long as inflating so much. */
const streamLeast = 4_096;
/** Finding an object, or looking up a version of one, takes as long as inflating so much. */
const perObject = 64;
const perLook = 4;
/** Characters of all objects, which are parsed completely. */
const parsedMax = 1_000_000;
/** Sums stop here: no window has more tokens. */
const enough = 1e9;
/** Fonts may map one code to several letters: ligatures to three. */
const lettersUsual = 3;

interface PdfObject {
  value: Value;
  dataAt?: number | undefined;
}

/** A name may have any letter as its code. */
const encrypt = new RegExp(
  `/${Array.from('Encrypt', (letter) => `(?:${letter}|#${letter.charCodeAt(0).toString(16)})`).join('')}`,
  'i',
);

/** @param inflatedMost how much may still be inflated, or other work that takes as long */
export function measurePdf(
  file: string,
  inflate: Inflate,
  inflatedMost: number,
): { size: PdfSize | undefined; inflated: number } {
  const pdf = new Pdf(file, inflate, inflatedMost);
  try {
    return { size: pdf.measure(), inflated: pdf.inflated };
  } catch (error) {
    // A RangeError means that it is nested too deeply for the stack.
    if (!(error instanceof Unreadable || error instanceof RangeError)) throw error;
    // The cost of a failed inflation is unknown. The call now reserves a whole window, whatever else it has.
    return { size: undefined, inflated: inflatedMost };
  }
}

const toBytes = (text: string): Uint8Array => {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
};

const sum = (numbers: number[]): number => numbers.reduce((sum, each) => sum + each, 0);

const findLargest = (sizes: PdfSize[]): PdfSize => ({
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
  /** All versions of each object, because readers differ in which of them they take. */
  readonly #objects = new Map<number, PdfObject[]>();
  readonly #pages = new Map<number, PdfSize | undefined>();
  readonly #contents = new Map<PdfObject, Content>();
  readonly #shown = new Map<PdfObject, number>();
  /** Contents that are being added up, by depth, and the lowest depth that was met again. */
  readonly #open = new Map<PdfObject, number>();
  #metAgain = Number.POSITIVE_INFINITY;
  /** Forms that any page or form may draw by name. */
  readonly #drawn: Drawn = new Map();
  /** The most letters that a character code stands for. */
  #letters = 1;

  constructor(file: string, inflate: Inflate, inflatedMost: number) {
    this.#file = file;
    this.#bytes = toBytes(file);
    this.#inflate = inflate;
    this.#inflatedMost = inflatedMost;
  }

  measure(): PdfSize {
    if (encrypt.test(this.#file)) throw new Unreadable();
    this.#readObjects();
    const roots: Value[] = [];
    for (const { value } of [...this.#objects.values()].flat()) this.#collect(value, roots);
    const { pages, characters } = findLargest(roots.map((root) => this.#measureNode(root)));
    if (pages === 0) throw new Unreadable();
    return { pages, characters: Math.ceil(characters * Math.max(1, this.#letters / lettersUsual)) };
  }

  #readObjects(): void {
    const file = this.#file;
    for (const { index } of file.matchAll(/[\s\0\d]obj(?=[\s\0<[(/%\d-])/g)) {
      const head = /(\d{1,10})[\s\0]+\d{1,5}[\s\0]*$/.exec(file.slice(Math.max(0, index - 40), index + 1));
      if (!head) throw new Unreadable();
      const { value, end } = this.#parse(file, index + 4);
      const data = /^[\s\0]*stream(\r\n|\n|\r)/.exec(file.slice(end, end + 40));
      this.#add(Number(head[1]), { value, dataAt: data ? end + data[0].length : undefined });
    }
    // Streams may contain objects. Readers do not go by the type alone.
    for (const found of [...this.#objects.values()].flat()) {
      const { value } = found;
      if (!(value instanceof Map) || !value.has('/First') || !value.has('/N')) continue;
      const first = this.#resolveNumber(value.get('/First'));
      const text = this.#decodeStream(found);
      if (/[^\d\s\0]/.test(text.slice(0, first))) throw new Unreadable();
      const heads = text.slice(0, first).match(/\d+/g) ?? [];
      for (let at = 0; at + 1 < heads.length; at += 2)
        this.#add(Number(heads[at]), this.#parse(text, first + Number(heads[at + 1])));
    }
  }

  #add(number: number, object: PdfObject): void {
    this.#count(perObject);
    const versions = this.#objects.get(number) ?? [];
    versions.push(object);
    this.#objects.set(number, versions);
  }

  #parse(text: string, from: number): { value: Value; end: number } {
    const parsed = parseValue(text, from, this.#parseLeft);
    this.#parseLeft -= parsed.end - from;
    return parsed;
  }

  /** Finds the roots of pages, forms, and the letters of fonts' codes. */
  #collect(value: Value, roots: Value[]): void {
    if (Array.isArray(value)) for (const item of value) this.#collect(item, roots);
    if (typeof value === 'string') this.#letters = Math.max(this.#letters, countLetters(value));
    if (!(value instanceof Map)) return;
    for (const [name, item] of value) {
      if (name === '/Pages') roots.push(item);
      if (name === '/XObject') this.#collectDrawn(item, this.#drawn);
      // Marked content may have any replacement text, any number of times.
      if (name === '/Properties')
        for (const marks of this.#resolveDicts(item))
          for (const mark of marks.values())
            if (this.#resolveDicts(mark).some((dict) => dict.has('/ActualText'))) throw new Unreadable();
      if (name === '/ToUnicode' && isRef(item))
        for (const font of this.#findVersions(item))
          for (const [codes] of this.#decodeStream(font).matchAll(/<[0-9A-Fa-f\s]{5,}>/g))
            this.#letters = Math.max(this.#letters, (codes.length - 2) / 4);
      this.#collect(item, roots);
    }
  }

  #collectDrawn(value: Value | undefined, drawn: Drawn): void {
    for (const dict of this.#resolveDicts(value))
      for (const [name, item] of dict)
        if (isRef(item))
          for (const form of this.#findVersions(item).filter(isForm))
            drawn.set(name, (drawn.get(name) ?? new Set()).add(form));
  }

  #resolveDicts(value: Value | undefined): Dict[] {
    const values = isRef(value) ? this.#findVersions(value).map((object) => object.value) : [value];
    return values.filter((version) => version instanceof Map);
  }

  #findVersions(value: Value | undefined): PdfObject[] {
    const found = isRef(value) ? this.#objects.get(value.ref) : undefined;
    if (!found) throw new Unreadable();
    this.#count(found.length * perLook);
    return found;
  }

  #resolveNumber(value: Value | undefined): number {
    if (isRef(value))
      return Math.max(...this.#findVersions(value).map((object) => this.#resolveNumber(object.value)));
    if (typeof value !== 'number') throw new Unreadable();
    return value;
  }

  /** Measures a page, or all pages below a node. A page that is named twice counts twice. */
  #measureNode(node: Value): PdfSize {
    if (!isRef(node)) throw new Unreadable();
    this.#count(perLook);
    const known = this.#pages.get(node.ref);
    if (known) return known;
    // The node leads to itself.
    if (this.#pages.has(node.ref)) throw new Unreadable();
    this.#pages.set(node.ref, undefined);
    const size = findLargest(
      this.#findVersions(node).flatMap(({ value }) =>
        value instanceof Map ? [this.#measureVersion(value)] : [],
      ),
    );
    this.#pages.set(node.ref, size);
    return size;
  }

  #measureVersion(node: Dict): PdfSize {
    if (!node.has('/Kids')) {
      const shown = this.#listItems(node.get('/Contents')).map((part) =>
        this.#findMost(this.#findVersions(part)),
      );
      return { pages: 1, characters: Math.min(Math.max(charactersLeast, sum(shown)), enough) };
    }
    const kids = this.#listItems(node.get('/Kids')).map((kid) => this.#measureNode(kid));
    return {
      pages: Math.min(sum(kids.map(({ pages }) => pages)), pagesMax),
      characters: Math.min(sum(kids.map(({ characters }) => characters)), enough),
    };
  }

  #listItems(value: Value | undefined): Value[] {
    if (value === undefined || value === null) return [];
    if (Array.isArray(value)) return value;
    if (!isRef(value)) return [value];
    const versions = this.#findVersions(value).map((object) => object.value);
    const lists = versions.filter((version) => Array.isArray(version));
    if (lists.length === 0) return [value];
    if (lists.length < versions.length) throw new Unreadable();
    return lists.flat();
  }

  #findMost(objects: Iterable<PdfObject>): number {
    let most = 0;
    for (const object of objects) {
      this.#count(perLook);
      most = Math.max(most, this.#countShown(object));
    }
    return most;
  }

  /**
   * Counts the characters of a content and of the forms that it draws. Readers skip a form inside itself, so the sum of a form that
   * skipped another one is not remembered.
   */
  #countShown(object: PdfObject): number {
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
    const { characters, named, hidden, own } = this.#readContent(object);
    let total = characters;
    for (const [name, times] of named)
      total += times * this.#findMost(own.get(name) ?? this.#drawn.get(name) ?? []);
    if (hidden > 0) for (const forms of this.#drawn.values()) total += hidden * this.#findMost(forms);
    total = Math.min(total, enough);
    this.#open.delete(object);
    if (this.#metAgain >= depth) {
      this.#metAgain = Number.POSITIVE_INFINITY;
      this.#shown.set(object, total);
    }
    return total;
  }

  #readContent(object: PdfObject): Content {
    const known = this.#contents.get(object);
    if (known) return known;
    const own: Drawn = new Map();
    if (object.value instanceof Map)
      for (const dict of this.#resolveDicts(object.value.get('/Resources')))
        this.#collectDrawn(dict.get('/XObject'), own);
    const content = { ...scanContent(this.#decodeStream(object)), own };
    this.#contents.set(object, content);
    return content;
  }

  #decodeStream({ value, dataAt }: PdfObject): string {
    if (!(value instanceof Map) || dataAt === undefined) throw new Unreadable();
    if (value.has('/F') || usesPredictor(value.get('/DecodeParms') ?? value.get('/DP') ?? null))
      throw new Unreadable();
    const filter = value.get('/Filter') ?? [];
    const filters = Array.isArray(filter) ? filter : [filter];
    let text: string | undefined;
    for (const name of filters) {
      if (name === '/FlateDecode' || name === '/Fl') {
        const bytes = text === undefined ? this.#bytes.subarray(dataAt) : toBytes(text);
        text = this.#inflate(bytes, this.#inflatedMost - this.inflated);
      } else if (name === '/ASCII85Decode' || name === '/A85')
        text = decodeAscii85(text ?? this.#file.slice(dataAt), this.#inflatedMost - this.inflated);
      else throw new Unreadable();
      if (text === undefined) throw new Unreadable();
      this.#count(Math.max(text.length, streamLeast));
    }
    if (text !== undefined) return text;
    const length = value.has('/Length') ? this.#resolveNumber(value.get('/Length')) : 0;
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

/** The name of a glyph may list glyphs, and codes of letters. */
const countLetters = (name: string): number =>
  name.length < 9
    ? 1
    : name
        .split('_')
        .reduce((sum, part) => sum + (/^\/?uni/.test(part) ? Math.max(1, (part.length - 3) / 4) : 1), 0);

const isForm = ({ value }: PdfObject): boolean => value instanceof Map && value.get('/Subtype') !== '/Image';

const usesPredictor = (parms: Value): boolean => {
  if (Array.isArray(parms)) return parms.some(usesPredictor);
  if (isRef(parms)) return true;
  return parms instanceof Map && (parms.get('/Predictor') ?? 1) !== 1;
};

/** Five signs encode four bytes; `z` is a group of zeros. */
function decodeAscii85(text: string, lengthMax: number): string | undefined {
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
    // Missing signs of the last group count as the highest.
    for (let sign = at; sign < at + 5; sign += 1) group = group * 85 + (signs.charCodeAt(sign) || 117) - 33;
    groups.push(String.fromCharCode(...[24, 16, 8, 0].map((shift) => (group >>> shift) & 255)));
  }
  return groups.join('').slice(0, length);
}

/** The characters of a content stream, and how often it draws each form. `hidden` counts draws in what may be data of a picture. */
interface Shown {
  characters: number;
  named: Map<string, number>;
  hidden: number;
}
type Drawn = Map<string, Set<PdfObject>>;
/** `own` has the forms that the content itself names. */
type Content = Shown & { own: Drawn };

function scanContent(text: string): Shown {
  let characters = 0;
  let name = '';
  let hidden = text.match(/(?<![A-Za-z])Do(?![A-Za-z0-9])/g)?.length ?? 0;
  const named = new Map<string, number>();
  const token = /\(|<[0-9A-Fa-f\s]+>|\/[^\s\0()<>[\]{}/%]*|(?<![A-Za-z])Do(?![A-Za-z0-9])/g;
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const [found] = match;
    if (found === '(') {
      const end = findTextEnd(text, token.lastIndex);
      characters += end - token.lastIndex - 1;
      token.lastIndex = end;
    } else if (found.startsWith('<')) characters += (found.length - 2) / 2;
    else if (found === 'Do') {
      named.set(name, (named.get(name) ?? 0) + 1);
      hidden -= 1;
    } else name = decodeName(found);
  }
  return { characters, named, hidden };
}
