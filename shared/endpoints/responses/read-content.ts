import type { ChatContentPart, ChatMessage } from '../../wire/chat-request.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { isRecord, type JsonRecord } from '../../wire/json-record.ts';

const textTypes = new Set(['input_text', 'output_text', 'text']);

/** Converts Responses content to chat parts. `param`: its path, such as `input[2].content`. Throws InvalidRequest. */
export function contentParts(content: unknown, param: string): ChatContentPart[] {
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  if (!Array.isArray(content))
    throw new InvalidRequest('invalid_type', param, `'${param}' must be a string or an array of parts.`);
  return content.map((part: unknown, i) => contentPart(part, `${param}[${i}]`));
}

function contentPart(part: unknown, param: string): ChatContentPart {
  const type = isRecord(part) ? part['type'] : undefined;
  if (!isRecord(part) || typeof type !== 'string')
    throw new InvalidRequest('invalid_type', `${param}.type`, `'${param}' must be a part with a type.`);
  if (textTypes.has(type)) return { type: 'text', text: textField(part, 'text', param) };
  if (type === 'refusal') return { type: 'text', text: textField(part, 'refusal', param) };
  if (type === 'input_image') return imagePart(part, param);
  if (type === 'input_file') return filePart(part, param);
  throw new InvalidRequest(
    'unsupported_content_type',
    `${param}.type`,
    `${JSON.stringify(type.slice(0, 60))} parts are not supported here: input_text, output_text, input_image, input_file and refusal are.`,
  );
}

function textField(part: JsonRecord, field: string, param: string): string {
  const text = part[field];
  if (typeof text === 'string') return text;
  throw new InvalidRequest('invalid_type', `${param}.${field}`, `'${param}.${field}' must be a string.`);
}

function imagePart(part: JsonRecord, param: string): ChatContentPart {
  const url = part['image_url'];
  const detail = part['detail'];
  if (typeof url !== 'string' || url === '') throw missing(`${param}.image_url`, 'a URL or a data URL');
  return { type: 'image_url', image_url: { url, ...(typeof detail === 'string' && { detail }) } };
}

function filePart(part: JsonRecord, param: string): ChatContentPart {
  const { file_data: data, file_url: url, filename } = part;
  const name = typeof filename === 'string' && filename !== '' ? { filename } : {};
  if (typeof data === 'string' && data !== '') return { type: 'file', file: { file_data: data, ...name } };
  if (typeof url === 'string' && url !== '') return { type: 'file', file: { file_url: url, ...name } };
  throw missing(`${param}.file_data`, "a data URL, or there must be a 'file_url'");
}

const missing = (param: string, wanted: string): InvalidRequest =>
  new InvalidRequest(
    'missing_required_parameter',
    param,
    `'${param}' must be ${wanted}: the relay keeps no files.`,
  );

/** The texts of the text parts, joined by line feeds. */
const textOfParts = (parts: readonly ChatContentPart[]): string =>
  parts.flatMap((part) => (part.type === 'text' ? [part.text ?? ''] : [])).join('\n');

/**
 * The content of a chat message. Text alone becomes a plain string, because every upstream accepts that;
 * several texts in a user's message stay separate parts.
 */
export function contentOfParts(parts: ChatContentPart[], role = 'assistant'): string | ChatContentPart[] {
  const textOnly = parts.every((part) => part.type === 'text');
  return textOnly && (parts.length < 2 || role !== 'user') ? textOfParts(parts) : parts;
}

/** The content of a chat message as parts. An empty text gives no part. */
export function partsOfContent(content: ChatMessage['content']): ChatContentPart[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return content ?? [];
}
