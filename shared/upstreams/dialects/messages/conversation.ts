/**
 * Converts messages to `system` and alternating turns, a user's first. Only appends: the converted conversation stays
 * the same when messages are added, so that caches and thinking that is bound to its prefix stay valid.
 */
import type {
  CarriedItems,
  ChatMessage,
  ChatToolCall,
  ChatContentPart,
} from '../../../wire/canonical-call.ts';
import {
  asRecord,
  isRecord,
  parseJson,
  textIn,
  unwrapArguments,
  type JsonRecord,
} from '../../../wire/json.ts';
import { mapCallIds, type SentIds } from '../../sent-call-ids.ts';
import { type RequestSettings, CannotCarry } from '../../dialect.ts';
import { continuation } from '../../quirks.ts';
import { imageTypeOf } from '../../request-fields.ts';
import { isThinkingBlock } from './thinking.ts';
import { stretchesOf, type StatePart } from '../../../wire/turn-state.ts';

export interface MessagesTurn {
  /** `system`: added by an operator in the middle of a conversation. */
  role: 'user' | 'assistant' | 'system';
  content: JsonRecord[];
}

export interface MessagesConversation {
  system: JsonRecord[];
  turns: MessagesTurn[];
}

const isSystem = ({ role }: ChatMessage): boolean => role === 'system' || role === 'developer';

/**
 * Throws CannotCarry for content that has no form here.
 * @param added content of the system's turns, by the message that it follows; they stand between a user's turn and the
 * answer
 */
export function buildConversation(
  messages: readonly ChatMessage[],
  settings: RequestSettings,
  added: CarriedItems['after'] = new Map(),
): MessagesConversation {
  const firstTurn = messages.findIndex((message) => !isSystem(message));
  const leading = messages.slice(0, firstTurn < 0 ? messages.length : firstTurn);
  const system = leading.flatMap((message, index) =>
    keepMessageBreakpoint(convertContent(message.content, `messages[${index}]`), message),
  );
  const form = settings.quirks.callIdForm === 'alnum9' ? 'alnum9' : 'word64';
  const ids = mapCallIds(messages, { callIds: settings.callIds, form });
  const turns: MessagesTurn[] = [];
  const add = (role: MessagesTurn['role'], blocks: readonly JsonRecord[]): void => {
    let last = turns.at(-1);
    if (blocks.length > 0 && last?.role !== role) turns.push((last = { role, content: [] }));
    for (const block of blocks) last?.content.push(block);
  };
  const endWithUser = (): void => {
    if (turns.at(-1)?.role !== 'user') add('user', convertText(continuation));
  };
  /** Content of the next system turn. */
  const systemContent: JsonRecord[] = [];
  for (const [offset, message] of messages.slice(leading.length).entries()) {
    const path = `messages[${leading.length + offset}]`;
    if (message.role !== 'assistant') add('user', convertUserMessage(message, path, ids));
    else {
      const state = settings.omissions.has('state') ? undefined : settings.states.get(message);
      const content = convertAssistantMessage(message, path, ids, state);
      // Two assistant turns in a row are two answers. An answer at the end is not a beginning to continue: most models
      // refuse that, and clients of Chat Completions do not mean it. An empty answer changes nothing.
      endWithUser();
      if (content.length > 0) add('system', systemContent.splice(0));
      add('assistant', content);
    }
    for (const one of added.get(message) ?? []) systemContent.push(one);
  }
  endWithUser();
  add('system', systemContent);
  return { system, turns: turns.map(putResultsFirst) };
}

/** The vendor wants results of tools before everything else. */
function putResultsFirst({ role, content }: MessagesTurn): MessagesTurn {
  const results = content.filter(isResult);
  const others = results.length > 0 ? content.filter((block) => !isResult(block)) : content;
  return { role, content: [...results, ...others] };
}

const isResult = ({ type }: JsonRecord): boolean => type === 'tool_result';

function convertUserMessage(message: ChatMessage, path: string, ids: SentIds): JsonRecord[] {
  const content = convertContent(message.content, path);
  if (message.role === 'tool') {
    const result = { type: 'tool_result', tool_use_id: ids.result(message) };
    return [{ ...result, ...(content.length > 0 && { content }), ...cacheControlOf(message) }];
  }
  // At the front it would change the prefix of all turns before it.
  const blocks = isSystem(message) ? content.map(wrapInstruction) : content;
  return keepMessageBreakpoint(blocks, message);
}

