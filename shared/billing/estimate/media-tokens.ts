/**
 * What pictures, files and sound count at most. What a part is its bytes say, not its name: upstreams look at these, too.
 * Where they cannot be read to their end, the part counts for all that they could hold.
 */
import type { ChatContentPart } from '../../wire/chat-request.ts';
import { asRecord } from '../../wire/json-record.ts';
import { inflatedMax, pdfSize, type Inflate, type PdfSize } from './pdf-size.ts';
import { isPicture, pictureSize } from './picture-size.ts';
import { pictureTokens, type MediaTokens } from './picture-tokens.ts';
import { soundSeconds } from './sound-length.ts';
import { windowTokens } from './window-tokens.ts';

/** Undefined: nobody knows how many tokens the part has. */
export type MediaEstimator = (part: ChatContentPart) => MediaTokens | undefined;

/** A page costs its text and its picture, which vendors count with up to 1,600 tokens. */
const pagePicture: MediaTokens = { above: 1_600, unbiased: 1_000 };
/** A character of a page is a token at most. */
const charactersUnbiased = 3;
/** Tokens of a byte of a file that is text. */
const perByte: MediaTokens = { above: 2.3, unbiased: 1 };
/** Assumed of what nobody saw: a hundred pages. */
const unseenUnbiased = 200_000;
/** How much of it a byte may hold: no usual compression does better. */
const heldByByte = 1_100;
/** Vendors count 10 to 32 tokens for a second. */
const perSecond: MediaTokens = { above: 32, unbiased: 10 };
const unseen: MediaTokens = { above: windowTokens, unbiased: unseenUnbiased };

/**
 * Estimates the parts of one request, for each model that may answer it: each file is read once, and all of them together
 * inflate no more than one may.
 */
export function mediaReader(inflate: Inflate): (imageTokens: number | undefined) => MediaEstimator {
  const files = new Map<string, MediaTokens>();
  let inflatedLeft = inflatedMax;
  const sizeOfPdf = (bytes: string): PdfSize | undefined => {
    const { size, inflated } = pdfSize(bytes, inflate, inflatedLeft);
    inflatedLeft -= inflated;
    return size;
  };
  const tokensOf = (data: string): MediaTokens => {
    const known = files.get(data) ?? fileTokens(data, sizeOfPdf);
    files.set(data, known);
    return known;
  };
  return (imageTokens) => (part) => {
    if (part.type === 'image_url') {
      const { url = '', detail } = part.image_url ?? {};
      if (/^data:/i.test(url) && !isPicture(url)) return tokensOf(url);
      if (imageTokens !== undefined) return { above: imageTokens, unbiased: imageTokens };
      return pictureTokens(pictureSize(url), detail ?? undefined);
    }
    if (part.type === 'file' && part.file) {
      const { file_data: data } = part.file;
      return typeof data === 'string' ? tokensOf(data) : unseen;
    }
    if (part.type === 'input_audio') return soundTokens(asRecord(part['input_audio']));
    // What the assistant said earlier: its text is counted like any other.
    return part.type === 'refusal'
      ? { above: lengthOf(part['refusal']), unbiased: lengthOf(part['refusal']) / 4 }
      : undefined;
  };
}

const lengthOf = (text: unknown): number => (typeof text === 'string' ? text.length : 0);

function fileTokens(data: string, sizeOfPdf: (bytes: string) => PdfSize | undefined): MediaTokens {
  const bytes = bytesOf(data);
  if (bytes === undefined) return unseen;
  // Readers look for it in the first 1,024 bytes.
  if (bytes.slice(0, 1_100).includes('%PDF')) {
    const size = sizeOfPdf(bytes);
    return size ? pdfTokens(size) : unseen;
  }
  // Control characters: it is no text, but a compressed or recorded something.
  // eslint-disable-next-line no-control-regex
  if (/[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(bytes)) return heldBy(bytes.length);
  return { above: Math.ceil(bytes.length * perByte.above), unbiased: bytes.length * perByte.unbiased };
}

const pdfTokens = ({ pages, characters }: PdfSize): MediaTokens => ({
  above: Math.min(windowTokens, pages * pagePicture.above + characters),
  unbiased: Math.min(windowTokens, pages * pagePicture.unbiased + characters / charactersUnbiased),
});

const heldBy = (bytes: number): MediaTokens => {
  const above = Math.min(windowTokens, bytes * heldByByte);
  return { above, unbiased: Math.min(above, unseenUnbiased) };
};

/** The bytes of a data URL, or of base64 alone, a character each. Undefined: upstreams may read it in several ways. */
function bytesOf(data: string): string | undefined {
  const [head] = /^data:[^,]{0,300},/i.exec(data) ?? [''];
  const written = data.slice(head.length);
  if (head !== '' && !/;base64,$/i.test(head)) return written.includes('%') ? undefined : written;
  const encoded = /\s/.test(written) ? written.replace(/\s+/g, '') : written;
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(encoded)) return undefined;
  try {
    return atob(encoded);
  } catch {
    return undefined;
  }
}

function soundTokens({ data, format }: Record<string, unknown>): MediaTokens | undefined {
  if (typeof data !== 'string' || (format !== 'wav' && format !== 'mp3')) return undefined;
  const bytes = bytesOf(data);
  if (bytes === undefined) return unseen;
  const seconds = soundSeconds(bytes);
  if (!seconds) return heldBy(bytes.length);
  return {
    above: Math.min(windowTokens, Math.ceil(seconds.most) * perSecond.above),
    unbiased: Math.min(windowTokens, seconds.usual * perSecond.unbiased),
  };
}
