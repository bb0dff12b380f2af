import type { ChatContentPart, ChatMessage, ChatToolCall } from '../../wire/chat-request.ts';
import type { InputItem } from './responses-request.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { contentOfParts, contentParts, partsOfContent, textOfParts } from './read-content.ts';
import { flatToolName, type DeclaredTool } from './tool-names.ts';

interface Output {
  callId: string;
  parts: ChatContentPart[];
  param: string;
}

/** Outputs that are not assigned to a call yet, by call id. */
type OutputQueues = ReadonlyMap<string, Output[]>;

/** Messages and calls of one turn of the model, which become one assistant message in chat. */
interface CallTurn {
  said: ChatMessage[];
  calls: ChatToolCall[];
}

const callTypes = new Set(['function_call', 'custom_tool_call']);
const outputTypes = new Set(['function_call_output', 'custom_tool_call_output']);
const roles = new Set(['system', 'developer', 'user', 'assistant']);

/** The type of an item. An item without a type but with a role is a message. */
export const itemType = (item: InputItem): string =>
  item.type ?? (typeof item.role === 'string' ? 'message' : '');

/**
 * Converts Responses items to chat messages. Consecutive calls and the assistant messages next to them become
 * one assistant message. Their outputs follow it in the order of the calls, wherever they are in the input.
 * Throws InvalidRequest.
 */
export function responsesInputToChat(
  items: readonly InputItem[],
  declared: ReadonlyMap<string, DeclaredTool>,
): ChatMessage[] {
  const outputs = collectOutputs(items);
  const messages: ChatMessage[] = [];
  let turn: CallTurn | undefined;
  const closeTurn = (): void => {
    if (turn) for (const message of answeredTurn(turn, outputs)) messages.push(message);
    turn = undefined;
  };
  for (const [i, item] of items.entries()) {
    const type = itemType(item);
    const param = `input[${i}]`;
    if (type === 'additional_tools') continue;
    if (callTypes.has(type)) {
      turn ??= { said: takeAssistant(messages), calls: [] };
      turn.calls.push(toolCall(item, param, declared));
      continue;
    }
    const said = type === 'message' ? message(item, param) : undefined;
    if (turn && said?.role === 'assistant') {
      turn.said.push(said);
      continue;
    }
    closeTurn();
    if (said) messages.push(said);
    else if (!outputTypes.has(type)) throw unsupported(item, param);
  }
  closeTurn();
  refuseOrphans(outputs);
  return messages;
}

/** The outputs by call id, in input order. An id may have several: some upstreams reuse ids. */
function collectOutputs(items: readonly InputItem[]): OutputQueues {
  const outputs = items.flatMap((item, i): Output[] => {
    const param = `input[${i}]`;
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

/**
 * Removes and returns the last message if it is an assistant message without calls, because it belongs to the
 * calls that follow.
 */
function takeAssistant(messages: ChatMessage[]): ChatMessage[] {
  const last = messages.at(-1);
  if (last?.role !== 'assistant' || last.tool_calls) return [];
  messages.pop();
  return [last];
}

/** The assistant message with its calls, then a tool message for each call that has an output. */
function answeredTurn({ said, calls }: CallTurn, queues: OutputQueues): ChatMessage[] {
  const content = contentOfParts(said.flatMap((message) => partsOfContent(message.content)));
  const messages: ChatMessage[] = [
    { ...said[0], role: 'assistant', content: content === '' ? null : content, tool_calls: calls },
  ];
  const images: ChatContentPart[] = [];
  for (const call of calls) {
    const output = queues.get(call.id ?? '')?.shift();
    if (!output) continue;
    messages.push({ role: 'tool', tool_call_id: call.id, content: textOfParts(output.parts) });
    for (const part of output.parts) if (part.type !== 'text') images.push(part);
  }
  // Tool messages can hold only text, so images of a tool's output go into a user message.
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

/** The name of the called tool. A call without a name is accepted only if exactly one tool is declared. */
function calledName(item: InputItem, param: string, declared: ReadonlyMap<string, DeclaredTool>): string {
  const { name, namespace } = item;
  if (typeof name === 'string' && name !== '') return flatToolName(name, namespace);
  const [only] = declared.keys();
  return only !== undefined && declared.size === 1 ? only : requiredText(item, 'name', param);
}

function message(item: InputItem, param: string): ChatMessage {
  const role = item.role ?? '';
  if (!roles.has(role))
    throw new InvalidRequest(
      'invalid_value',
      `${param}.role`,
      `'${param}.role' must be system, developer, user or assistant.`,
    );
  const { name } = item;
  return {
    role: role === 'user' || role === 'assistant' ? role : 'system',
    content: contentOfParts(contentParts(item['content'], `${param}.content`), role),
    ...(typeof name === 'string' && name !== '' && { name }),
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
  const shown =
    typeof item.type === 'string' ? JSON.stringify(item.type.slice(0, 60)) : 'an item without type and role';
  return new InvalidRequest(
    'unsupported_input_item',
    `${param}.type`,
    `${shown} is not supported as an input item: message, function_call, function_call_output, custom_tool_call, custom_tool_call_output and additional_tools are.`,
  );
}
