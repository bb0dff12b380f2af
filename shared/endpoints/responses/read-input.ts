import type { ChatMessage, ChatToolCall } from '../../wire/chat-request.ts';
import type { PlacedItem, SealedState } from '../endpoint.ts';
import type { InputItem } from './responses-request.ts';
import { InvalidRequest, StorageNotAllowed } from '../../wire/invalid-request.ts';
import { compactByClient } from './compaction.ts';
import { sealPrefix } from '../../wire/seal-prefix.ts';
import { carriedTypes, ItemsFound } from './carried-items.ts';
import { contentOfParts, contentParts } from './read-content.ts';
import { Turn, type CallOutput, type OutputQueues } from './read-turn.ts';
import { checkNameLength, flatToolName } from './tool-names.ts';
import type { DeclaredTool } from './answer/call-item.ts';

export const callTypes = new Set(['function_call', 'custom_tool_call']);
export const outputTypes = new Set(['function_call_output', 'custom_tool_call_output']);
/** Summaries that only the provider that wrote them can read: Codex keeps them in its history under these types. */
const foreignSummaries = new Set(['compaction', 'compaction_summary', 'context_compaction']);
const roles = new Set(['system', 'developer', 'user', 'assistant']);

/** The type of an item. An item without a type but with a role is a message. */
export const itemType = (item: InputItem): string =>
  item.type ?? (typeof item.role === 'string' ? 'message' : '');

export interface ConvertedInput {
  messages: ChatMessage[];
  /** The sealed states that came back, by the assistant message of their turn. */
  sealed: Map<ChatMessage, SealedState>;
  /** A sealed item of another provider was left out. A refusal would end the session, which sends it each time. */
  foreignLeftOut: boolean;
  /** What no message can hold. */
  found: ItemsFound;
}

/** What the items stand in. */
interface ItemContext {
  declared: ReadonlyMap<string, DeclaredTool>;
  /** Stored items that are not read yet belong to them, with calls that outputs are for and tools that calls are of. */
  isPart: boolean;
}

/**
 * Converts Responses items to chat messages. Calls and the assistant messages next to them become one assistant
 * message. Their outputs follow it in the order of the calls, wherever they are in the input. Throws InvalidRequest.
 */
export function responsesInputToChat(items: readonly PlacedItem[], context: ItemContext): ConvertedInput {
  const outputs = collectOutputs(items);
  const messages: ChatMessage[] = [];
  const sealed = new Map<ChatMessage, SealedState>();
  const found = new ItemsFound();
  let turn: Turn | undefined;
  const closeTurn = (): void => {
    for (const one of turn?.messages(outputs, sealed) ?? []) messages.push(one);
    turn = undefined;
  };
  for (const placed of items) {
    const { item, param } = placed;
    const type = itemType(item);
    const said = type === 'message' ? message(item, param) : undefined;
    if (said?.role === 'assistant') (turn ??= new Turn()).say(said);
    else if (type === 'reasoning') (turn ??= new Turn()).seal(sealedState(placed));
    else if (callTypes.has(type)) (turn ??= new Turn()).call(toolCall(item, param, context));
    // Calls that are made at once stay one turn.
    else if (type === 'additional_tools') messages.push(...found.add(item, messages.at(-1)));
    else {
      closeTurn();
      if (said) messages.push(said);
      else if (carriedTypes.includes(type)) messages.push(...found.add(item, messages.at(-1)));
      else if (!outputTypes.has(type) && !foreignSummaries.has(type)) throw unsupported(item, param);
    }
  }
  closeTurn();
  if (!context.isPart) refuseOrphans(outputs);
  const foreignLeftOut = items.some(({ item }) => foreignSummaries.has(itemType(item)));
  return { messages, sealed, foreignLeftOut, found };
}

/** The outputs by call id, in input order. An id may have several: some upstreams reuse ids. */
function collectOutputs(items: readonly PlacedItem[]): OutputQueues {
  const outputs = items.flatMap(({ item, param }): CallOutput[] => {
    if (!outputTypes.has(itemType(item))) return [];
    const callId = requiredText(item, 'call_id', param);
    return [{ callId, parts: contentParts(item['output'], `${param}.output`), param }];
  });
  return Map.groupBy(outputs, ({ callId }) => callId);
}

