/**
 * Converts the conversation of a Messages request to chat messages, for upstreams of other forms and for what the relay counts and
 * checks. Only appends: what a turn has become stays as it is when turns are added. Must never refuse a block that the vendor
 * may know: what other forms cannot hold is left out by name (`lost`), or is only for its own form (`only`).
 */
import { sealPrefix } from '../../wire/ids.ts';
import {
  type ChatContentPart,
  type ChatMessage,
  type ChatToolCall,
  isEmptyText,
  joinTexts,
  type NativeCall,
} from '../../wire/canonical-call.ts';
import {
  asRecord,
  isRecord,
  jsonText,
  listIn,
  recordsIn,
  textIn,
  unwrapArguments,
  type JsonRecord,
} from '../../wire/json.ts';
import type { SealedState } from '../endpoint.ts';
import type { MessagesRequest, ToolNames } from './request.ts';

interface Conversation {
  messages: ChatMessage[];
  sealed: Map<ChatMessage, SealedState>;
  /** Names of blocks that upstreams of other forms miss. */
  lost: Set<string>;
  /** Blocks that no other form can hold and that must not be left out. */
  only: NativeCall['only'];
  /** The blocks that no chat message holds, for what counts the input. */
  unknown: JsonRecord[];
  known: ReadonlySet<ChatMessage>;
}

export function conversationOf({ system, messages }: MessagesRequest, names: ToolNames): Conversation {
  const reader = new ConversationReader(names);
  const instructions = reader.instructions(system, 'system');
  const read = messages.flatMap(({ role, content }, i) => {
    const at = `messages[${i}].content`;
    if (role === 'system') return reader.instructions(content, at);
    return role === 'user' ? reader.user(content, at) : reader.assistant(content, at);
  });
  const all = [...instructions, ...read];
  const { sealed, lost, only, unknown } = reader;
  return { messages: all, sealed, lost, only, unknown, known: new Set(all) };
}

class ConversationReader {
  readonly sealed = new Map<ChatMessage, SealedState>();
  readonly lost = new Set<string>();
  readonly unknown: JsonRecord[] = [];
  only: NativeCall['only'];
  readonly #names: ToolNames;

  constructor(names: ToolNames) {
    this.#names = names;
  }

  instructions(content: MessagesRequest['system'], at: string): ChatMessage[] {
    if (typeof content === 'string') return content === '' ? [] : [{ role: 'system', content }];
    const parts = this.#parts(content, at);
    return parts.length > 0 ? [{ role: 'system', content: parts }] : [];
  }

  /** Results of tools become messages of their own, in their order, before what else the user says. */
  user(content: string | readonly JsonRecord[], at: string): ChatMessage[] {
    if (typeof content === 'string') return [{ role: 'user', content }];
    const results = content.flatMap((block, i): ChatMessage[] =>
      block['type'] === 'tool_result' ? [this.#result(block, `${at}[${i}].content`)] : [],
    );
    const parts = this.#parts(content, at);
    if (!parts.every(isEmptyText) || results.length === 0) results.push({ role: 'user', content: parts });
    return results;
  }

  #result({ tool_use_id: id, content, is_error: isError }: JsonRecord, at: string): ChatMessage {
    const parts = typeof content === 'string' ? content : this.#parts(listIn(content), at);
    const said =
      typeof parts !== 'string' && parts.every(({ type }) => type === 'text')
        ? joinTexts(parts, '\n\n')
        : parts;
    return {
      role: 'tool',
      tool_call_id: textIn(id),
      content: isError === true ? markFailed(said) : said,
    };
  }

