/**
 * Estimates the tokens of pictures, files and sound. Their bytes decide what they are, not their names, because upstreams look at the
 * bytes too. Content that cannot be read to its end counts for as much as it could contain.
 */
import { windowTokens } from '../../wire/canonical-call.ts';
import { textIn, type JsonRecord } from '../../wire/json.ts';
import { holdsBytes, type FoundMedium } from '../../wire/media-walk.ts';
import { inflatedMax, measurePdf, type Inflate, type PdfSize } from './pdf-size.ts';

export interface MediaTokens {
  above: number;
  unbiased: number;
}

/** Undefined for the picture of another server, or an unknown format. */
type KnownSize = PictureSize | undefined;

/** OpenAI's count at low detail. Others have no detail, so it lowers only the unbiased estimate. */
const lowDetail = 85;
const tile = 512;
const patch = 32;
const patchesMax = 1_536;
/** OpenAI's factor for smaller models. Its smallest ones count more, for which rules have `image_tokens`. */
const patchFactor = 1.62;
/** Anthropic's maximum, before and since the models that take 2,576 pixels. */
const areaTokensMax = 4_784;
const usual: PictureSize = { width: 1_024, height: 1_024 };

/**
 * Takes the largest of the vendors' formulas from above, because a model's name does not say whose formula holds, and OpenAI's tiles
 * unbiased. Sources: OpenAI's and Anthropic's pages on vision, November 2026.
 */
function estimatePicture(size: KnownSize, detail: string | undefined): MediaTokens {
  const unbiased = detail === 'low' ? lowDetail : countTiles(size ?? usual);
  if (!size) return { above: areaTokensMax, unbiased };
  return { above: Math.max(countTiles(size), countPatches(size), countByArea(size)), unbiased };
}

/** 170 for each tile of 512 pixels, after scaling to 2,048 by 2,048 and a short side of 768. */
function countTiles({ width, height }: PictureSize): number {
  const fit = Math.min(1, 2_048 / Math.max(width, height));
  const scale = fit * Math.min(1, 768 / (Math.min(width, height) * fit));
  return lowDetail + 170 * Math.ceil((width * scale) / tile) * Math.ceil((height * scale) / tile);
}

const countPatches = ({ width, height }: PictureSize): number =>
  Math.ceil(Math.min(patchesMax, Math.ceil(width / patch) * Math.ceil(height / patch)) * patchFactor);

const countByArea = ({ width, height }: PictureSize): number =>
  Math.min(areaTokensMax, Math.ceil((width * height) / 750));

export type MediaEstimator = (place: FoundMedium) => MediaTokens;

/** A page costs its text, and its picture of up to 1,600 tokens. */
const pagePicture: MediaTokens = { above: 1_600, unbiased: 1_000 };
/** A character of a page is a token at most. */
const charactersUnbiased = 3;
/** Tokens of a byte of text. */
const perByte: MediaTokens = { above: 2.3, unbiased: 1 };
/** A hundred pages, for content that the relay cannot see. */
const unseenUnbiased = 200_000;
/** No usual compression packs more into a byte. */
const tokensPerPackedByte = 1_100;
/** Vendors count 10 to 32 tokens for a second. */
const perSecond: MediaTokens = { above: 32, unbiased: 10 };
const unseen: MediaTokens = { above: windowTokens, unbiased: unseenUnbiased };

/** Serves one request: reads each file once for all models, and all files together inflate no more than one may. */
export function createMediaReader(inflate: Inflate): (imageTokens: number | undefined) => MediaEstimator {
  const files = new Map<string, MediaTokens>();
  let inflatedLeft = inflatedMax;
  const readPdfSize = (bytes: string): PdfSize | undefined => {
    const { size, inflated } = measurePdf(bytes, inflate, inflatedLeft);
    inflatedLeft -= inflated;
    return size;
  };
  const estimateFileOnce = (data: string): MediaTokens => {
    const known = files.get(data) ?? estimateFile(data, readPdfSize);
    files.set(data, known);
    return known;
  };
  return (imageTokens) => (place) => {
    const { kind, value = '', holder } = place;
    const isSeen = kind !== 'unknown' && holdsBytes(place);
    if (kind === 'picture' && (!isSeen || isPicture(value))) {
      if (imageTokens !== undefined) return { above: imageTokens, unbiased: imageTokens };
      const { detail } = holder as JsonRecord;
      return estimatePicture(isSeen ? readPictureSize(value) : undefined, textIn(detail));
    }
    if (!isSeen) return unseen;
    return kind === 'sound'
      ? estimateSound(value, (holder as JsonRecord)['format'])
      : estimateFileOnce(value);
  };
}