function refuseOrphans(queues: OutputQueues): void {
  const [orphan] = [...queues.values()].flat();
  if (orphan === undefined) return;
  throw new InvalidRequest(
    'invalid_value',
    `${orphan.param}.call_id`,
    `No call with the call_id ${JSON.stringify(orphan.callId.slice(0, 60))} stands in the input for this output.`,
  );
}

/** Reasoning without encrypted content says nothing to a model. */
function sealedState({ item, param, stored }: PlacedItem): SealedState | undefined {
  const { encrypted_content: text, id } = item;
  if (text === undefined || text === null || text === '') return undefined;
  if (typeof text === 'string' && text.startsWith(sealPrefix))
    return {
      text,
      // The item of a stored seal was checked when it was stored, and may have got another id then.
      itemId: typeof id === 'string' && !stored ? id : undefined,
      param: `${param}.encrypted_content`,
      ...(stored && { stored }),
    };
  throw new InvalidRequest(
    'unsupported_input_item',
    `${param}.type`,
    `The encrypted_content of this reasoning item is not of this relay, so no upstream of it can read it. Leave the item out.`,
  );
}

function toolCall(item: InputItem, param: string, context: ItemContext): ChatToolCall {
  const custom = itemType(item) === 'custom_tool_call';
  const input = item[custom ? 'input' : 'arguments'];
  const text =
    typeof input === 'string' ? input : input === undefined || input === null ? '' : JSON.stringify(input);
  const id = requiredText(item, 'call_id', param);
  const name = calledName(item, param, context);
  if (custom) return { id, type: 'custom', custom: { name, input: text } };
  return { id, type: 'function', function: { name, arguments: text === '' ? '{}' : text } };
}

/** The name of the called tool. A call without a name is accepted only if exactly one tool is declared. */
function calledName(item: InputItem, param: string, { declared, isPart }: ItemContext): string {
  const { name, namespace } = item;
  checkNameLength({ name, namespace }, param);
  if (typeof name === 'string' && name !== '') return flatToolName(name, namespace);
  const [only] = declared.keys();
  if (only !== undefined && declared.size === 1) return only;
  return isPart ? '' : requiredText(item, 'name', param);
}

function message(item: InputItem, param: string): ChatMessage {
  const role = item.role ?? '';
  if (!roles.has(role))
    throw new InvalidRequest(
      'invalid_value',
      `${param}.role`,
      `'${param}.role' must be system, developer, user or assistant.`,
    );
  const { name, phase } = item;
  return {
    role: role === 'user' || role === 'assistant' ? role : 'system',
    content: contentOfParts(contentParts(item['content'], `${param}.content`), role),
    ...(typeof name === 'string' && name !== '' && { name }),
    ...(role === 'assistant' && typeof phase === 'string' && { phase }),
  };
}

function requiredText(item: InputItem, field: string, param: string): string {
  const value = item[field];
  if (typeof value === 'string' && value !== '') return value;
  throw new InvalidRequest(
    'missing_required_parameter',
    `${param}.${field}`,
    `Missing required parameter: '${param}.${field}'.`,
  );
}

function unsupported(item: InputItem, param: string): InvalidRequest {
  if (item.type === 'compaction_trigger')
    return new InvalidRequest(
      'unsupported_input_item',
      `${param}.type`,
      `"compaction_trigger" is not supported: conversations are compacted by their clients. ${compactByClient}`,
    );
  if (item.type === 'item_reference')
    return new StorageNotAllowed(
      'unsupported_input_item',
      `${param}.type`,
      `"item_reference" is not supported as an input item: responses are not stored for this key. Send the item itself, with store: false.`,
    );
  const shown =
    typeof item.type === 'string' ? JSON.stringify(item.type.slice(0, 60)) : 'an item without type and role';
  return new InvalidRequest(
    'unsupported_input_item',
    `${param}.type`,
    `${shown} is not supported as an input item: message, function_call, function_call_output, custom_tool_call, custom_tool_call_output, reasoning and additional_tools are.`,
  );
}
