/** Converts canonical messages to the input items of Responses. A pure function of each message and those before it. */
import type { CarriedItems } from '../../../wire/canonical-call.ts';
import type { ChatMessage, ChatToolCall } from '../../../wire/chat-request.ts';
import { asRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import { sentIds, type SentIds } from '../../calls/sent-ids.ts';
import { wrappedInput } from '../../calls/custom-tools.ts';
import type { RequestSettings } from '../../dialect.ts';
import { inputParts, toolOutput } from './request-content.ts';
import { turnItems } from './request-turn.ts';

export interface InputSettings extends Pick<RequestSettings, 'states' | 'callIds' | 'quirks' | 'without'> {
  /** false: calls of custom tools go up as function calls with one text `input`. */
  customTools: boolean;
  /** What no message holds. Undefined: nothing. */
  carried: CarriedItems | undefined;
  /** The tools that carried items declare, as they go up. */
  itemTools: ReadonlyMap<JsonRecord, readonly JsonRecord[]>;
}

/** Throws CannotCarry. */
export function inputItems(messages: readonly ChatMessage[], settings: InputSettings): JsonRecord[] {
  const input = new InputItems(messages, settings);
  const { carried } = settings;
  const after = (message: ChatMessage | undefined): JsonRecord[] =>
    (carried?.after.get(message) ?? []).flatMap((item) => carriedItem(item, settings));
  const items = messages.flatMap((message, i) => {
    const own = carriedMessage(message, settings) ?? input.itemsOf(message, `messages[${i}].content`);
    return [...own, ...after(message)];
  });
  items.unshift(...after(undefined));
  return settings.quirks.system === 'first' ? withSystemFirst(items) : items;
}

/** An item that only adds tools says nothing without them. */
function carriedItem(item: JsonRecord, { itemTools, without }: InputSettings): JsonRecord[] {
  const tools = itemTools.get(item) ?? [];
  if (item['type'] === 'additional_tools') return tools.length > 0 ? [{ ...item, tools }] : [];
  if (without.has('state') && 'encrypted_content' in item) return [];
  return [item['type'] === 'tool_search_output' ? { ...item, tools } : item];
}

/** The item that a message is here. What is encrypted in it may be another origin's: without it, it is a message. */
function carriedMessage(message: ChatMessage, { carried, without }: InputSettings): JsonRecord[] | undefined {
  const item = carried?.instead.get(message);
  return item && !without.has('state') ? [item] : undefined;
}

/** Phases are no secret of another origin, so they stay where encrypted items are left out. */
function statesOf(
  message: ChatMessage,
  { states, without }: InputSettings,
): readonly StatePart[] | undefined {
  const parts = states.get(message);
  return without.has('state') ? parts?.filter((part) => !('opaque' in part && part.opaque['item'])) : parts;
}

class InputItems {
  readonly #settings: InputSettings;
  readonly #ids: SentIds;
  /** The ids of custom calls so far: their results have an item of their own. */
  readonly #custom = new Set<string>();

  constructor(messages: readonly ChatMessage[], settings: InputSettings) {
    this.#settings = settings;
    this.#ids = sentIds(messages, { callIds: settings.callIds, form: settings.quirks.callIds });
  }

  itemsOf(message: ChatMessage, path: string): JsonRecord[] {
    const { role, content } = message;
    if (role === 'assistant') {
      const parts = statesOf(message, this.#settings);
      const ids = this.#ids.calls(message);
      const callItem = (call: ChatToolCall, index: number): JsonRecord =>
        this.#callItem(call, ids[index] ?? '');
      return turnItems({ message, parts, callItem });
    }
    if (role === 'tool') return [this.#resultItem(message, path)];
    // The endpoint leaves the role `function` only to results without a call.
    return [
      { type: 'message', role: role === 'function' ? 'user' : role, content: inputParts(content, path) },
    ];
  }

  #callItem(call: ChatToolCall, callId: string): JsonRecord {
    const { name, input } = asRecord(call['custom']);
    if (call.type !== 'custom' || typeof name !== 'string') {
      this.#custom.delete(callId);
      const called = call.function ?? { name: '', arguments: '' };
      return {
        type: 'function_call',
        call_id: callId,
        name: called.name,
        arguments: called.arguments || '{}',
      };
    }
    const text = typeof input === 'string' ? input : '';
    if (this.#settings.customTools) {
      this.#custom.add(callId);
      return { type: 'custom_tool_call', call_id: callId, name, input: text };
    }
    return { type: 'function_call', call_id: callId, name, arguments: wrappedInput(text) };
  }

  #resultItem(message: ChatMessage, path: string): JsonRecord {
    const callId = this.#ids.result(message);
    const type = this.#custom.has(callId) ? 'custom_tool_call_output' : 'function_call_output';
    return { type, call_id: callId, output: toolOutput(message.content, path) };
  }
}

/** For upstreams that accept one system message, at the beginning: the texts in their order. */
function withSystemFirst(items: readonly JsonRecord[]): JsonRecord[] {
  const content = items.filter(isSystem).flatMap((item) => item['content'] as JsonRecord[]);
  if (content.length === 0) return [...items];
  return [{ type: 'message', role: 'system', content }, ...items.filter((item) => !isSystem(item))];
}

const isSystem = ({ role }: JsonRecord): boolean => role === 'system' || role === 'developer';
