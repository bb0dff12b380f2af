/**
 * What pictures, files and sound count at most. What a part is its bytes say, not its name: upstreams look at these, too.
 * Where they cannot be read to their end, the part counts for all that they could hold.
 */
import { windowTokens } from '../../wire/canonical-call.ts';
import { textIn, type JsonRecord } from '../../wire/json.ts';
import { holdsBytes, type MediaPlace } from '../../wire/media-walk.ts';
import { inflatedMax, measurePdf, type Inflate, type PdfSize } from './pdf-size.ts';

export interface MediaTokens {
  above: number;
  unbiased: number;
}

/** Undefined where the size cannot be read: the picture of another server, or an unknown format. */
type KnownSize = PictureSize | undefined;

/** A picture at low detail, as OpenAI counts it. Others know no detail, so it lowers the unbiased estimate alone. */
const lowDetail = 85;
const tile = 512;
const patch = 32;
const patchesMax = 1_536;
/** OpenAI's factor for the smaller models that count patches. Its smallest ones have more: `image_tokens` says it. */
const patchFactor = 1.62;
/** Anthropic's most for a picture, before and since the models that take 2,576 pixels. */
const areaTokensMax = 4_784;
const usual: PictureSize = { width: 1_024, height: 1_024 };

/**
 * From above: the largest of the vendors' formulas, because a model's name does not say whose formula holds. Unbiased:
 * OpenAI's tiles. Sources: OpenAI's and Anthropic's pages on vision, November 2026.
 */
function pictureTokens(size: KnownSize, detail: string | undefined): MediaTokens {
  const unbiased = detail === 'low' ? lowDetail : tileTokens(size ?? usual);
  if (!size) return { above: areaTokensMax, unbiased };
  return { above: Math.max(tileTokens(size), patchTokens(size), areaTokens(size)), unbiased };
}

/** 170 for each tile of 512 pixels, after the picture was made to fit 2,048 by 2,048 and its short side 768. */
function tileTokens({ width, height }: PictureSize): number {
  const fit = Math.min(1, 2_048 / Math.max(width, height));
  const scale = fit * Math.min(1, 768 / (Math.min(width, height) * fit));
  return lowDetail + 170 * Math.ceil((width * scale) / tile) * Math.ceil((height * scale) / tile);
}

const patchTokens = ({ width, height }: PictureSize): number =>
  Math.ceil(Math.min(patchesMax, Math.ceil(width / patch) * Math.ceil(height / patch)) * patchFactor);

const areaTokens = ({ width, height }: PictureSize): number =>
  Math.min(areaTokensMax, Math.ceil((width * height) / 750));

export type MediaEstimator = (place: MediaPlace) => MediaTokens;

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
export function createMediaReader(inflate: Inflate): (imageTokens: number | undefined) => MediaEstimator {
  const files = new Map<string, MediaTokens>();
  let inflatedLeft = inflatedMax;
  const sizeOfPdf = (bytes: string): PdfSize | undefined => {
    const { size, inflated } = measurePdf(bytes, inflate, inflatedLeft);
    inflatedLeft -= inflated;
    return size;
  };
  const tokensOf = (data: string): MediaTokens => {
    const known = files.get(data) ?? fileTokens(data, sizeOfPdf);
    files.set(data, known);
    return known;
  };
  return (imageTokens) => (place) => {
    const { kind, value = '', holder } = place;
    const isSeen = kind !== 'unknown' && holdsBytes(place);
    if (kind === 'picture' && (!isSeen || isPicture(value))) {
      if (imageTokens !== undefined) return { above: imageTokens, unbiased: imageTokens };
      const { detail } = holder as JsonRecord;
      return pictureTokens(isSeen ? readPictureSize(value) : undefined, textIn(detail));
    }
    if (!isSeen) return unseen;
    return kind === 'sound' ? soundTokens(value, (holder as JsonRecord)['format']) : tokensOf(value);
  };
}

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
  return decoded(encoded);
}

function soundTokens(data: string, format: unknown): MediaTokens {
  if (format !== 'wav' && format !== 'mp3') return unseen;
  const bytes = bytesOf(data);
  if (bytes === undefined) return unseen;
  const seconds = soundSeconds(bytes);
  if (!seconds) return heldBy(bytes.length);
  return {
    above: Math.min(windowTokens, Math.ceil(seconds.most) * perSecond.above),
    unbiased: Math.min(windowTokens, seconds.usual * perSecond.unbiased),
  };
}

export interface PictureSize {
  width: number;
  height: number;
}

/** How much of a picture is decoded. The size stands in the first bytes, but in a JPEG after what a camera adds. */
const encodedLengthMax = 400_000;

/** How pictures of all usual kinds begin. */
const beginnings =
  /^(\u0089PNG|GIF8|\u00ff\u00d8\u00ff|BM|II\*\0|MM\0\*|.{8}WEBP|.{4}ftyp(hei[cxms]|hevc|mif1|msf1|avi[fs]))/s;

/** Whether the bytes are those of a picture, whatever the URL says. */
const isPicture = (url: string): boolean => beginnings.test(firstBytes(url, 64));

/** The size of a picture from its header. */
export function readPictureSize(url: string): KnownSize {
  const bytes = firstBytes(url, encodedLengthMax);
  const size = pngSize(bytes) ?? webpSize(bytes) ?? jpegSize(bytes);
  return size && size.width > 0 && size.height > 0 ? size : undefined;
}

