export interface PictureSize {
  width: number;
  height: number;
}

/** How much of a picture is decoded. The size stands in the first bytes, but in a JPEG after what a camera adds. */
const encodedLengthMax = 400_000;

/** How pictures of all usual kinds begin: the bytes, and where. */
const beginnings: readonly (readonly [text: string, at: number])[] = [
  ['\u0089PNG', 0],
  ['GIF8', 0],
  ['WEBP', 8],
  ['\u00ff\u00d8\u00ff', 0],
  ['BM', 0],
  ['II*\0', 0],
  ['MM\0*', 0],
  ...['heic', 'heix', 'hevc', 'heim', 'heis', 'mif1', 'msf1', 'avif', 'avis'].map(
    (brand) => [`ftyp${brand}`, 4] as const,
  ),
];

/** Whether the bytes of a data URL are those of a picture, whatever it says. */
export function isPicture(url: string): boolean {
  const bytes = bytesIn(url, 64);
  return bytes !== undefined && beginnings.some(([text, at]) => begins(bytes, text, at));
}

/** The size of a picture in a data URL, from its header. Undefined: unknown. */
export function pictureSize(url: string): PictureSize | undefined {
  const bytes = bytesIn(url, encodedLengthMax);
  const size = bytes && (pngSize(bytes) ?? gifSize(bytes) ?? webpSize(bytes) ?? jpegSize(bytes));
  return size && size.width > 0 && size.height > 0 ? size : undefined;
}

/** The first bytes of a data URL. */
function bytesIn(url: string, encodedLength: number): DataView | undefined {
  const start = /^data:[^,]{0,300};base64,/i.exec(url)?.[0].length;
  if (start === undefined) return undefined;
  const encoded = url.slice(start, start + encodedLength).replace(/\s+/g, '');
  return bytesOf(encoded.slice(0, encoded.length - (encoded.length % 4)));
}

function bytesOf(encoded: string): DataView | undefined {
  try {
    const text = atob(encoded);
    return new DataView(Uint8Array.from(text, (character) => character.charCodeAt(0)).buffer);
  } catch {
    return undefined;
  }
}

const begins = (bytes: DataView, text: string, at = 0): boolean =>
  bytes.byteLength >= at + text.length &&
  Array.from(text).every((character, index) => bytes.getUint8(at + index) === character.charCodeAt(0));

function pngSize(bytes: DataView): PictureSize | undefined {
  if (!begins(bytes, '\u0089PNG') || !begins(bytes, 'IHDR', 12) || bytes.byteLength < 24) return undefined;
  return { width: bytes.getUint32(16), height: bytes.getUint32(20) };
}

/** A first frame beyond the screen makes the picture larger. */
function gifSize(bytes: DataView): PictureSize | undefined {
  if (!begins(bytes, 'GIF8')) return undefined;
  const byte = (at: number): number => (at < bytes.byteLength ? bytes.getUint8(at) : 0);
  const two = (at: number): number => byte(at) + byte(at + 1) * 256;
  const table = byte(10);
  let at = 13 + (table & 0x80 ? 3 * 2 ** ((table & 7) + 1) : 0);
  while (byte(at) === 0x21) {
    at += 2;
    while (byte(at) > 0) at += byte(at) + 1;
    at += 1;
  }
  if (byte(at) !== 0x2c) return undefined;
  return {
    width: Math.max(two(6), two(at + 1) + two(at + 5)),
    height: Math.max(two(8), two(at + 3) + two(at + 7)),
  };
}

/** Three forms: lossy, lossless, extended. */
function webpSize(bytes: DataView): PictureSize | undefined {
  if (!begins(bytes, 'RIFF') || !begins(bytes, 'WEBP', 8) || bytes.byteLength < 30) return undefined;
  if (begins(bytes, 'VP8 ', 12))
    return { width: bytes.getUint16(26, true) & 0x3fff, height: bytes.getUint16(28, true) & 0x3fff };
  if (begins(bytes, 'VP8L', 12)) {
    const bits = bytes.getUint32(21, true);
    return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  const threeBytes = (at: number): number => bytes.getUint16(at, true) + bytes.getUint8(at + 2) * 0x10000;
  return begins(bytes, 'VP8X', 12) ? { width: threeBytes(24) + 1, height: threeBytes(27) + 1 } : undefined;
}

/** Walks the segments up to the picture's data. Of several frame headers the largest counts. */
function jpegSize(bytes: DataView): PictureSize | undefined {
  if (!begins(bytes, '\u00ff\u00d8')) return undefined;
  const size = { width: 0, height: 0 };
  for (let at = 2; at + 9 < bytes.byteLength;) {
    const marker = bytes.getUint8(at + 1);
    // Decoders skip what is no marker. Any number of fill bytes may stand before one.
    if (bytes.getUint8(at) !== 0xff || marker === 0xff || marker === 0) at += 1;
    else if (marker === 0xda) return size;
    // Markers without a segment.
    else if (marker === 1 || (marker >= 0xd0 && marker <= 0xd8)) at += 2;
    else {
      if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
        size.width = Math.max(size.width, bytes.getUint16(at + 7));
        size.height = Math.max(size.height, bytes.getUint16(at + 5));
      }
      at += 2 + Math.max(2, bytes.getUint16(at + 2));
    }
  }
  return undefined;
}
