import type { ChatContentPart, ChatMessage, ChatToolCall } from '../wire/chat-request.ts';
import type { InputItem } from '../wire/responses-request.ts';
import { InvalidRequest } from './invalid-request.ts';
import { contentOfParts, contentParts, textOfParts } from './responses-content-to-chat.ts';
import { flatToolName, type DeclaredTool } from './tool-names.ts';

interface Output {
  parts: ChatContentPart[];
  param: string;
}

const callTypes = new Set(['function_call', 'custom_tool_call']);
const outputTypes = new Set(['function_call_output', 'custom_tool_call_output']);
const roles = new Set(['system', 'developer', 'user', 'assistant']);

/** What an item is; one without a type but with a role is a message. */
export const itemType = (item: InputItem): string =>
  item.type ?? (typeof item.role === 'string' ? 'message' : '');

/**
 * Responses items as chat messages. Calls that stand together, with an assistant message before them, are one
 * assistant message; the outputs follow it in the order of the calls, wherever they stood. Throws InvalidRequest.
 */
export function responsesInputToChat(
  items: readonly InputItem[],
  declared: ReadonlyMap<string, DeclaredTool>,
): ChatMessage[] {
  const outputs = collectOutputs(items);
  const messages: ChatMessage[] = [];
  let calls: ChatToolCall[] = [];
  const closeCalls = (): void => {
    if (calls.length === 0) return;
    messages.push(...answeredCalls(messages, calls, outputs));
    calls = [];
  };
  for (const [i, item] of items.entries()) {
    const type = itemType(item);
    const param = `input[${i}]`;
    if (callTypes.has(type)) {
      calls.push(toolCall(item, param, declared));
      continue;
    }
    closeCalls();
    if (type === 'message') messages.push(message(item, param));
    else if (!outputTypes.has(type) && type !== 'additional_tools') throw unsupported(item, param);
  }
  closeCalls();
  refuseOrphans(outputs);
  return messages;
}

/** By call id, in order: some upstreams use an id again in a later turn. */
function collectOutputs(items: readonly InputItem[]): Map<string, Output[]> {
  const outputs = new Map<string, Output[]>();
  for (const [i, item] of items.entries()) {
    if (!outputTypes.has(itemType(item))) continue;
    const param = `input[${i}]`;
    const callId = requiredText(item, 'call_id', param);
    const output = { parts: contentParts(item['output'], `${param}.output`), param };
    outputs.set(callId, [...(outputs.get(callId) ?? []), output]);
  }
  return outputs;
}

function refuseOrphans(outputs: ReadonlyMap<string, Output[]>): void {
  for (const [callId, left] of outputs)
    for (const { param } of left)
      throw new InvalidRequest(
        'invalid_value',
        `${param}.call_id`,
        `No call with the call_id ${JSON.stringify(callId)} stands in the input for this output.`,
      );
}

/** The assistant message with its calls, then a tool message for each call that has an output. */
function answeredCalls(
  before: ChatMessage[],
  calls: ChatToolCall[],
  outputs: Map<string, Output[]>,
): ChatMessage[] {
  const last = before.at(-1);
  const joins = last?.role === 'assistant' && !last.tool_calls;
  if (joins) before.pop();
  const messages: ChatMessage[] = [
    { role: 'assistant', content: joins ? last.content : null, tool_calls: calls },
  ];
  const images: ChatContentPart[] = [];
  for (const call of calls) {
    const output = outputs.get(call.id ?? '')?.shift();
    if (!output) continue;
    messages.push({ role: 'tool', tool_call_id: call.id, content: textOfParts(output.parts) });
    images.push(...output.parts.filter((part) => part.type !== 'text'));
  }
  // Tool messages hold text alone: what a tool saw is shown by the user's side.
  if (images.length > 0) messages.push({ role: 'user', content: images });
  return messages;
}

function toolCall(item: InputItem, param: string, declared: ReadonlyMap<string, DeclaredTool>): ChatToolCall {
  const custom = itemType(item) === 'custom_tool_call';
  const input = item[custom ? 'input' : 'arguments'];
  const text =
    typeof input === 'string' ? input : input === undefined || input === null ? '' : JSON.stringify(input);
  return {
    id: requiredText(item, 'call_id', param),
    type: 'function',
    function: {
      name: calledName(item, param, declared),
      arguments: custom ? JSON.stringify({ input: text }) : text === '' ? '{}' : text,
    },
  };
}

/** A call without a name can only mean the one tool that there is. */
function calledName(item: InputItem, param: string, declared: ReadonlyMap<string, DeclaredTool>): string {
  const { name, namespace } = item;
  if (typeof name === 'string' && name !== '')
    return flatToolName(name, typeof namespace === 'string' && namespace !== '' ? namespace : undefined);
  const [only] = declared.keys();
  if (only !== undefined && declared.size === 1) return only;
  throw new InvalidRequest(
    'missing_required_parameter',
    `${param}.name`,
    `Missing required parameter: '${param}.name'.`,
  );
}

function message(item: InputItem, param: string): ChatMessage {
  const role = item.role ?? '';
  if (!roles.has(role))
    throw new InvalidRequest(
      'invalid_value',
      `${param}.role`,
      `'${param}.role' must be system, developer, user or assistant.`,
    );
  const parts = contentParts(item['content'], `${param}.content`);
  if (role === 'user') return { role, content: contentOfParts(parts) };
  return { role: role === 'assistant' ? 'assistant' : 'system', content: textOfParts(parts) };
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
  const shown =
    typeof item.type === 'string' ? JSON.stringify(item.type.slice(0, 60)) : 'an item without type and role';
  return new InvalidRequest(
    'unsupported_input_item',
    `${param}.type`,
    `${shown} is not supported as an input item: message, function_call, function_call_output, custom_tool_call, custom_tool_call_output and additional_tools are.`,
  );
}