const wrapInstruction = (block: JsonRecord): JsonRecord =>
  block['type'] === 'text'
    ? { ...block, text: `<system_instruction>\n${String(block['text'])}\n</system_instruction>` }
    : block;

/**
 * Sends thinking unchanged, at its position among text and calls, or before both if the client changed the text. Text
 * and calls that the layout does not name follow. `path`: of the message in the client's request. `state`: came with
 * the turn and may be sent to this upstream.
 */
function convertAssistantMessage(
  message: ChatMessage,
  path: string,
  sent: SentIds,
  state: readonly StatePart[] | undefined,
): JsonRecord[] {
  const ids = sent.calls(message);
  const calls = (message.tool_calls ?? []).map((call, index) => callBlock(call, ids[index] ?? ''));
  const text = textOf(message, path);
  const blocks = state ? rebuildTurn(state, text, calls) : [...convertText(text), ...calls];
  return keepMessageBreakpoint(keepContentBreakpoint(blocks, message), message);
}

function rebuildTurn(state: readonly StatePart[], text: string, calls: readonly JsonRecord[]): JsonRecord[] {
  const layoutCalls = state.flatMap((part) => ('call' in part ? [part.call] : []));
  const isOfCalls =
    new Set(layoutCalls).size === layoutCalls.length && layoutCalls.every((index) => index < calls.length);
  const stretches = isOfCalls ? stretchesOf(text, state) : undefined;
  if (!stretches) {
    const thinkingBlocks = state.flatMap((part) => ('opaque' in part ? filterThinking(part.opaque) : []));
    return [...thinkingBlocks, ...convertText(text), ...calls];
  }
  const blocks = state.flatMap((part) => {
    if ('opaque' in part) return filterThinking(part.opaque);
    if ('call' in part) return calls.slice(part.call, part.call + 1);
    return convertText(stretches.shift() ?? '');
  });
  const otherCalls = calls.filter((_, index) => !layoutCalls.includes(index));
  return [...blocks, ...convertText(stretches.join('')), ...otherCalls];
}

/** Only thinking is opaque here; anything else comes from a damaged store. */
const filterThinking = (block: JsonRecord): JsonRecord[] => (isThinkingBlock(block) ? [block] : []);

function textOf({ content, ...message }: ChatMessage, path: string): string {
  if (typeof content === 'string' && content !== '') return content;
  const contentParts = Array.isArray(content) ? content : [];
  const texts = contentParts.map((part, index) => {
    const text = part.type === 'refusal' ? part['refusal'] : part.text;
    if (typeof text === 'string' && (part.type === 'text' || part.type === 'refusal')) return text;
    const type = `${path}.content[${index}].type`;
    throw new CannotCarry(type, `An assistant's content of type ${part.type} cannot be sent to this model.`);
  });
  const joined = texts.join('');
  return joined === '' && typeof message['refusal'] === 'string' ? message['refusal'] : joined;
}

/** The content parts become one text, so a breakpoint on one of them moves to the last block of text. */
function keepContentBreakpoint(blocks: JsonRecord[], { content }: ChatMessage): JsonRecord[] {
  const contentParts = Array.isArray(content) ? content : [];
  const markedPart = contentParts.findLast((part) => isRecord(asRecord(part)['cache_control']));
  const last = blocks.findLastIndex(({ type }) => type === 'text');
  if (!markedPart || last < 0) return blocks;
  return blocks.map((block, index) => (index === last ? { ...block, ...cacheControlOf(markedPart) } : block));
}

function callBlock(call: ChatToolCall, id: string): JsonRecord {
  const custom = asRecord(call['custom']);
  const isCustom = call.type === 'custom' && typeof custom['name'] === 'string';
  const name = isCustom ? custom['name'] : (call.function?.name ?? '');
  const input = isCustom ? { input: custom['input'] ?? '' } : inputOf(call.function?.arguments ?? '');
  return { type: 'tool_use', id, name, input };
}

/** The vendor accepts only objects. Other arguments, such as cut ones, are kept as text. */
function inputOf(text: string): JsonRecord {
  const value = parseJson(unwrapArguments(text));
  return isRecord(value) ? value : { input: value ?? text };
}

// Content parts: text, images, documents.

/** Returns the client's cache breakpoint to spread, or nothing. */
export function cacheControlOf(source: unknown): { cache_control?: JsonRecord } {
  const control = asRecord(source)['cache_control'];
  if (!isRecord(control)) return {};
  const { ttl } = control;
  return { cache_control: { type: 'ephemeral', ...(typeof ttl === 'string' && { ttl }) } };
}

