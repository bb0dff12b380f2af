export interface PictureSize {
  width: number;
  height: number;
}

/** How much of a picture is decoded. The size stands in the first bytes, but in a JPEG after what a camera adds. */
const encodedLengthMax = 400_000;

/** The size of a picture in a data URL, from its header. Undefined: unknown. */
export function pictureSize(url: string): PictureSize | undefined {
  const start = /^data:[^,]{0,200};base64,/i.exec(url)?.[0].length;
  if (start === undefined) return undefined;
  const encoded = url.slice(start, start + encodedLengthMax);
  const bytes = bytesOf(encoded.slice(0, encoded.length - (encoded.length % 4)));
  const size = bytes && (pngSize(bytes) ?? gifSize(bytes) ?? webpSize(bytes) ?? jpegSize(bytes));
  return size && size.width > 0 && size.height > 0 ? size : undefined;
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
  if (!begins(bytes, '\u0089PNG') || bytes.byteLength < 24) return undefined;
  return { width: bytes.getUint32(16), height: bytes.getUint32(20) };
}

function gifSize(bytes: DataView): PictureSize | undefined {
  if (!begins(bytes, 'GIF8') || bytes.byteLength < 10) return undefined;
  return { width: bytes.getUint16(6, true), height: bytes.getUint16(8, true) };
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

/** Walks the segments up to the first frame header, which has the size. */
function jpegSize(bytes: DataView): PictureSize | undefined {
  if (!begins(bytes, '\u00ff\u00d8')) return undefined;
  for (let at = 2; at + 9 < bytes.byteLength;) {
    const marker = bytes.getUint8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: bytes.getUint16(at + 7), height: bytes.getUint16(at + 5) };
    at += 2 + bytes.getUint16(at + 2);
  }
  return undefined;
}
