/**
 * Shows one message. A model's output becomes text nodes, never markup: a tag, an event handler or a link in it is plain text.
 */
import { isRecord, parseJson } from '../../../shared/wire/json.ts';
import { byId, codeOf, createNode } from './elements.ts';
import { t } from './language.ts';

/** The rest of a longer answer is read to its end, but neither shown nor kept. */
const shownMax = 200_000;
const showEveryMs = 50;

interface ToolCall {
  id: string;
  type: 'function';
  function: { name: string; arguments: string };
}

/** Text that grows in steps, because a browser that lays out the page for each chunk falls behind. */
class GrowingText {
  readonly #node = document.createTextNode('');
  readonly #rest: HTMLElement;
  #waiting = '';
  #timer: ReturnType<typeof setTimeout> | undefined;
  text = '';
  #left = 0;

  constructor(place: HTMLElement) {
    this.#rest = createNode('p', { className: 'soft' });
    this.#rest.hidden = true;
    place.append(this.#node);
    place.after(this.#rest);
  }

  add(more: string): void {
    const taken = more.slice(0, shownMax - this.text.length);
    this.text += taken;
    this.#waiting += taken;
    this.#left += more.length - taken.length;
    this.#timer ??= setTimeout(() => this.flush(), showEveryMs);
  }

  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting !== '') this.#node.appendData(this.#waiting);
    this.#waiting = '';
    this.#rest.hidden = this.#left === 0;
    this.#rest.textContent = t().moreCharacters(this.#left);
  }
}

export class PlaygroundTurn {
  readonly #meta = createNode('p', { className: 'meta soft' });
  readonly #box: HTMLElement;
  readonly #text: GrowingText;
  readonly addPictures: (parts: readonly unknown[]) => void;
  #thinking: GrowingText | undefined;
  readonly #calls: { call: ToolCall; shown: GrowingText; result: HTMLTextAreaElement }[] = [];

  constructor(role: 'you' | 'model', pictures: readonly string[] = []) {
    const place = createNode('div', { className: 'text', dir: 'auto' });
    const name = role === 'you' ? t().you : t().modelSays;
    const shown = createNode('div', { className: 'pictures' });
    this.#box = createNode('article', { className: `turn ${role}`, ariaLabel: name }, [
      createNode('h3', {}, [name]),
      ...pictures.map((src, at) => createNode('img', { src, alt: t().picture(at + 1) })),
      place,
      shown,
      this.#meta,
    ]);
    byId('turns').append(this.#box);
    this.#text = new GrowingText(place);
    this.addPictures = createPictureList(shown);
  }

  get text(): string {
    return this.#text.text;
  }

  get calls(): ToolCall[] {
    return this.#calls.map(({ call }) => call);
  }

  /** Results of tool calls that the customer typed, by call id. */
  get results(): { id: string; text: string }[] {
    return this.#calls.map(({ call, result }) => ({ id: call.id, text: result.value }));
  }

  add(text: string): void {
    this.#text.add(text);
  }

  think(text: string): void {
    if (!this.#thinking) {
      const place = createNode('div', { className: 'text', dir: 'auto' });
      const details = createNode('details', {}, [createNode('summary', {}, [t().reasoning]), place]);
      this.#box.querySelector('h3')?.after(details);
      this.#thinking = new GrowingText(place);
    }
    this.#thinking.add(text);
  }

  addCalls(parts: readonly ToolCallDelta[]): void {
    for (const { index, id, function: called } of parts) {
      const known =
        this.#calls[index] ?? (index === this.#calls.length && index < 128 ? this.#newCall() : undefined);
      if (!known) continue;
      const { call, shown } = known;
      if (id !== undefined) call.id = id;
      if (called?.name !== undefined) {
        call.function.name += called.name;
        shown.add(`${called.name} `);
      }
      if (called?.arguments !== undefined && call.function.arguments.length < shownMax) {
        call.function.arguments += called.arguments;
        shown.add(called.arguments);
      }
    }
  }

  #newCall() {
    const place = createNode('pre', { className: 'call', tabIndex: 0 });
    const result = createNode('textarea', {
      rows: 2,
      ariaLabel: t().callResult,
      placeholder: t().callResult,
    });
    this.#meta.before(createNode('div', {}, [place, result]));
    const call: ToolCall = { id: '', type: 'function', function: { name: '', arguments: '' } };
    const made = { call, shown: new GrowingText(place), result };
    this.#calls.push(made);
    return made;
  }

  say(text: string, isWrong = false): void {
    this.#meta.textContent = text;
    this.#meta.classList.toggle('wrong', isWrong);
  }

  end(): void {
    for (const each of [this.#text, this.#thinking, ...this.#calls.map(({ shown }) => shown)]) each?.flush();
  }
}

// Pictures as data: URLs: those that the customer adds to a message, and those that came in an answer itself. Nothing else is
// ever shown as a picture, nothing is loaded.

const kinds = /^image\/(png|jpeg|webp|gif)$/;
/** Larger files are made smaller: a request may have 6 MB. */
const bytesMax = 700_000;
const sideMax = 1_568;

export const isPicture = ({ type }: File): boolean => kinds.test(type);

export const readDataUrl = (file: File): Promise<string> =>
  file.size <= bytesMax ? readAsUrl(file) : shrinkPicture(file);

const readAsUrl = (file: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(typeof reader.result === 'string' ? reader.result : ''));
    reader.addEventListener('error', () => reject(new Error('the file could not be read')));
    reader.readAsDataURL(file);
  });

