/**
 * Finds everything in a JSON body that carries or refers to media, whatever the endpoint, the role or the nesting. Prices, the check of
 * URLs and the names of dropped media all come from this one walk, so that none of them misses what another one finds. It must never
 * take words for media: what a person or a model wrote, arguments, schemas and quotes may mention any URL.
 */
import { isRecord, type JsonRecord } from './json.ts';

/** `file`: its bytes say what it is. `unknown`: it is in a block that nobody here knows, whose vendor may make anything of it. */
export type MediaKind = 'picture' | 'sound' | 'file' | 'unknown';

export interface FoundMedium {
  readonly kind: MediaKind;
  /** Bytes as base64 or a data URL, an address, or an id. Undefined: the object has none that the walk knows. */
  readonly value: string | undefined;
  /** The object or the list that holds the value, and under which key. */
  readonly holder: object;
  readonly key: string;
  /** The name of the field, of a list that of the list. */
  readonly field: string;
  /** The type of the outermost typed object around it: the part, the block or the item. */
  readonly block: string | undefined;
  readonly link: Link;
}

/** A step of a path. Paths are made only where somebody asks for one: a body may have 100,000 places. */
interface Link {
  readonly up: Link | undefined;
  readonly step: string | number;
}

/** Such as `messages[0].content[1].source.url`. */
export function pathOf({ link }: Pick<FoundMedium, 'link'>): string {
  const steps: (string | number)[] = [];
  for (let at: Link | undefined = link; at; at = at.up) if (at.step !== '') steps.push(at.step);
  const shown = steps.toReversed().map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`));
  return shown.join('').replace(/^\.+/, '');
}

/** The same without positions, as lists of dropped fields show it: `messages[].images[]`. */
export const fieldPathOf = (place: Pick<FoundMedium, 'link'>): string =>
  pathOf(place).replaceAll(/\[\d+\]/g, '[]');

interface Named {
  /**
   * `words`: nothing in it is media. `said`: its text is words, and objects in it may hold media. `media`: every text is. `loose`: a text without
   * blanks is. `other`: a text that looks like an address or a file is.
   */
  is: 'words' | 'said' | 'media' | 'loose' | 'other';
  kind?: MediaKind;
}

const wordFields = new Set(
  (
    'reasoning_content reasoning_details extra_content annotations citations arguments function function_call functions custom parameters ' +
    'input_examples response_format output_config output_format format tool_choice stop stop_sequences encrypted_content signature ' +
    'thought_signature cache_control plugins provider mcp_servers search_parameters web_search_options'
  ).split(' '),
);
const saidFields = new Set(
  (
    'type role text refusal thinking reasoning title context filename file_name name description content input output instructions prompt ' +
    'system stdout stderr error reason summary detail media_type mime_type content_type model user query'
  ).split(' '),
);
/** Schemas, addresses that no model reads, and ids, but for those of stored files. */
const wordPattern =
  /^\$|(?:^|_)(?:metadata|schema|json|grammar|regex|base|host|endpoint|proxy|origin|referr?er)$|(?:^|_)(?:server|callback|webhook|site|app|base|api)_?ur[il]s?$|(?:^|_)(?<!(?:file|image|audio|video|document|media)_)ids?$/;
const forms = '(?:_?(?:ids?|ur[il]s?|data|bytes|base64|b64|b64_json))?$';
const kinds: readonly [RegExp, MediaKind | undefined][] = [
  [new RegExp(`(?:^|_)(?:image|picture|photo)s?${forms}`), 'picture'],
  [new RegExp(`(?:^|_)(?:audio|sound|speech)s?${forms}`), 'sound'],
  [new RegExp(`(?:^|_)(?:file|document|video|film|media|attachment)s?${forms}`), 'file'],
  [/(?:^|_)(?:ur[il]s?|src|data|bytes|blob|base64|b64|b64_json)$/, undefined],
];
/** Names that also mean other things, such as where a call comes from. */
const loosePattern = /^(?:source|file|document|media|attachment)s?$/;

/** Asked first: a body may have 100,000 names. */
const mayBeMedia =
  /image|picture|photo|audio|sound|speech|file|document|video|film|media|attach|ur[il]|src|source|data|bytes|blob|b(?:ase)?64/;

function nameField(field: string): Named {
  const isPlain = /^[a-z\d_]*$/.test(field);
  const name = isPlain
    ? field
    : field
        .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
        .toLowerCase()
        .replaceAll('-', '_');
  if (wordFields.has(name) || wordPattern.test(name)) return { is: 'words' };
  if (saidFields.has(name)) return { is: 'said' };
  if (!mayBeMedia.test(name)) return { is: 'other' };
  const rule = kinds.find(([pattern]) => pattern.test(name));
  const kind = rule?.[1];
  return { is: loosePattern.test(name) ? 'loose' : rule ? 'media' : 'other', ...(kind && { kind }) };
}

const kindsOfTypes = new Map<string, MediaKind>([
  ['image', 'picture'],
  ['image_url', 'picture'],
  ['input_image', 'picture'],
  ['input_audio', 'sound'],
  ['file', 'file'],
  ['input_file', 'file'],
  ['document', 'file'],
]);

/** Results of an earlier search or fetch: nobody fetches their addresses again. */
const quotes = new Map([
  ['search_result', 'source'],
  ['web_search_result', 'url'],
  ['web_fetch_result', 'url'],
]);

/** A text that a lenient client of URLs would take for one, in a field of any name. */
const urlLike = /^[\0-\x20]*(?:[a-z][a-z0-9+.-]{0,40}:\/\/|(?:https?|ftp|file|data):)/i;
/** Longer than the scheme of any URL. Parsers of URLs leave out tabs and line ends, wherever they stand. */
export function looksLikeUrl(text: string): boolean {
  const start = text.slice(0, 128);
  return start.includes(':') && urlLike.test(start.replaceAll(/[\t\n\r]/g, ''));
}

/** How PDF, PNG, JPEG, GIF, RIFF and ZIP begin in base64. */
const base64Start = /^(?:JVBERi0|iVBORw0KGgo|\/9j\/|R0lGOD|UklGR|UEsDB)/;
const hasBlank = (text: string): boolean => text.slice(0, 128).includes(' ');

const bytesField = /(?:data|bytes|blob|base64|b64|b64_?json)$/i;
/** Longer than any id. */
const idLengthMax = 512;

/** True if the media themselves are in the body. Otherwise an address or an id leads to them, so their size is unknown. */
export function holdsBytes({ value = '', field }: FoundMedium): boolean {
  if (/^\s*data:/i.test(value)) return true;
  return (
    !looksLikeUrl(value) && (bytesField.test(field) || base64Start.test(value) || value.length > idLengthMax)
  );
}

/** An object or a list that is walked, and a step of the paths of what is in it. */
class Frame implements Link {
  readonly up: Link | undefined;
  readonly step: string | number;
  readonly node: JsonRecord | readonly unknown[];
  readonly keys: readonly string[] | undefined;
  readonly field: string;
  readonly name: Named;
  readonly kind: MediaKind;
  readonly block: string | undefined;
  at = 0;
  /** How many places were found before a source, which is one itself where nothing in it is. */
  before: number | undefined;

  constructor(
    node: object,
    { up, step, field, name, kind, block }: Pick<Frame, 'up' | 'step' | 'field' | 'name' | 'kind' | 'block'>,
  ) {
    const type = isRecord(node) && field !== 'source' ? node['type'] : undefined;
    const isTyped = typeof type === 'string';
    this.up = up;
    this.step = step;
    this.node = node as Frame['node'];
    this.keys = Array.isArray(node) ? undefined : Object.keys(node);
    this.field = field;
    this.name = name;
    this.kind = isTyped ? (kindsOfTypes.get(type) ?? name.kind ?? 'unknown') : kind;
    this.block = block ?? (isTyped ? type : undefined);
  }
}

/**
 * The places in the order of the body, found one by one: whoever reads them may stop anywhere. Takes linear time, copies nothing,
 * and needs no stack of calls.
 * @param param the path of `value`; absent: it is the body
 */
export function* walkMedia(value: unknown, param = ''): Generator<FoundMedium, void, undefined> {
  if (typeof value !== 'object' || value === null) return;
  const names = new Map<string, Named>();
  const nameOf = (field: string): Named => {
    let name = names.get(field);
    if (!name) names.set(field, (name = nameField(field)));
    return name;
  };
  const name: Named = { is: 'said' };
  const frames = [
    new Frame(value, { up: undefined, step: param, field: '', name, kind: 'file', block: undefined }),
  ];
  let found = 0;
  for (let frame = frames.at(-1); frame; frame = frames.at(-1)) {
    const { node, keys, block } = frame;
    const at = frame.at++;
    if (at >= (keys ?? (node as readonly unknown[])).length) {
      frames.pop();
      if (frame.before !== found) continue;
      found += 1;
      yield {
        kind: frame.kind,
        value: undefined,
        holder: node,
        key: '',
        field: frame.field,
        block,
        link: frame,
      };
      continue;
    }
    const step = keys ? keys[at]! : at;
    const inner = (node as JsonRecord)[step];
    if (inner === null || (typeof inner !== 'string' && typeof inner !== 'object')) continue;
    const field = keys ? keys[at]! : frame.field;
    const name = keys ? nameOf(field) : frame.name;
    if (name.is === 'words' || (keys && isQuoted(node as JsonRecord, field))) continue;
    const kind = name.kind ?? frame.kind;
    if (typeof inner === 'object') {
      const next = new Frame(inner, { up: frame, step, field, name, kind, block });
      if (keys && isSource(node as JsonRecord, field, inner)) next.before = found;
      frames.push(next);
    } else if (isMedia(inner, name, node)) {
      found += 1;
      const link = { up: frame, step };
      yield { kind: kindIn(node, kind), value: inner, holder: node, key: String(step), field, block, link };
    }
  }
}

/** The kind of a typed block. Its content may be unknown. */
const isSource = ({ type }: JsonRecord, field: string, inner: object): boolean =>
  typeof type === 'string' && (field === 'source' || field === 'file') && isRecord(inner) && !isText(inner);
const isText = ({ type }: JsonRecord): boolean => type === 'text' || type === 'content';

/** Arguments of a tool call, the text of a document, hidden thinking, and quotes hold no media. */
function isQuoted(node: JsonRecord, key: string): boolean {
  const { type } = node;
  if (typeof type !== 'string') return false;
  if (key === 'input') return type.endsWith('tool_use');
  if (key === 'data') return type === 'text' || type === 'redacted_thinking' || type.startsWith('reasoning');
  return quotes.get(type) === key;
}

function isMedia(text: string, { is }: Named, node: object): boolean {
  if (is === 'said' || (text === '' && is !== 'media')) return false;
  if (is === 'media' || looksLikeUrl(text) || base64Start.test(text)) return true;
  return (is === 'loose' || mediaTypeOf(node) !== undefined) && !hasBlank(text);
}

function mediaTypeOf(node: object): string | undefined {
  const { media_type: snake, mime_type: mime, mediaType: camel, mimeType } = node as JsonRecord;
  const type = snake ?? mime ?? camel ?? mimeType;
  return typeof type === 'string' ? type : undefined;
}

/** A part whose own type is not a picture is not one, whatever surrounds it. */
const kindIn = (node: object, kind: MediaKind): MediaKind =>
  kind === 'picture' && /^(?!image\/)/i.test(mediaTypeOf(node) ?? 'image/') ? 'file' : kind;

/** The places of which `body` has no medium any more. */
export function findMissingMedia(places: Iterable<FoundMedium>, body: unknown): FoundMedium[] {
  const asked = [...places];
  if (asked.length === 0) return [];
  const left = new Set(Array.from(walkMedia(body), mediumOf));
  return asked.filter((place) => !isWritten(place) && !left.has(mediumOf(place)));
}

/** A data URL and its base64 alone are the same. */
const mediumOf = ({ value = '' }: FoundMedium): string =>
  /^data:/i.test(value) ? value.slice(value.indexOf(',') + 1) : value;

/** A file that is text goes up as words where an upstream has no other form for it. */
const isWritten = ({ value = '' }: FoundMedium): boolean => /^data:(?:text\/|application\/json)/i.test(value);
