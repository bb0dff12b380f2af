/** Chat Completions. The client's request is the canonical call, except for OpenAI's older form of function calls. */
import {
  showCounts,
  isUrlCitation,
  type ChatChunk,
  type AnswerIdentity,
  type ChatUsage,
  type ChatCompletion,
  type ChatDelta,
  type FinishReason,
} from '../../wire/chat-response.ts';
import { checkLogprobs, parseRequest } from '../parse-request.ts';
import { ChatRequest, splitKnown, type ChatMessage, type ChatTool } from '../../wire/canonical-call.ts';
import {
  type Endpoint,
  type EndpointRequest,
  type AnswerFacts,
  jsonAnswer,
  streamedAnswer,
  type Renderer,
} from '../endpoint.ts';
import { endpointRoutes } from '../routes.ts';
import { ChunksToCompletion } from './fold.ts';
import { renderCommentFrame, renderDataFrame } from '../../stream/sse.ts';
import { findDetails } from '../../wire/details.ts';
import { InvalidRequest } from '../../wire/invalid-request.ts';
import { isRecord, recordsIn, type JsonRecord } from '../../wire/json.ts';

export const chatEndpoint: Endpoint = {
  ...endpointRoutes.chat,
  read(body, headers) {
    const { request, unknown } = splitKnown(parseRequest(ChatRequest, body));
    return answerAsChat({ call: { form: endpointRoutes.chat.name, request, unknown } }, headers);
  },
  async otherForm(body) {
    if (!isRecord(body) || !mayBeOtherForm(body)) return undefined;
    const { readOtherForm } = await import('./other-forms.ts');
    return { read: (_body, headers) => answerAsChat(readOtherForm(body), headers) };
  },
};

function answerAsChat(
  { call, ...read }: Omit<EndpointRequest, 'renderer'>,
  headers: Parameters<Endpoint['read']>[1],
): EndpointRequest {
  const { request } = call;
  checkLogprobs(request, [request.max_tokens, request.max_completion_tokens, read.outputTokensMax]);
  const asked = {
    usage: chooseUsagePlace(request, headers['x-stainless-lang']),
    legacy: asksForFunctionCall(request),
  };
  // OpenRouter and Mistral say `any` for `required`, and accept both.
  const choice = request.tool_choice === 'any' ? { tool_choice: 'required' } : {};
  const messageFields = [...(call.messageFields ?? []), ...findDetails(request, details)];
  if (request.messages.some(({ phase }) => phase)) messageFields.push('phase');
  return {
    call: {
      ...call,
      request: { ...translateLegacyFields(request), ...choice },
      ...(messageFields.length > 0 && { messageFields }),
    },
    ...read,
    renderer: (identity, { model = () => identity.model, sent }) => {
      const tellsTier = (request.service_tier ?? '') !== '';
      const form = { ...asked, tier: () => (tellsTier ? (sent().serviceTier ?? 'default') : undefined) };
      return request.stream === true
        ? createStreamRenderer({ ...identity, model }, form)
        : createJsonRenderer(form);
    },
  };
}

/** See `findDetails`. */
const details = { messages: ['name', 'detail', 'prompt_cache_breakpoint'] };

/** Fields that only other endpoints have. */
const otherFields = ['input', 'system', 'reasoning', 'text', 'max_output_tokens'];
const ownParts = new Set<unknown>(['text', 'image_url', 'input_audio', 'file', 'refusal']);

/** True if a body has fields that chat lacks: it may then be in a form of Responses or Messages. */
function mayBeOtherForm(body: JsonRecord): boolean {
  const { tools, tool_choice: choice, messages } = body;
  return (
    otherFields.some((field) => (body[field] ?? undefined) !== undefined) ||
    recordsIn(tools).some(({ name, custom }) => (name ?? custom) !== undefined) ||
    (isRecord(choice) && choice['function'] === undefined) ||
    recordsIn(messages).some(({ content }) => recordsIn(content).some(({ type }) => !ownParts.has(type)))
  );
}

/** OpenAI's client for Java ends at the first chunk with usage, and misses the finish reason beside it. */
function chooseUsagePlace(request: ChatRequest, clientLanguage: string | undefined): ChatAnswerForm['usage'] {
  if (request.stream_options?.include_usage === true) return 'chunk';
  return clientLanguage === 'java' ? 'none' : 'finish';
}

interface ChatAnswerForm {
  /** How a stream reports usage: in a separate chunk, on the finish chunk, or not at all. */
  usage: 'chunk' | 'finish' | 'none';
  legacy: boolean;
  /** The charged service tier, known at the end. Undefined unless the client asked for one, as with OpenAI. */
  tier: () => string | undefined;
}

type RenderedIdentity = Pick<AnswerIdentity, 'requestId' | 'created'> & Required<Pick<AnswerFacts, 'model'>>;

