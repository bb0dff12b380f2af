import type { ChatContentPart } from '../../wire/chat-request.ts';
import { asRecord } from '../../wire/json-record.ts';
import { pictureSize } from './picture-size.ts';
import { pictureTokens, type MediaTokens } from './picture-tokens.ts';

/** Undefined: nobody knows how many tokens the part has. */
export type MediaEstimator = (part: ChatContentPart) => MediaTokens | undefined;

/** A page costs its text and its picture: vendors name 1,500 to 3,000 tokens and one picture. */
const perPage: MediaTokens = { above: 4_600, unbiased: 2_000 };
/** The most pages that vendors read of a file; of a file that only they can open, this many are assumed. */
const pagesMax = 600;
const unseenPages = 100;
/** A page takes at least as many bytes, compressed. Only for files whose page tree is compressed. */
const pageBytesMin = 1_024;
/** Vendors count 10 to 32 tokens for a second. */
const perSecond: MediaTokens = { above: 32, unbiased: 10 };
/** The fewest bytes that a second of sound takes, and the usual ones. */
const soundBytes = new Map([
  ['wav', { fewest: 8_000, usual: 48_000 }],
  ['mp3', { fewest: 1_000, usual: 8_000 }],
]);

/** `imageTokens`: what the billing rule says a picture has. Undefined: the vendors' formulas. */
export function mediaEstimator(imageTokens: number | undefined): MediaEstimator {
  return (part) => {
    if (part.type === 'image_url') {
      if (imageTokens !== undefined) return { above: imageTokens, unbiased: imageTokens };
      return pictureTokens(pictureSize(part.image_url?.url ?? ''), part.image_url?.detail ?? undefined);
    }
    if (part.type === 'file' && part.file) return fileTokens(part.file);
    if (part.type === 'input_audio') return soundTokens(asRecord(part['input_audio']));
    // What the assistant said earlier: its text is counted like any other.
    return part.type === 'refusal'
      ? { above: lengthOf(part['refusal']), unbiased: lengthOf(part['refusal']) / 4 }
      : undefined;
  };
}

const lengthOf = (text: unknown): number => (typeof text === 'string' ? text.length : 0);

/** The bytes of base64, in a data URL or alone. */
const bytesOf = (data: string): number => ((data.length - data.indexOf(',') - 1) * 3) / 4;

function fileTokens({ file_data: data }: NonNullable<ChatContentPart['file']>): MediaTokens {
  const pages = typeof data === 'string' ? pagesOf(data) : unseenPages;
  return { above: pages * perPage.above, unbiased: pages * perPage.unbiased };
}

/** A file that is no PDF counts as if each of its bytes were text. */
function pagesOf(data: string): number {
  const bytes = bytesOf(data);
  const encoded = data.slice(data.indexOf(',') + 1);
  if (!encoded.startsWith('JVBERi0')) return Math.max(1, Math.ceil(bytes / perPage.unbiased));
  const text = decoded(encoded);
  const named = [...text.matchAll(/\/Type\s*\/Page(?![a-zA-Z])/g)].length;
  const counted = [...text.matchAll(/\/Count\s+(\d{1,6})/g)].map(([, count]) => Number(count));
  const pages = Math.max(named, ...counted);
  return Math.min(pagesMax, pages > 0 ? pages : Math.ceil(bytes / pageBytesMin));
}

function decoded(encoded: string): string {
  try {
    return atob(encoded);
  } catch {
    return '';
  }
}

function soundTokens({ data, format }: Record<string, unknown>): MediaTokens | undefined {
  const rate = soundBytes.get(String(format));
  if (typeof data !== 'string' || !rate) return undefined;
  const bytes = bytesOf(data);
  return {
    above: Math.ceil(bytes / rate.fewest) * perSecond.above,
    unbiased: (bytes / rate.usual) * perSecond.unbiased,
  };
}
