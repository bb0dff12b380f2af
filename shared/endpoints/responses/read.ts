import type { ChatMessage, ChatRequest } from '../../wire/chat-request.ts';
import type { InputItem, ResponsesRequest, ResponsesTool } from './responses-request.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { isRecord, type JsonRecord } from '../../wire/json-record.ts';
import { itemType, responsesInputToChat } from './read-input.ts';
import { responsesToolsToChat, toolChoiceToChat } from './read-tools.ts';
import type { DeclaredTool } from './tool-names.ts';

export interface ConvertedRequest {
  chat: ChatRequest;
  /** Sent in the channel's limit field. */
  outputTokensMax: number | undefined;
  declared: Map<string, DeclaredTool>;
  droppedTools: number;
}

/** Converts a Responses request to the equivalent chat request. Throws InvalidRequest. */
export function responsesToChat(request: ResponsesRequest): ConvertedRequest {
  refuseStored(request);
  const items = typeof request.input === 'string' ? [] : request.input;
  const { tools, declared, dropped } = responsesToolsToChat([...(request.tools ?? []), ...laterTools(items)]);
  const conversation: ChatMessage[] =
    typeof request.input === 'string'
      ? [{ role: 'user', content: request.input }]
      : responsesInputToChat(items, declared);
  const messages: ChatMessage[] = request.instructions
    ? [{ role: 'system', content: request.instructions }, ...conversation]
    : conversation;
  if (messages.length === 0)
    throw new InvalidRequest('invalid_value', 'input', "'input' holds no message and no call.");

  const chat: ChatRequest = { model: request.model, messages, ...sampling(request), ...outputForm(request) };
  if (tools.length > 0) {
    const { tools: left, choice } = toolChoiceToChat(request.tool_choice, tools);
    chat.tools = left;
    chat.tool_choice = choice;
    if (typeof request.parallel_tool_calls === 'boolean')
      chat['parallel_tool_calls'] = request.parallel_tool_calls;
  }
  return { chat, outputTokensMax: request.max_output_tokens ?? undefined, declared, droppedTools: dropped };
}

function refuseStored({ previous_response_id: previous, conversation }: ResponsesRequest): void {
  const param = previous ? 'previous_response_id' : conversation ? 'conversation' : undefined;
  if (param === undefined) return;
  throw new InvalidRequest(
    'unsupported_parameter',
    param,
    `'${param}' is not supported: the relay keeps no conversation. Send the whole conversation as input, with store: false.`,
  );
}

/** Tools declared in input items, as newer coding agents do. */
const laterTools = (items: readonly InputItem[]): ResponsesTool[] =>
  items
    .filter((item) => itemType(item) === 'additional_tools')
    .flatMap((item) => (Array.isArray(item['tools']) ? item['tools'] : []))
    .filter((tool): tool is ResponsesTool => isRecord(tool));

function sampling(request: ResponsesRequest): Partial<ChatRequest> {
  const { temperature, top_p: topP, official, reasoning } = request;
  return {
    ...(typeof temperature === 'number' && { temperature }),
    ...(typeof topP === 'number' && { top_p: topP }),
    ...(typeof official === 'boolean' && { official }),
    ...(reasoning?.effort && { reasoning_effort: reasoning.effort }),
  };
}

/** Responses has the fields of the JSON schema beside `type`; chat has them under `json_schema`. */
function outputForm({ text }: ResponsesRequest): Partial<ChatRequest> {
  const verbosity = text?.['verbosity'];
  const form: Partial<ChatRequest> = typeof verbosity === 'string' ? { verbosity } : {};
  const format = text?.format;
  if (!format || format.type === 'text') return form;
  if (format.type !== 'json_schema') return { ...form, response_format: { type: format.type } };
  const schema: JsonRecord = {};
  for (const field of ['name', 'description', 'schema', 'strict'])
    if (format[field] !== undefined && format[field] !== null) schema[field] = format[field];
  return { ...form, response_format: { type: 'json_schema', json_schema: schema } };
}