/** Chat Completions, `stream: true`: a data frame per chunk, then `[DONE]`. */
function createStreamRenderer(
  { requestId, created, model }: RenderedIdentity,
  form: ChatAnswerForm,
): Renderer {
  let held: ChatChunk | undefined;
  const frames = (...chunks: (ChatChunk | undefined)[]): string[] =>
    chunks.flatMap((chunk) => (chunk ? renderDataFrame(JSON.stringify(renderChunk(chunk, form))) : []));
  return {
    ...streamedAnswer,
    /**
     * Holds the last finish chunk until the usage arrives: it carries the usage unless the client asked for a
     * separate usage chunk.
     */
    push(chunk) {
      const finish = held;
      held = undefined;
      if (chunk.usage) {
        const { quota } = chunk;
        const usage = showUsage(chunk.usage);
        const priced = finish && quota !== undefined ? { ...finish, quota } : finish;
        if (priced && form.usage === 'none') return frames(priced);
        return form.usage === 'chunk' || !priced
          ? frames(priced, { ...chunk, usage })
          : frames({ ...priced, usage });
      }
      if (!chunk.choices.some((choice) => choice.finish_reason !== null)) return frames(finish, chunk);
      held = chunk;
      return frames(finish);
    },
    end: () => [...frames(held), renderDataFrame('[DONE]')],
    idle: () => renderCommentFrame('ping'),
    /** Has no `choices`, because clients overlook an error beside them. */
    failed(error) {
      const id = `chatcmpl-${requestId}`;
      const chunk = { id, object: 'chat.completion.chunk', created, model: model(), error };
      return renderDataFrame(JSON.stringify(chunk)) + renderDataFrame('[DONE]');
    },
  };
}

function createJsonRenderer({ legacy, tier }: ChatAnswerForm): Renderer {
  const fold = new ChunksToCompletion();
  return {
    ...jsonAnswer,
    push(chunk) {
      fold.push(chunk);
      return [];
    },
    end() {
      const folded = fold.completion();
      const completion = { ...folded, usage: showUsage(folded.usage), service_tier: tier() };
      return [JSON.stringify(legacy ? toLegacyCompletion(completion) : completion)];
    },
  };
}

/** The chunk as Chat Completions has it: phases and annotations of files are words of Responses. */
function renderChunk(chunk: ChatChunk, { legacy, tier }: ChatAnswerForm): object {
  const isPlain = chunk.choices.every(({ delta }) => delta.phase === undefined && !delta.annotations);
  const plain = isPlain ? chunk : removeExtensions(chunk);
  const whole = legacy ? toLegacyChunk(plain) : plain;
  const isOfEnd = chunk.usage !== null || chunk.choices.some(({ finish_reason: reason }) => reason !== null);
  const service_tier = isOfEnd ? tier() : undefined;
  return service_tier === undefined ? whole : { ...whole, service_tier };
}

const removeExtensions = (chunk: ChatChunk): ChatChunk => ({
  ...chunk,
  choices: chunk.choices.map((choice) => {
    const { phase: _phase, annotations, ...delta } = choice.delta;
    const citations = annotations?.filter(isUrlCitation) ?? [];
    return { ...choice, delta: { ...delta, ...(citations.length > 0 && { annotations: citations }) } };
  }),
});

/** Usage with every detail that clients read, zeros included. */
const showUsage = (usage: ChatUsage): ChatUsage => ({
  prompt_tokens: usage.prompt_tokens,
  completion_tokens: usage.completion_tokens,
  total_tokens: usage.total_tokens,
  prompt_tokens_details: showCounts(usage.prompt_tokens_details),
  completion_tokens_details: {
    reasoning_tokens: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  },
});

const asksForFunctionCall = ({ functions, function_call: choice }: ChatRequest): boolean =>
  (functions ?? undefined) !== undefined || (choice ?? undefined) !== undefined;

/**
 * Converts OpenAI's older form of function calls to tools, tool choice, tool calls and tool messages, so that every
 * dialect serves it. Returns a request without the older form as it is. Throws InvalidRequest.
 */
function translateLegacyFields(request: ChatRequest): ChatRequest {
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
  const open = new Map<string, string[]>();
  return messages.map((message, i) => {
    if (message.role === 'function') return translateFunctionMessage(message, open);
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

function translateFunctionMessage(message: ChatMessage, open: ReadonlyMap<string, string[]>): ChatMessage {
  const id = open.get(message.name ?? '')?.pop();
  return id === undefined ? message : { role: 'tool', tool_call_id: id, content: message.content };
}

// Answers in OpenAI's older form of function calls, which holds one call: later parallel calls are left out.

const toLegacyChunk = (chunk: ChatChunk): object => ({
  ...chunk,
  choices: chunk.choices.map((choice) => ({
    ...choice,
    delta: toLegacyDelta(choice.delta),
    finish_reason: toLegacyReason(choice.finish_reason),
  })),
});

const toLegacyCompletion = (completion: ChatCompletion): object => ({
  ...completion,
  choices: completion.choices.map(({ message, finish_reason: reason, ...choice }) => {
    const called = message.tool_calls?.[0]?.function;
    return {
      ...choice,
      message: { ...message, tool_calls: null, ...(called && { function_call: called }) },
      finish_reason: toLegacyReason(reason),
    };
  }),
});

function toLegacyDelta({ tool_calls: pieces, ...delta }: ChatDelta): object {
  const [called] = (pieces ?? []).flatMap((piece) =>
    piece.index === 0 && piece.function ? [piece.function] : [],
  );
  return called ? { ...delta, function_call: called } : delta;
}

const toLegacyReason = (reason: FinishReason | null): string | null =>
  reason === 'tool_calls' ? 'function_call' : reason;
