/** What comes beside a text, in the form of Chat Completions: citations, probabilities of tokens, images. */
import type { Annotation, ChatDelta } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';

/** `offset`: where the annotated part begins in the whole visible text. Undefined for annotations of other kinds. */
export function annotationOf(note: unknown, offset: number): Annotation | undefined {
  const { type, url, title, start_index: start, end_index: end, index, ...file } = asRecord(note);
  const range = { start_index: offset + indexOf(start), end_index: offset + indexOf(end) };
  if (type === 'url_citation' && typeof url === 'string')
    return { type, url_citation: { url, title: textOf(title), ...range } };
  const fileId = file['file_id'];
  if (typeof fileId !== 'string') return undefined;
  const named = { file_id: fileId, filename: textOf(file['filename']) };
  if (type === 'file_citation') return { type, ...named, index: indexOf(index) };
  if (type === 'file_path') return { type, file_id: fileId, index: indexOf(index) };
  if (type !== 'container_file_citation') return undefined;
  return { type, container_id: textOf(file['container_id']), ...named, ...range };
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
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