async function shrinkPicture(file: File): Promise<string> {
  const bitmap = await createImageBitmap(file);
  const scale = Math.min(1, sideMax / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext('2d')?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return canvas.toDataURL('image/jpeg', 0.85);
}

const shown = /^data:image\/(?:png|jpeg|webp|gif);base64,[A-Za-z0-9+/]+={0,2}$/;
const picturesMax = 8;
/** Over all pictures of an answer. */
const charactersMax = 24_000_000;
const namedCharacters = 200;

/** @returns adds pictures of an answer to a place, which is hidden while it is empty */
function createPictureList(place: HTMLElement): (parts: readonly unknown[]) => void {
  const rest = createNode('p', { className: 'soft' });
  let [count, characters, left] = [0, 0, 0];
  const made = (url: string): HTMLElement => {
    count += 1;
    if (!shown.test(url)) {
      return createNode('p', { className: 'soft' }, [t().notLoaded, codeOf(url.slice(0, namedCharacters))]);
    }
    characters += url.length;
    const picture = createNode('img', { src: url, alt: t().picture(count), decoding: 'async' });
    picture.addEventListener('error', () => picture.replaceWith(t().brokenPicture));
    return picture;
  };
  place.hidden = true;
  place.append(rest);
  return (parts) => {
    for (const url of parts.map(urlOf)) {
      if (url === undefined) continue;
      place.hidden = false;
      if (count >= picturesMax || characters + url.length > charactersMax) left += 1;
      else rest.before(made(url));
    }
    if (left > 0) rest.textContent = t().morePictures(left);
  };
}

function urlOf(part: unknown): string | undefined {
  const url = (part as { image_url?: { url?: unknown } } | null)?.image_url?.url;
  return typeof url === 'string' && url !== '' ? url : undefined;
}

// Reads the stream of an answer. Holds one line at most, and no line above the bound.

/** A picture is one line. */
const lineMax = 12_000_000;

interface ToolCallDelta {
  index: number;
  id?: string;
  function?: { name?: string; arguments?: string };
}

export interface TurnUsage {
  prompt_tokens?: number;
  completion_tokens?: number;
  prompt_tokens_details?: { cached_tokens?: number } | null;
}

interface Chunk {
  choices?: {
    delta?: {
      content?: string | null;
      reasoning_content?: string | null;
      tool_calls?: ToolCallDelta[];
      images?: unknown;
    };
    finish_reason?: string | null;
  }[];
  usage?: TurnUsage | null;
  error?: { message?: string };
}

/** Throws when the stream ends without `[DONE]`, or contains an invalid chunk. */
export async function* readChunks(body: ReadableStream<Uint8Array>): AsyncGenerator<Chunk> {
  for await (const line of readLines(body)) {
    if (!line.startsWith('data:')) continue;
    const data = line.slice(5).trim();
    if (data === '[DONE]') return;
    yield parseChunk(data);
  }
  throw new Error(t().cutAnswer);
}

function parseChunk(data: string): Chunk {
  const json = parseJson(data);
  if (!isRecord(json)) throw new Error(t().wrongForm);
  const chunk = json as Chunk;
  if (chunk.error) throw new Error(chunk.error.message ?? t().wrongForm);
  return chunk;
}

async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let begun: string[] = [];
  let length = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      // Search only the new text: a long line in small pieces would be searched again with each.
      const [first = '', ...more] = (
        done ? `${decoder.decode()}\n` : decoder.decode(value, { stream: true })
      ).split('\n');
      begun.push(first);
      length += first.length;
      if (length > lineMax) throw new Error(t().tooLong);
      if (more.length > 0) {
        const rest = more.pop() ?? '';
        yield begun.join('');
        yield* more;
        begun = [rest];
        length = rest.length;
      }
      if (done) return;
    }
  } finally {
    // A reader that stops early must not leave the connection open.
    await reader.cancel().catch(() => undefined);
  }
}
