/**
 * Items of histories that no message can hold: Codex's own, and those of tools that ran elsewhere. They go up in their place
 * to upstreams of the same form. Elsewhere they are read as far as they mean something. A type that is not in the table is
 * refused, because it could hold what the model must see.
 */
import type { ChatMessage, ChatTool, ChatToolCall, CarriedItems } from '../../wire/canonical-call.ts';
import { asRecord, recordsIn, type JsonRecord } from '../../wire/json.ts';
import type { PlacedItem } from '../endpoint.ts';

/** By type, the fields that go up. Others could name what is the operator's, or have a price. */
const carriedFields: Record<string, readonly string[]> = {
  additional_tools: ['role'],
  agent_message: ['author', 'recipient'],
  agent_reasoning: ['text', 'encrypted_content'],
  configuration_update: [],
  mcp_approval_request: ['id', 'server_label', 'name', 'arguments'],
  mcp_approval_response: ['approval_request_id', 'approve', 'reason'],
  mcp_call: ['id', 'server_label', 'name', 'arguments', 'output', 'error', 'status', 'approval_request_id'],
  mcp_list_tools: ['id', 'server_label', 'tools', 'error'],
  tool_search_call: ['call_id', 'execution', 'arguments', 'status'],
  tool_search_output: ['call_id', 'execution', 'status'],
};
export const carriedTypes: readonly string[] = Object.keys(carriedFields);
/** Elsewhere their effect is the same, or there is nothing to miss. */
const missedNowhere = new Set([
  'additional_tools',
  'agent_message',
  'agent_reasoning',
  'configuration_update',
]);

interface ItemsContext {
  first: ChatMessage | undefined;
  tools: ReadonlyMap<ChatTool, JsonRecord>;
  effort: string | undefined;
}

export class ItemsFound {
  readonly #after = new Map<ChatMessage | undefined, JsonRecord[]>();
  readonly #instead = new Map<ChatMessage, JsonRecord>();
  readonly #lost = new Set<string>();
  /** The upstream's form of each item. Tools are handled apart. */
  readonly #carried = new Map<JsonRecord, JsonRecord>();
  readonly #asyncCalls = new Set<ChatToolCall>();
  /** The results of such calls, by their item, and those that did not come at once, by what stands in their place. */
  readonly #results = new Map<JsonRecord, ChatMessage>();
  readonly #late = new Map<JsonRecord, ChatMessage>();
  effort: string | undefined;

  /** Notes a call that the model does not wait for. */
  noteAsyncCall(item: JsonRecord, call: ChatToolCall): ChatToolCall {
    if (item['async'] === true) this.#asyncCalls.add(call);
    return call;
  }

  /** Notes the result of such a call. */
  noteAsyncResult(call: ChatToolCall, item: JsonRecord, result: ChatMessage): ChatMessage {
    if (this.#asyncCalls.has(call)) this.#results.set(item, result);
    return result;
  }

  /** The place of such a result, which elsewhere is behind its call. */
  came(item: JsonRecord, before: ChatMessage | undefined): void {
    const result = this.#results.get(item);
    if (!result || result === before) return;
    const place = {};
    this.#late.set(place, result);
    this.#place(place, before);
  }

  /** `before`: the message that the item follows. Returns how the item is read elsewhere; nothing: it is left out. */
  add(item: JsonRecord, before: ChatMessage | undefined): ChatMessage[] {
    const type = String(item['type']);
    const fields = (carriedFields[type] ?? []).filter((field) => (item[field] ?? undefined) !== undefined);
    const carried: JsonRecord = {
      type,
      ...Object.fromEntries(fields.map((field) => [field, item[field]])),
      ...(type === 'agent_message' && { content: readAgentParts(item) }),
      ...(type === 'configuration_update' && updateOf(item)),
    };
    this.#carried.set(item, carried);
    if (!missedNowhere.has(type) || (type === 'configuration_update' && 'text' in carried))
      this.#lost.add(type);
    const { effort } = asRecord(carried['reasoning']);
    if (typeof effort === 'string') this.effort = effort;
    if (type === 'agent_message') return [this.#agentMessage(carried)];
    this.#place(carried, before);
    return [];
  }

  #place(item: JsonRecord, before: ChatMessage | undefined): void {
    const others = this.#after.get(before);
    // A body has room for tens of thousands after one message.
    if (others) others.push(item);
    else this.#after.set(before, [item]);
  }

  items({ first, tools, effort }: ItemsContext): CarriedItems | undefined {
    if (this.#carried.size === 0 && this.#asyncCalls.size === 0) return undefined;
    const leading = this.#after.get(undefined);
    if (first && leading) {
      this.#after.delete(undefined);
      this.#after.set(first, leading);
    }
    const declared = [...tools].flatMap(([tool, item]) => {
      const carried = this.#carried.get(item);
      return carried ? [[tool, carried] as const] : [];
    });
    return {
      after: this.#after,
      instead: this.#instead,
      tools: new Map(declared),
      asyncCalls: this.#asyncCalls,
      late: this.#late,
      effort,
      lost: [...this.#lost],
    };
  }

  /** A message between agents becomes a user's message. */
  #agentMessage(carried: JsonRecord): ChatMessage {
    const { author, recipient, content } = carried;
    const parts = recordsIn(content);
    const texts = parts.flatMap(({ text }) => (typeof text === 'string' ? [text] : []));
    if (texts.length < parts.length) this.#lost.add('agent_message');
    const heading = `Message from ${nameOf(author)} to ${nameOf(recipient)}:`;
    const message: ChatMessage = { role: 'user', content: [heading, ...texts].join('\n') };
    this.#instead.set(message, carried);
    return message;
  }

  /** An item that is read as `message` elsewhere. Returns that. */
  addAs(message: ChatMessage, item: JsonRecord, carried: JsonRecord): ChatMessage {
    this.#carried.set(item, carried);
    this.#instead.set(message, carried);
    return message;
  }
}

/** The items whose tools are declared as those of the request are. */
export const declaresTools = ({ item }: PlacedItem): boolean =>
  (item['type'] === 'additional_tools' || item['type'] === 'tool_search_output') &&
  Array.isArray(item['tools']);

const nameOf = (value: unknown): string =>
  typeof value === 'string' && value !== '' ? value.slice(0, 200) : 'an agent';

const readAgentParts = ({ content }: JsonRecord): JsonRecord[] =>
  recordsIn(typeof content === 'string' ? [{ text: content }] : content).flatMap(readAgentPart);

/** Codex calls a text encrypted that it got from the model as it is, so only what looks encrypted is taken to be. */
function readAgentPart({ text, encrypted_content: encrypted }: JsonRecord): JsonRecord[] {
  if (typeof text === 'string') return [{ type: 'input_text', text }];
  if (typeof encrypted !== 'string') return [];
  return encrypted.startsWith('gAAAA')
    ? [{ type: 'encrypted_content', encrypted_content: encrypted }]
    : [{ type: 'input_text', text: encrypted }];
}

/** A request may set more, which has a price. */
function updateOf({ reasoning, text }: JsonRecord): JsonRecord {
  const { effort } = asRecord(reasoning);
  const { format, verbosity } = asRecord(text);
  return {
    ...(typeof effort === 'string' && effort !== '' && { reasoning: { effort } }),
    ...((format ?? verbosity ?? undefined) !== undefined && { text: { format, verbosity } }),
  };
}
