/** Converts the content parts of a message to blocks: text, images, documents. */
import type { ChatContentPart, ChatMessage } from '../../../wire/chat-request.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import { CannotCarry } from '../../dialect.ts';

/** A client's cache breakpoint, as a property to spread; empty if there is none. */
export function cacheControlOf(source: unknown): { cache_control?: JsonRecord } {
  const control = asRecord(source)['cache_control'];
  if (!isRecord(control)) return {};
  const { ttl } = control;
  return { cache_control: { type: 'ephemeral', ...(typeof ttl === 'string' && { ttl }) } };
}

/** The vendor refuses blocks without text. */
export const textBlocks = (text: string): JsonRecord[] =>
  text.trim() === '' ? [] : [{ type: 'text', text }];

/** A breakpoint on a whole message stands on its last block. */
export function withMessageBreakpoint(blocks: JsonRecord[], message: ChatMessage): JsonRecord[] {
  const cache = cacheControlOf(message);
  const last = blocks.at(-1);
  return last && cache.cache_control ? [...blocks.slice(0, -1), { ...last, ...cache }] : blocks;
}

/** Throws CannotCarry for a part that has no form here. `path`: the message in the client's request. */
export function contentBlocks(content: ChatMessage['content'], path: string): JsonRecord[] {
  if (typeof content === 'string') return textBlocks(content);
  return (content ?? []).flatMap((part, index) => {
    const cache = cacheControlOf(part);
    return partBlocks(part, `${path}.content[${index}]`).map((block) => Object.assign(block, cache));
  });
}

function partBlocks(part: ChatContentPart, path: string): JsonRecord[] {
  if (part.type === 'text') return textBlocks(part.text ?? '');
  if (part.type === 'refusal') return textBlocks(textOf(part['refusal']));
  if (part.type === 'image_url')
    return [{ type: 'image', source: imageSource(part.image_url?.url ?? '', path) }];
  if (part.type === 'file') return [fileBlock(asRecord(part['file']), path)];
  throw new CannotCarry(`${path}.type`, `Content of type ${part.type} cannot be sent to this model.`);
}

function imageSource(url: string, path: string): JsonRecord {
  const data = readDataUrl(url);
  if (data) return inlineImage(data, `${path}.image_url.url`);
  if (isUrl(url)) return { type: 'url', url };
  throw new CannotCarry(`${path}.image_url.url`, 'Images have to be https URLs or base64 data URLs.');
}

const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

/** `image/jpg` is no registered type, but a common one. */
function inlineImage({ mediaType, base64 }: DataUrl, path: string): JsonRecord {
  const type = mediaType === 'image/jpg' ? 'image/jpeg' : mediaType;
  if (imageTypes.has(type)) return { type: 'base64', media_type: type, data: base64 };
  throw new CannotCarry(path, `Images of type ${type.slice(0, 64)} cannot be sent to this model.`);
}

/** PDF and plain text, inline or by URL, and images that were sent as files. */
function fileBlock({ file_data: data, file_url: url, filename }: JsonRecord, path: string): JsonRecord {
  const title = typeof filename === 'string' && filename !== '' ? { title: filename } : {};
  if (typeof url === 'string' && isUrl(url))
    return { type: 'document', source: { type: 'url', url }, ...title };
  const file = typeof data === 'string' ? (readDataUrl(data) ?? rawPdf(data)) : undefined;
  if (!file) {
    const message = 'Files have to be sent as base64 data URLs or https URLs to this model.';
    throw new CannotCarry(`${path}.file`, message);
  }
  const { mediaType, base64 } = file;
  if (mediaType.startsWith('image/')) {
    return { type: 'image', source: inlineImage(file, `${path}.file`) };
  }
  if (mediaType === 'application/pdf') {
    return { type: 'document', source: { type: 'base64', media_type: mediaType, data: base64 }, ...title };
  }
  const text =
    mediaType.startsWith('text/') || mediaType === 'application/json' ? decoded(base64) : undefined;
  if (text !== undefined) {
    return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text }, ...title };
  }
  throw new CannotCarry(
    `${path}.file`,
    `Files of type ${mediaType.slice(0, 64)} cannot be sent to this model.`,
  );
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

const isUrl = (text: string): boolean => /^https?:\/\//i.test(text);

interface DataUrl {
  mediaType: string;
  base64: string;
}

function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(',');
  // The head is short; the pattern never runs over the data.
  const head =
    comma < 0 || comma > 200 ? undefined : /^data:([^;,]+)(?:;[^,]*)?;base64$/i.exec(url.slice(0, comma));
  const mediaType = head?.[1]?.toLowerCase();
  return mediaType === undefined ? undefined : { mediaType, base64: url.slice(comma + 1) };
}

/** Some clients send the base64 of a PDF without `data:`; it begins with `%PDF-`. */
const rawPdf = (text: string): DataUrl | undefined =>
  text.startsWith('JVBERi0') ? { mediaType: 'application/pdf', base64: text } : undefined;

function decoded(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