/** Decodes a data URL or plain base64 to a character a byte; empty if it cannot be decoded. */
function firstBytes(url: string, encodedLength: number): string {
  const start = /^data:[^,]{0,300};base64,/i.exec(url)?.[0].length ?? 0;
  const encoded = url.slice(start, start + encodedLength).replace(/\s+/g, '');
  return decoded(encoded.slice(0, encoded.length - (encoded.length % 4))) ?? '';
}

function decoded(encoded: string): string | undefined {
  try {
    return atob(encoded);
  } catch {
    return undefined;
  }
}

const stands = (text: string, bytes: string, at: number): boolean => bytes.startsWith(text, at);

/** Numbers of some bytes, behind the end zeros: the lowest byte first, or the highest one. */
const low = (bytes: string, at: number, length: number): number =>
  length === 0 ? 0 : (bytes.charCodeAt(at) || 0) + 256 * low(bytes, at + 1, length - 1);
const high = (bytes: string, at: number, length: number): number =>
  length === 0 ? 0 : 256 * high(bytes, at, length - 1) + (bytes.charCodeAt(at + length - 1) || 0);

const pngSize = (bytes: string): KnownSize =>
  stands('\u0089PNG', bytes, 0) && stands('IHDR', bytes, 12)
    ? { width: high(bytes, 16, 4), height: high(bytes, 20, 4) }
    : undefined;

/** Lossy, lossless, extended. */
function webpSize(bytes: string): KnownSize {
  if (!stands('RIFF', bytes, 0) || !stands('WEBP', bytes, 8) || bytes.length < 30) return undefined;
  if (stands('VP8 ', bytes, 12))
    return { width: low(bytes, 26, 2) & 0x3fff, height: low(bytes, 28, 2) & 0x3fff };
  if (stands('VP8L', bytes, 12)) {
    const bits = low(bytes, 21, 4);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (!stands('VP8X', bytes, 12)) return undefined;
  return { width: low(bytes, 24, 3) + 1, height: low(bytes, 27, 3) + 1 };
}

/** Walks the segments up to the picture's data. Of several frame headers the largest counts. */
function jpegSize(bytes: string): KnownSize {
  if (!stands('\u00ff\u00d8', bytes, 0)) return undefined;
  const size = { width: 0, height: 0 };
  for (let at = 2; at + 9 < bytes.length;) {
    const marker = low(bytes, at + 1, 1);
    // Decoders skip what is no marker. Any number of fill bytes may stand before one.
    if (low(bytes, at, 1) !== 0xff || marker === 0xff || marker === 0) at += 1;
    else if (marker === 0xda) return size;
    // Markers without a segment.
    else if (marker === 1 || (marker >= 0xd0 && marker <= 0xd8)) at += 2;
    else {
      if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
        size.width = Math.max(size.width, high(bytes, at + 7, 2));
        size.height = Math.max(size.height, high(bytes, at + 5, 2));
      }
      at += 2 + Math.max(2, high(bytes, at + 2, 2));
    }
  }
  return undefined;
}

/** Bytes of a second of MP3: no rate of its frames has fewer. */
const mp3Bytes = { fewest: 1_000, usual: 8_000 };
/** Whole samples, as integers and as floats: other forms in a WAV are compressed. */
const wholeSamples = new Set([1, 3]);

/** How long a recording is: by the rate in its header, and where that has none by the lowest there is. */
function soundSeconds(bytes: string): { most: number; usual: number } | undefined {
  const rate = bytes.startsWith('RIFF') && bytes.slice(8, 12) === 'WAVE' ? wavRate(bytes) : mp3Rate(bytes);
  return rate && { most: bytes.length / rate.fewest, usual: bytes.length / rate.usual };
}

/** The bytes of a second by the chunk `fmt `. Of what it says in several ways the lowest counts, since decoders differ. */
function wavRate(bytes: string): { fewest: number; usual: number } | undefined {
  const rates: number[] = [];
  for (let at = 12; at + 24 <= bytes.length && rates.length < 8;) {
    const length = low(bytes, at + 4, 4);
    if (stands('fmt ', bytes, at)) rates.push(rateOf(bytes, at + 8));
    // What a recording has behind its sound is not its form.
    if (stands('data', bytes, at)) break;
    at += 8 + length + (length % 2);
  }
  const rate = Math.min(...rates);
  return rates.length > 0 && rate > 0 ? { fewest: rate, usual: rate } : undefined;
}

function rateOf(bytes: string, at: number): number {
  const form = low(bytes, at, 2);
  // In the extensible form the code of the samples stands further behind.
  if (!wholeSamples.has(form === 0xfffe ? low(bytes, at + 24, 2) : form)) return 0;
  const [channels, samples, said] = [low(bytes, at + 2, 2), low(bytes, at + 4, 4), low(bytes, at + 8, 4)];
  const [block, bits] = [low(bytes, at + 12, 2), low(bytes, at + 14, 2)];
  return Math.min(said, samples * block, (samples * channels * bits) / 8);
}

/** Behind its tag a frame begins. One whose rate is not said (`free`) may be of any length. */
function mp3Rate(bytes: string): typeof mp3Bytes | undefined {
  const isTagged = bytes.startsWith('ID3');
  const tag = [6, 7, 8, 9].reduce((size, at) => size * 128 + (bytes.charCodeAt(at) & 127), 0);
  const at = isTagged ? 10 + tag : 0;
  const isFrame = bytes.charCodeAt(at) === 0xff && (bytes.charCodeAt(at + 1) & 0xe6) === 0xe2;
  return isFrame && bytes.charCodeAt(at + 2) >= 16 ? mp3Bytes : undefined;
}