function estimateFile(data: string, readPdfSize: (bytes: string) => PdfSize | undefined): MediaTokens {
  const bytes = decodeDataUrl(data);
  if (bytes === undefined) return unseen;
  // Readers search the first 1,024 bytes.
  if (bytes.slice(0, 1_100).includes('%PDF')) {
    const size = readPdfSize(bytes);
    return size ? estimatePdf(size) : unseen;
  }
  // Control characters mean that the file is compressed or recorded, not text.
  // eslint-disable-next-line no-control-regex
  if (/[\0-\x08\x0e-\x1a\x1c-\x1f]/.test(bytes)) return estimatePacked(bytes.length);
  return { above: Math.ceil(bytes.length * perByte.above), unbiased: bytes.length * perByte.unbiased };
}

const estimatePdf = ({ pages, characters }: PdfSize): MediaTokens => ({
  above: Math.min(windowTokens, pages * pagePicture.above + characters),
  unbiased: Math.min(windowTokens, pages * pagePicture.unbiased + characters / charactersUnbiased),
});

const estimatePacked = (bytes: number): MediaTokens => {
  const above = Math.min(windowTokens, bytes * tokensPerPackedByte);
  return { above, unbiased: Math.min(above, unseenUnbiased) };
};

/** Decodes a data URL or plain base64, one character a byte. Returns undefined if upstreams may read it in several ways. */
function decodeDataUrl(data: string): string | undefined {
  const [head] = /^data:[^,]{0,300},/i.exec(data) ?? [''];
  const written = data.slice(head.length);
  if (head !== '' && !/;base64,$/i.test(head)) return written.includes('%') ? undefined : written;
  const encoded = /\s/.test(written) ? written.replace(/\s+/g, '') : written;
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(encoded)) return undefined;
  return decodeBase64(encoded);
}

function estimateSound(data: string, format: unknown): MediaTokens {
  if (format !== 'wav' && format !== 'mp3') return unseen;
  const bytes = decodeDataUrl(data);
  if (bytes === undefined) return unseen;
  const seconds = estimateSeconds(bytes);
  if (!seconds) return estimatePacked(bytes.length);
  return {
    above: Math.min(windowTokens, Math.ceil(seconds.most) * perSecond.above),
    unbiased: Math.min(windowTokens, seconds.usual * perSecond.unbiased),
  };
}

export interface PictureSize {
  width: number;
  height: number;
}

/** The size is in the first bytes of a picture, but in a JPEG only after what a camera adds. */
const encodedLengthMax = 400_000;

const beginnings =
  /^(\u0089PNG|GIF8|\u00ff\u00d8\u00ff|BM|II\*\0|MM\0\*|.{8}WEBP|.{4}ftyp(hei[cxms]|hevc|mif1|msf1|avi[fs]))/s;

/** The bytes decide, not the URL. */
const isPicture = (url: string): boolean => beginnings.test(decodeStart(url, 64));

export function readPictureSize(url: string): KnownSize {
  const bytes = decodeStart(url, encodedLengthMax);
  const size = readPngSize(bytes) ?? readWebpSize(bytes) ?? readJpegSize(bytes);
  return size && size.width > 0 && size.height > 0 ? size : undefined;
}

function decodeStart(url: string, encodedLength: number): string {
  const start = /^data:[^,]{0,300};base64,/i.exec(url)?.[0].length ?? 0;
  const encoded = url.slice(start, start + encodedLength).replace(/\s+/g, '');
  return decodeBase64(encoded.slice(0, encoded.length - (encoded.length % 4))) ?? '';
}

function decodeBase64(encoded: string): string | undefined {
  try {
    return atob(encoded);
  } catch {
    return undefined;
  }
}

const hasBytesAt = (text: string, bytes: string, at: number): boolean => bytes.startsWith(text, at);

/** Reads numbers of `length` bytes. Missing bytes are zeros. */
const readLittleEndian = (bytes: string, at: number, length: number): number =>
  length === 0 ? 0 : (bytes.charCodeAt(at) || 0) + 256 * readLittleEndian(bytes, at + 1, length - 1);
const readBigEndian = (bytes: string, at: number, length: number): number =>
  length === 0 ? 0 : 256 * readBigEndian(bytes, at, length - 1) + (bytes.charCodeAt(at + length - 1) || 0);

const readPngSize = (bytes: string): KnownSize =>
  hasBytesAt('\u0089PNG', bytes, 0) && hasBytesAt('IHDR', bytes, 12)
    ? { width: readBigEndian(bytes, 16, 4), height: readBigEndian(bytes, 20, 4) }
    : undefined;

