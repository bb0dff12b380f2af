import type { ChatMessage, ChatRequest } from '../../wire/chat-request.ts';
import type { CarriedItems } from '../../wire/canonical-call.ts';
import type { JsonRecord } from '../../wire/json-record.ts';
import type { ResponsesRequest } from './responses-request.ts';
import type {
  ContentAt,
  PlacedItem,
  SealedState,
  StorageAsked,
  StorageAtHand,
  StoredReferences,
} from '../endpoint.ts';
import { InvalidRequest, StorageNotAllowed } from '../../wire/invalid-request.ts';
import { chatFields } from './read-fields.ts';
import { responsesInputToChat } from './read-input.ts';
import { chosenTools, placedTools, responsesToolsToChat } from './read-tools.ts';
import type { DeclaredTool } from './answer/call-item.ts';

export interface ConvertedRequest {
  chat: ChatRequest;
  /** How a stored conversation began. Undefined: it begins with this request. */
  beginning: ChatMessage[] | undefined;
  /** Sent in the channel's limit field. */
  outputTokensMax: number | undefined;
  declared: Map<string, DeclaredTool>;
  droppedTools: number;
  sealed: Map<ChatMessage, SealedState>;
  foreignLeftOut: boolean;
  items: CarriedItems | undefined;
  /** The whole conversation, the items of stored turns first. */
  placed: readonly PlacedItem[];
  /** Undefined: the answer is not stored. */
  storage: StorageAsked | undefined;
  /** Undefined: the call is whole. */
  unread: StoredReferences | undefined;
}

/**
 * Converts a Responses request to the equivalent chat request. Throws InvalidRequest.
 * @param storage undefined: the key may not store
 */
export function responsesToChat(request: ResponsesRequest, storage?: StorageAtHand): ConvertedRequest {
  refuseStored(request, storage);
  if (typeof request.n === 'number' && request.n > 1)
    throw new InvalidRequest(
      'unsupported_parameter',
      'n',
      "'n' above 1 is not supported: a response is one.",
    );
  const own = itemsOf(request.input);
  const inBody = own.map((item, i): PlacedItem => ({ item, param: `input[${i}]` }));
  const unread = storage?.stored ? undefined : storage?.reading.references(request);
  const placed = storage ? storage.reading.placed(inBody, storage.stored) : inBody;
  const converted = responsesToolsToChat(placedTools(request.tools ?? [], placed));
  const { declared, dropped } = converted;
  const {
    messages: conversation,
    sealed,
    foreignLeftOut,
    found,
  } = responsesInputToChat(placed, {
    declared,
    isPart: unread !== undefined,
  });
  const messages = instructed(request.instructions, conversation);
  const [first] = storage?.stored?.earlier ?? [];
  if (messages.length === 0 && !unread)
    throw new InvalidRequest('invalid_value', 'input', "'input' holds no message and no call.");

  const chosen = chosenTools(request.tool_choice, converted);
  const parallel = request.parallel_tool_calls;
  const chat: ChatRequest = {
    model: request.model,
    messages,
    ...chatFields(request),
    ...(found.effort !== undefined && { reasoning_effort: found.effort }),
    ...chosen,
    ...(chosen.tools && typeof parallel === 'boolean' && { parallel_tool_calls: parallel }),
  };
  const outputTokensMax = request.max_output_tokens ?? undefined;
  return {
    chat,
    beginning: first && instructed(first.instructions, conversation),
    outputTokensMax,
    declared,
    droppedTools: dropped,
    sealed,
    foreignLeftOut,
    items: found.items({
      first: messages[0] === conversation[0] ? undefined : messages[0],
      tools: converted.byItem,
      effort: request.reasoning?.effort ?? undefined,
    }),
    placed,
    storage: storage?.reading.asked(request, own),
    unread,
  };
}

const itemsOf = (input: ResponsesRequest['input']): readonly JsonRecord[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;

const instructed = (instructions: string | null | undefined, conversation: ChatMessage[]): ChatMessage[] =>
  instructions ? [{ role: 'system', content: instructions }, ...conversation] : conversation;

/** Why a request for something that is not stored for any key is refused, by field. */
const neverStored = {
  conversation:
    'the relay keeps no conversations as objects. Use previous_response_id, or send the whole conversation as input',
  prompt: 'the relay keeps no prompt templates. Send their text as instructions and input',
} as const;

/** The same for keys that may not store. */
const notForKey = {
  previous_response_id:
    'responses are not stored for this key. Send the whole conversation as input, with store: false',
  background: 'responses are not stored for this key. Leave it out, and read the answer as it comes',
} as const;

function refuseStored(request: ResponsesRequest, storage: StorageAtHand | undefined): void {
  const refuse = (reasons: Record<string, string>, Refused: typeof InvalidRequest): void => {
    for (const [param, reason] of Object.entries(reasons))
      if (request[param])
        throw new Refused('unsupported_parameter', param, `'${param}' is not supported: ${reason}.`);
  };
  refuse(neverStored, InvalidRequest);
  if (!storage) refuse(notForKey, StorageNotAllowed);
}

/** What the items of a request hold, with its path: messages have contents, results of tools outputs. */
export const contentsOf = ({ placed }: Pick<ConvertedRequest, 'placed'>): ContentAt[] =>
  placed.flatMap(({ item, param }) => [
    { param: `${param}.content`, content: item['content'] },
    { param: `${param}.output`, content: item['output'] },
  ]);
