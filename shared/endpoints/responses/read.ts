import type { ChatMessage, ChatRequest } from '../../wire/chat-request.ts';
import type { ResponsesRequest } from './responses-request.ts';
import type { ContentAt, SealedState } from '../endpoint.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { chatFields } from './read-fields.ts';
import { responsesInputToChat } from './read-input.ts';
import { chosenTools, placedTools, responsesToolsToChat } from './read-tools.ts';
import type { DeclaredTool } from './answer/call-item.ts';

export interface ConvertedRequest {
  chat: ChatRequest;
  /** Sent in the channel's limit field. */
  outputTokensMax: number | undefined;
  declared: Map<string, DeclaredTool>;
  droppedTools: number;
  sealed: Map<ChatMessage, SealedState>;
  foreignLeftOut: boolean;
}

/** Converts a Responses request to the equivalent chat request. Throws InvalidRequest. */
export function responsesToChat(request: ResponsesRequest): ConvertedRequest {
  refuseStored(request);
  if (typeof request.n === 'number' && request.n > 1)
    throw new InvalidRequest(
      'unsupported_parameter',
      'n',
      "'n' above 1 is not supported: a response is one.",
    );
  const items = typeof request.input === 'string' ? [] : request.input;
  const converted = responsesToolsToChat(placedTools(request.tools ?? [], items));
  const { declared, dropped } = converted;
  const {
    messages: conversation,
    sealed,
    foreignLeftOut,
  } = typeof request.input === 'string'
    ? {
        messages: [{ role: 'user' as const, content: request.input }],
        sealed: new Map(),
        foreignLeftOut: false,
      }
    : responsesInputToChat(items, declared);
  const messages: ChatMessage[] = request.instructions
    ? [{ role: 'system', content: request.instructions }, ...conversation]
    : conversation;
  if (messages.length === 0)
    throw new InvalidRequest('invalid_value', 'input', "'input' holds no message and no call.");

  const chosen = chosenTools(request.tool_choice, converted);
  const parallel = request.parallel_tool_calls;
  const chat: ChatRequest = {
    model: request.model,
    messages,
    ...chatFields(request),
    ...chosen,
    ...(chosen.tools && typeof parallel === 'boolean' && { parallel_tool_calls: parallel }),
  };
  const outputTokensMax = request.max_output_tokens ?? undefined;
  return { chat, outputTokensMax, declared, droppedTools: dropped, sealed, foreignLeftOut };
}

/** Why a request for something that the relay does not store is refused, by field. */
const stored = {
  previous_response_id:
    'the relay keeps no conversation. Send the whole conversation as input, with store: false',
  conversation: 'the relay keeps no conversation. Send the whole conversation as input, with store: false',
  prompt: 'the relay keeps no prompt templates. Send their text as instructions and input',
} as const;

function refuseStored(request: ResponsesRequest): void {
  for (const [param, reason] of Object.entries(stored))
    if (request[param])
      throw new InvalidRequest('unsupported_parameter', param, `'${param}' is not supported: ${reason}.`);
}

/** What the items of a request hold, with its path: messages have contents, results of tools outputs. */
export const contentsOf = ({ input }: ResponsesRequest): ContentAt[] =>
  typeof input === 'string'
    ? []
    : input.flatMap((item, i) => [
        { param: `input[${i}].content`, content: item['content'] },
        { param: `input[${i}].output`, content: item['output'] },
      ]);