/** Lossy, lossless, extended. */
function readWebpSize(bytes: string): KnownSize {
  if (!hasBytesAt('RIFF', bytes, 0) || !hasBytesAt('WEBP', bytes, 8) || bytes.length < 30) return undefined;
  if (hasBytesAt('VP8 ', bytes, 12))
    return {
      width: readLittleEndian(bytes, 26, 2) & 0x3fff,
      height: readLittleEndian(bytes, 28, 2) & 0x3fff,
    };
  if (hasBytesAt('VP8L', bytes, 12)) {
    const bits = readLittleEndian(bytes, 21, 4);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (!hasBytesAt('VP8X', bytes, 12)) return undefined;
  return { width: readLittleEndian(bytes, 24, 3) + 1, height: readLittleEndian(bytes, 27, 3) + 1 };
}

/** Walks the segments up to the picture's data, and takes the largest of several frame headers. */
function readJpegSize(bytes: string): KnownSize {
  if (!hasBytesAt('\u00ff\u00d8', bytes, 0)) return undefined;
  const size = { width: 0, height: 0 };
  for (let at = 2; at + 9 < bytes.length;) {
    const marker = readLittleEndian(bytes, at + 1, 1);
    // Decoders skip everything that is not a marker, and any number of fill bytes before one.
    if (readLittleEndian(bytes, at, 1) !== 0xff || marker === 0xff || marker === 0) at += 1;
    else if (marker === 0xda) return size;
    // Markers without a segment.
    else if (marker === 1 || (marker >= 0xd0 && marker <= 0xd8)) at += 2;
    else {
      if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
        size.width = Math.max(size.width, readBigEndian(bytes, at + 7, 2));
        size.height = Math.max(size.height, readBigEndian(bytes, at + 5, 2));
      }
      at += 2 + Math.max(2, readBigEndian(bytes, at + 2, 2));
    }
  }
  return undefined;
}

/** Bytes of a second of MP3. */
const mp3Bytes = { fewest: 1_000, usual: 8_000 };
/** Integers and floats. Other forms of samples in a WAV are compressed. */
const wholeSamples = new Set([1, 3]);

/** Uses the rate in the recording's header, or the lowest possible. */
function estimateSeconds(bytes: string): { most: number; usual: number } | undefined {
  const rate =
    bytes.startsWith('RIFF') && bytes.slice(8, 12) === 'WAVE' ? readWavRate(bytes) : readMp3Rate(bytes);
  return rate && { most: bytes.length / rate.fewest, usual: bytes.length / rate.usual };
}

/** Reads the bytes of a second from the chunk `fmt `. Takes the lowest of several rates, because decoders differ. */
function readWavRate(bytes: string): { fewest: number; usual: number } | undefined {
  const rates: number[] = [];
  for (let at = 12; at + 24 <= bytes.length && rates.length < 8;) {
    const length = readLittleEndian(bytes, at + 4, 4);
    if (hasBytesAt('fmt ', bytes, at)) rates.push(readFormatRate(bytes, at + 8));
    // Chunks after the sound do not describe it.
    if (hasBytesAt('data', bytes, at)) break;
    at += 8 + length + (length % 2);
  }
  const rate = Math.min(...rates);
  return rates.length > 0 && rate > 0 ? { fewest: rate, usual: rate } : undefined;
}

function readFormatRate(bytes: string, at: number): number {
  const form = readLittleEndian(bytes, at, 2);
  // The extensible form has the code of the samples further on.
  if (!wholeSamples.has(form === 0xfffe ? readLittleEndian(bytes, at + 24, 2) : form)) return 0;
  const [channels, samples, said] = [
    readLittleEndian(bytes, at + 2, 2),
    readLittleEndian(bytes, at + 4, 4),
    readLittleEndian(bytes, at + 8, 4),
  ];
  const [block, bits] = [readLittleEndian(bytes, at + 12, 2), readLittleEndian(bytes, at + 14, 2)];
  return Math.min(said, samples * block, (samples * channels * bits) / 8);
}

/** A frame follows the tag. One with the rate `free` may have any length. */
function readMp3Rate(bytes: string): typeof mp3Bytes | undefined {
  const isTagged = bytes.startsWith('ID3');
  const tag = [6, 7, 8, 9].reduce((size, at) => size * 128 + (bytes.charCodeAt(at) & 127), 0);
  const at = isTagged ? 10 + tag : 0;
  const isFrame = bytes.charCodeAt(at) === 0xff && (bytes.charCodeAt(at + 1) & 0xe6) === 0xe2;
  return isFrame && bytes.charCodeAt(at + 2) >= 16 ? mp3Bytes : undefined;
}