  /** The text of a turn is one, however many blocks it has: its state names the stretches. */
  assistant(content: string | readonly JsonRecord[], at: string): ChatMessage[] {
    if (typeof content === 'string') return [{ role: 'assistant', content }];
    const calls: ChatToolCall[] = [];
    let text = '';
    let seal: SealedState | undefined;
    for (const [i, block] of content.entries()) {
      const { type } = block;
      if (type === 'text') text += textIn(block['text']);
      else if (type === 'tool_use') calls.push(this.#call(block));
      else if (type === 'thinking' || type === 'redacted_thinking') {
        const field = type === 'thinking' ? 'signature' : 'data';
        const state = textIn(block[field]);
        // The last one holds the state of the whole turn.
        if (state === sealPrefix) continue;
        if (state.startsWith(sealPrefix))
          seal = { text: state, itemId: undefined, param: `${at}[${i}].${field}` };
        else {
          this.unknown.push(block);
          if (state !== '') this.lost.add('reasoning');
        }
      } else this.#lose(block);
    }
    const message: ChatMessage = {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...(calls.length > 0 && { tool_calls: calls }),
    };
    if (seal) this.sealed.set(message, seal);
    return [message];
  }

  #call({ id, name, input }: JsonRecord): ChatToolCall {
    const given = isRecord(input) ? JSON.stringify(input) : unwrapArguments(jsonText(input));
    const called = { name: this.#names.shortenName(textIn(name)), arguments: given };
    return { id: textIn(id), type: 'function', function: called };
  }

  /** Blocks of the vendor's own tools in an earlier answer. */
  #lose(block: JsonRecord): void {
    this.unknown.push(block);
    this.lost.add(nameOf(block));
  }

  #parts(blocks: readonly unknown[] | null | undefined, at: string): ChatContentPart[] {
    return (blocks ?? []).flatMap((one, i) => {
      const block = asRecord(one);
      if (block['type'] === 'tool_result') return [];
      const parts = partsOf(block);
      if (parts) return parts;
      this.unknown.push(block);
      const param = `${at}[${i}].type`;
      const message = `Content of type ${nameOf(block)} can only be sent to models with the Messages API.`;
      this.only ??= { param, message };
      return [];
    });
  }
}

const nameOf = ({ type }: JsonRecord): string => textIn(type).slice(0, 64);

/** Other forms have no flag for it, and a model reads that a tool failed as it reads its result. */
function markFailed(content: string | ChatContentPart[]): string | ChatContentPart[] {
  const mark = 'Error: ';
  if (typeof content !== 'string') return [{ type: 'text', text: mark.trim() }, ...content];
  return /^\W{0,3}error/i.test(content) ? content : mark + content;
}

function partsOf(block: JsonRecord): ChatContentPart[] | undefined {
  const source = asRecord(block['source']);
  switch (block['type']) {
    case 'text':
      return [{ type: 'text', text: textIn(block['text']) }];
    case 'image': {
      const url = source['type'] === 'url' ? textIn(source['url']) : dataUrl(source);
      return url === undefined ? undefined : [{ type: 'image_url', image_url: { url } }];
    }
    case 'document':
      return readDocument(block, source);
    case 'search_result':
      return [{ type: 'text', text: searchResult(block) }];
    // A search of the client's own tools. What it found is among the tools from then on.
    case 'tool_reference':
      return [{ type: 'text', text: `Found the tool ${textIn(block['tool_name'])}.` }];
    default:
      return undefined;
  }
}

function dataUrl({ type, media_type: mediaType, data }: JsonRecord): string | undefined {
  if (type !== 'base64' || typeof data !== 'string') return undefined;
  return `data:${textIn(mediaType)};base64,${data}`;
}

function readDocument({ title, context }: JsonRecord, source: JsonRecord): ChatContentPart[] | undefined {
  const about = [title, context].filter((each): each is string => typeof each === 'string' && each !== '');
  const toTextPart = (text: string): ChatContentPart[] => [
    { type: 'text', text: [...about, text].join('\n\n') },
  ];
  const before = typeof context === 'string' && context !== '' ? [{ type: 'text', text: context }] : [];
  const named = { filename: typeof title === 'string' && title !== '' ? title : 'document.pdf' };
  switch (source['type']) {
    case 'text':
      return toTextPart(textIn(source['data']));
    case 'content': {
      const { content } = source;
      if (typeof content === 'string') return toTextPart(content);
      const parts = recordsIn(content).map(partsOf);
      return parts.every((each) => each !== undefined) ? [...before, ...parts.flat()] : undefined;
    }
    case 'url':
      return [...before, { type: 'file', file: { ...named, file_url: textIn(source['url']) } }];
    default: {
      const data = dataUrl(source);
      return data === undefined
        ? undefined
        : [...before, { type: 'file', file: { ...named, file_data: data } }];
    }
  }
}

const searchResult = ({ title, source, content }: JsonRecord): string =>
  [textIn(title), textIn(source), ...recordsIn(content).map(({ text }) => textIn(text))]
    .filter(Boolean)
    .join('\n');
