/** What comes beside a text, in the form of Chat Completions: citations, probabilities of tokens, images. */
import type { ChatDelta, UrlCitation } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';

/** `offset`: where the cited part begins in the whole visible text. Undefined for citations of other kinds. */
export function urlCitation(note: unknown, offset: number): UrlCitation | undefined {
  const { type, url, title, start_index: start, end_index: end } = asRecord(note);
  if (type !== 'url_citation' || typeof url !== 'string') return undefined;
  return {
    type,
    url_citation: {
      url,
      title: typeof title === 'string' ? title : '',
      start_index: offset + indexOf(start),
      end_index: offset + indexOf(end),
    },
  };
}

const indexOf = (value: unknown): number => (typeof value === 'number' && value >= 0 ? Math.floor(value) : 0);

/** The probabilities from the given one on. Null if there are none. */
export function chatLogprobs(list: unknown, from: number): { content: JsonRecord[]; refusal: null } | null {
  const entries = Array.isArray(list) ? list.slice(from).filter(isRecord) : [];
  if (entries.length === 0) return null;
  const content = entries.map((entry) => {
    const { top_logprobs: top } = entry;
    const likeliest = Array.isArray(top) ? top.filter(isRecord).map(probability) : [];
    return Object.assign(probability(entry), { top_logprobs: likeliest });
  });
  return { content, refusal: null };
}

const probability = ({ token, logprob, bytes }: JsonRecord): JsonRecord => ({
  token: typeof token === 'string' ? token : '',
  logprob: typeof logprob === 'number' ? logprob : 0,
  bytes: Array.isArray(bytes) ? bytes : null,
});

/** A finished image, as a data URL. */
export function imageDelta({ result, output_format: format }: JsonRecord): ChatDelta | undefined {
  if (typeof result !== 'string' || result === '') return undefined;
  const kind = format === 'jpeg' || format === 'webp' ? format : 'png';
  return { images: [{ type: 'image_url', image_url: { url: `data:image/${kind};base64,${result}` } }] };
}
