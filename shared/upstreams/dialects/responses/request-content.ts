/** Converts the content of canonical messages to the content parts of Responses. */
import type { ChatContentPart, ChatMessage } from '../../../wire/chat-request.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import { CannotCarry } from '../../dialect.ts';

type Content = ChatMessage['content'];

/** What a model reads: text, images and files. `path`: of the content, for errors. Throws CannotCarry. */
export function inputParts(content: Content, path: string): JsonRecord[] {
  if (typeof content === 'string') return [{ type: 'input_text', text: content }];
  return (content ?? []).map((part, i) => {
    const { prompt_cache_breakpoint: breakpoint } = part;
    const input = inputPart(part, `${path}[${i}]`);
    return isRecord(breakpoint) ? Object.assign(input, { prompt_cache_breakpoint: breakpoint }) : input;
  });
}

/** The output of a tool: text, or parts where it is more than one text. Throws CannotCarry. */
export function toolOutput(content: Content, path: string): string | JsonRecord[] {
  if (typeof content === 'string') return content;
  const parts = inputParts(content, path);
  const [first, ...more] = parts;
  if (!first) return '';
  return more.length === 0 && typeof first['text'] === 'string' ? first['text'] : parts;
}

function inputPart(part: ChatContentPart, path: string): JsonRecord {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text ?? '' };
    case 'refusal':
      return { type: 'input_text', text: typeof part['refusal'] === 'string' ? part['refusal'] : '' };
    case 'image_url':
      return imagePart(part);
    case 'file':
      return filePart(asRecord(part['file']), path);
    default:
      throw new CannotCarry(path, `Parts of type '${part.type.slice(0, 60)}' cannot be sent to this model.`);
  }
}

const imagePart = ({ image_url: image }: ChatContentPart): JsonRecord => ({
  type: 'input_image',
  image_url: image?.url ?? '',
  detail: image?.detail ?? 'auto',
});

/** A file by its data, its address or its id. Data needs a name, by which the vendor tells the kind of file. */
function filePart(
  { file_data: data, file_url: url, file_id: id, filename }: JsonRecord,
  path: string,
): JsonRecord {
  const named = typeof filename === 'string' && filename !== '' ? { filename } : {};
  if (typeof data === 'string')
    return {
      type: 'input_file',
      filename: /^data:application\/pdf/i.test(data) ? 'file.pdf' : 'file',
      ...named,
      file_data: data,
    };
  if (typeof url === 'string') return { type: 'input_file', file_url: url };
  if (typeof id === 'string') return { type: 'input_file', file_id: id };
  throw new CannotCarry(path, 'A file needs its data or its URL.');
}

/** The texts of an assistant message, as one text: where its parts began is not part of the turn. */
export function spokenText(content: Content): string {
  if (typeof content === 'string') return content;
  return (content ?? []).map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('');
}

/** The refusal of an assistant message, in its field or in its parts. */
export function refusalText({ content, ...message }: ChatMessage): string {
  if (typeof message['refusal'] === 'string') return message['refusal'];
  const parts = typeof content === 'string' ? [] : (content ?? []);
  return parts
    .map(({ type, refusal }) => (type === 'refusal' && typeof refusal === 'string' ? refusal : ''))
    .join('');
}
