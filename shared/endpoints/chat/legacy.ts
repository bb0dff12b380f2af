import type { ChatMessage, ChatRequest, ChatTool } from '../../wire/canonical-call.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { isRecord } from '../../wire/json.ts';
import type { ChatChunk, ChatCompletion, ChatDelta, FinishReason } from '../../wire/chat-response.ts';

/** Whether a request asks for its answer in the older form, `function_call`. */
export const asksForFunctionCall = ({ functions, function_call: choice }: ChatRequest): boolean =>
  (functions ?? undefined) !== undefined || (choice ?? undefined) !== undefined;

/**
 * Converts OpenAI's older form of function calls to tools, tool choice, tool calls and tool messages, so that every
 * dialect serves it. Returns a request without the older form as it is. Throws InvalidRequest.
 */
export function withoutLegacy(request: ChatRequest): ChatRequest {
  const messages = request.messages.some(isLegacy) ? convertMessages(request.messages) : request.messages;
  if (!asksForFunctionCall(request))
    return messages === request.messages ? request : { ...request, messages };
  const { functions, function_call: choice, ...rest } = request;
  if ((functions?.length ?? 0) > 0 && (rest.tools?.length ?? 0) > 0)
    throw new InvalidRequest('invalid_value', 'functions', "Send either 'tools' or 'functions', not both.");
  const tools = (functions ?? []).map((one): ChatTool => ({ type: 'function', function: one }));
  return {
    ...rest,
    messages,
    ...(tools.length > 0 && { tools }),
    ...((choice ?? undefined) !== undefined && { tool_choice: toolChoice(choice) }),
  };
}

function toolChoice(choice: unknown): unknown {
  if (choice === 'none' || choice === 'auto') return choice;
  if (isRecord(choice) && typeof choice['name'] === 'string')
    return { type: 'function', function: { name: choice['name'] } };
  throw new InvalidRequest(
    'invalid_value',
    'function_call',
    "'function_call' must be 'none', 'auto' or an object with the name of a function.",
  );
}

const isLegacy = ({ role, function_call: call }: ChatMessage): boolean =>
  role === 'function' || (call ?? undefined) !== undefined;

/**
 * The older form has no ids: a result belongs to the nearest call before it that has its name and no result. A result
 * without a call stays as it is, because the client contract allows it.
 */
function convertMessages(messages: readonly ChatMessage[]): ChatMessage[] {
  /** The ids of the calls without a result, by name. */
  const open = new Map<string, string[]>();
  return messages.map((message, i) => {
    if (message.role === 'function') return toolMessage(message, open);
    const { function_call: call, ...rest } = message;
    if (!call || (message.tool_calls?.length ?? 0) > 0) return message;
    const id = `call_function_${i}`;
    open
      .set(call.name, open.get(call.name) ?? [])
      .get(call.name)
      ?.push(id);
    const called = { name: call.name, arguments: call.arguments ?? '{}' };
    return { ...rest, tool_calls: [{ id, type: 'function', function: called }] };
  });
}

function toolMessage(message: ChatMessage, open: ReadonlyMap<string, string[]>): ChatMessage {
  const id = open.get(message.name ?? '')?.pop();
  return id === undefined ? message : { role: 'tool', tool_call_id: id, content: message.content };
}

// Answers in OpenAI's older form of function calls, which holds one call: later parallel calls are left out.

/** A chunk with `function_call` in its deltas. */
export const legacyChunk = (chunk: ChatChunk): object => ({
  ...chunk,
  choices: chunk.choices.map((choice) => ({
    ...choice,
    delta: legacyDelta(choice.delta),
    finish_reason: legacyReason(choice.finish_reason),
  })),
});

/** A completion with `function_call` in its messages. */
export const legacyCompletion = (completion: ChatCompletion): object => ({
  ...completion,
  choices: completion.choices.map(({ message, finish_reason: reason, ...choice }) => {
    const called = message.tool_calls?.[0]?.function;
    return {
      ...choice,
      message: { ...message, tool_calls: null, ...(called && { function_call: called }) },
      finish_reason: legacyReason(reason),
    };
  }),
});

function legacyDelta({ tool_calls: pieces, ...delta }: ChatDelta): object {
  const [called] = (pieces ?? []).flatMap((piece) =>
    piece.index === 0 && piece.function ? [piece.function] : [],
  );
  return called ? { ...delta, function_call: called } : delta;
}

const legacyReason = (reason: FinishReason | null): string | null =>
  reason === 'tool_calls' ? 'function_call' : reason;