/** The vendor refuses blocks without text. */
const convertText = (text: string): JsonRecord[] => (text.trim() === '' ? [] : [{ type: 'text', text }]);

/** A breakpoint on a message moves to its last block. */
function keepMessageBreakpoint(blocks: JsonRecord[], message: ChatMessage): JsonRecord[] {
  const cache = cacheControlOf(message);
  const last = blocks.at(-1);
  return last && cache.cache_control ? [...blocks.slice(0, -1), { ...last, ...cache }] : blocks;
}

/** Throws CannotCarry for unsupported content. `path`: the message in the client's request. */
function convertContent(content: ChatMessage['content'], path: string): JsonRecord[] {
  if (typeof content === 'string') return convertText(content);
  return (content ?? []).flatMap((part, index) => {
    const cache = cacheControlOf(part);
    return convertContentPart(part, `${path}.content[${index}]`).map((block) => Object.assign(block, cache));
  });
}

function convertContentPart(part: ChatContentPart, path: string): JsonRecord[] {
  if (part.type === 'text') return convertText(part.text ?? '');
  if (part.type === 'refusal') return convertText(textIn(part['refusal']));
  if (part.type === 'image_url')
    return [{ type: 'image', source: readImageSource(part.image_url?.url ?? '', path) }];
  if (part.type === 'file') return [convertFile(asRecord(part['file']), path)];
  throw new CannotCarry(`${path}.type`, `Content of type ${part.type} cannot be sent to this model.`);
}

function readImageSource(url: string, path: string): JsonRecord {
  const data = readDataUrl(url);
  if (data) return convertInlineImage(data, `${path}.image_url.url`);
  if (isUrl(url)) return { type: 'url', url };
  throw new CannotCarry(`${path}.image_url.url`, 'Images must be https URLs or base64 data URLs.');
}

const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

function convertInlineImage({ mediaType, base64 }: DataUrl, path: string): JsonRecord {
  const type = imageTypeOf(base64, mediaType);
  if (imageTypes.has(type)) return { type: 'base64', media_type: type, data: base64 };
  throw new CannotCarry(path, `Images of type ${type.slice(0, 64)} cannot be sent to this model.`);
}

/** Supports PDF and plain text, inline or by URL, and images that were sent as files. */
function convertFile({ file_data: data, file_url: url, filename }: JsonRecord, path: string): JsonRecord {
  const title = typeof filename === 'string' && filename !== '' ? { title: filename } : {};
  const buildDocument = (source: JsonRecord): JsonRecord => ({ type: 'document', source, ...title });
  const refuseFile = (message: string): CannotCarry => new CannotCarry(`${path}.file`, message);
  if (typeof url === 'string' && isUrl(url)) return buildDocument({ type: 'url', url });
  const file = typeof data === 'string' ? (readDataUrl(data) ?? readRawPdf(data)) : undefined;
  if (!file) throw refuseFile('Files must be base64 data URLs or https URLs for this model.');
  const { mediaType, base64 } = file;
  if (mediaType.startsWith('image/'))
    return { type: 'image', source: convertInlineImage(file, `${path}.file`) };
  if (mediaType === 'application/pdf')
    return buildDocument({ type: 'base64', media_type: mediaType, data: base64 });
  const isText = mediaType.startsWith('text/') || mediaType === 'application/json';
  const text = isText ? decodeText(base64) : undefined;
  if (text !== undefined) return buildDocument({ type: 'text', media_type: 'text/plain', data: text });
  throw refuseFile(`Files of type ${mediaType.slice(0, 64)} cannot be sent to this model.`);
}

const isUrl = (text: string): boolean => /^https?:\/\//i.test(text);

interface DataUrl {
  mediaType: string;
  base64: string;
}

function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(',');
  // The head is short, so the pattern never scans the data.
  const head =
    comma < 0 || comma > 200 ? undefined : /^data:([^;,]+)(?:;[^,]*)?;base64$/i.exec(url.slice(0, comma));
  const mediaType = head?.[1]?.toLowerCase();
  return mediaType === undefined ? undefined : { mediaType, base64: url.slice(comma + 1) };
}

/** Some clients send the base64 of a PDF without `data:`; it begins with `%PDF-`. */
const readRawPdf = (text: string): DataUrl | undefined =>
  text.startsWith('JVBERi0') ? { mediaType: 'application/pdf', base64: text } : undefined;

function decodeText(base64: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
