/** Responses. A request is converted to the canonical call, and its answer is rendered from the canonical stream. */
import { ChatToResponses } from './answer-events.ts';
import { checkLogprobs, parseRequest } from '../parse-request.ts';
import { buildStartedResponse } from './response-object.ts';
import {
  keepsState,
  selectServedFields,
  readSummaryKind,
  findUnknownFields,
  wantsLogprobs,
  ResponsesRequest,
  StoredInputRequest,
  chatFields,
  readTopLogprobs,
} from './request.ts';
import {
  jsonAnswer,
  streamedAnswer,
  type Endpoint,
  type EndpointRequest,
  type PlacedItem,
  type Renderer,
  type SentFacts,
  type StorageAtHand,
  type SummaryOpener,
} from '../endpoint.ts';
import { compactRoute, countingRoutes, endpointRoutes } from '../routes.ts';
import type { CanonicalCall, ChatMessage, ChatRequest } from '../../wire/canonical-call.ts';
import { type JsonRecord, isRecord, asRecord } from '../../wire/json.ts';
import { fieldPathOf, walkMedia, findMissingMedia } from '../../wire/media-walk.ts';
import { findDetails } from '../../wire/details.ts';
import { InvalidRequest, StorageNotAllowed } from '../../wire/invalid-request.ts';
import { readWindow } from '../../wire/service-tier.ts';
import { selectKeptMessages, triggerType } from './compaction.ts';
import { translateInput } from './input.ts';
import { callersTypes, selectTools, placeTools, translateTools, translateTool } from './tools.ts';
import type { ResponsesEvent } from './answer-items.ts';
import { renderCommentFrame, renderEventFrame, renderEventPieces } from '../../stream/sse.ts';

export const responsesEndpoint: Endpoint = {
  ...endpointRoutes.responses,
  storing: async () => (await import('./stored-input.ts')).storedReading,
  read: readingOf((body) => parseRequest(ResponsesRequest, body)),
  counting: {
    path: countingRoutes.responses.path,
    read: readingOf(addInput),
    answer: (tokens) => ({ object: 'response.input_tokens', input_tokens: tokens }),
  },
  compacting: { path: compactRoute.path, read: readingOf(addInput, 'path') },
};

function readingOf(parse: (body: unknown) => ResponsesRequest, compacts?: 'path'): Endpoint['read'] {
  return (body, _headers, storage, summaryOf) => readResponses(parse(body), { storage, summaryOf, compacts });
}

function addInput(body: unknown): ResponsesRequest {
  const request = parseRequest(StoredInputRequest, body);
  return { ...request, input: request.input ?? [] };
}

const toolDetails = ['allowed_callers', 'defer_loading', 'output_schema'];
/** See `findDetails`. */
const details = {
  input: ['caller', 'agent', 'detail', 'prompt_cache_breakpoint', ...toolDetails],
  tools: toolDetails,
};

interface Reading {
  storage?: StorageAtHand | undefined;
  summaryOf?: SummaryOpener | undefined;
  compacts?: 'path' | undefined;
}

function readResponses(request: ResponsesRequest, given: Reading): EndpointRequest {
  const { chat, placed, declared, call, ...reading } = translateRequest(request, given);
  const { compacts } = call;
  checkLogprobs(chat, [reading.outputTokensMax]);
  const [unknown, served] = [findUnknownFields(request), selectServedFields(request)];
  return {
    call: { form: endpointRoutes.responses.name, request: chat, unknown, served, ...call },
    placed,
    ...reading,
    // Only responses are stored.
    storage: compacts === 'path' ? undefined : reading.storage,
    keepsState: keepsState(request) || compacts !== undefined,
    renderer: (identity, facts) => {
      const asked = {
        started: buildStartedResponse(identity),
        echo: echoOf.bind(undefined, request, chat),
        declared,
        summary: readSummaryKind(request) !== undefined,
        keepsState: keepsState(request),
        logprobs: wantsLogprobs(request),
        compacts: compacts !== undefined,
      };
      const events = new ChatToResponses(asked, facts);
      if (compacts === 'path')
        return createCompactionRenderer(events, selectKeptMessages(placed, identity.requestId));
      return request.stream === true ? createStreamRenderer(events) : createJsonRenderer(events);
    },
  };
}

/** Converts a Responses request to the equivalent chat request. Throws InvalidRequest. */
export function translateRequest(request: ResponsesRequest, { storage, summaryOf, ...asked }: Reading = {}) {
  refuseStored(request, storage);
  if (typeof request.n === 'number' && request.n > 1)
    throw new InvalidRequest(
      'unsupported_parameter',
      'n',
      "'n' above 1 is not supported: a response has one answer.",
    );
  const own = itemsOf(request.input);
  const inBody = own.map((item, i): PlacedItem => ({ item, param: `input[${i}]` }));
  const unread = storage?.stored ? undefined : storage?.reading.references(request);
  /** The whole conversation, the items of stored turns first. */
  const whole = storage ? storage.reading.placed(inBody, storage.stored) : inBody;
  const placed = asked.compacts ? [...whole, { item: { type: triggerType }, param: 'input' }] : whole;
  const asksInItem = placed.at(-1)?.item['type'] === triggerType;
  const compacts: CanonicalCall['compacts'] = asked.compacts ?? (asksInItem ? 'item' : undefined);
  const converted = translateTools(placeTools(request.tools ?? [], placed));
  const { declared, dropped: droppedTools } = converted;
  const input = translateInput(placed, { declared, isPart: unread !== undefined, summaryOf });
  const { messages: conversation, found, ...state } = input;
  const messages = prependInstructions(request.instructions, conversation);
  const instructions = messages[0] === conversation[0] ? undefined : messages[0];
  const [first] = storage?.stored?.earlier ?? [];
  // The item that asks for the summary does not count as conversation.
  if ((compacts ? conversation.length === 1 : messages.length === 0) && !unread)
    throw new InvalidRequest('invalid_value', 'input', "'input' contains no message and no call.");

  const chosen = selectTools(request.tool_choice, converted);
  const parallel = request.parallel_tool_calls;
  const stored = storage?.reading.asked(request, own);
  const chat: ChatRequest = {
    model: request.model,
    messages,
    ...chatFields(request),
    ...(stored?.tier !== undefined && { service_tier: stored.tier }),
    ...(found.effort !== undefined && { reasoning_effort: found.effort }),
    ...chosen,
    ...(chosen.tools && typeof parallel === 'boolean' && { parallel_tool_calls: parallel }),
  };
  const items = found.items({
    first: instructions,
    tools: converted.byItem,
    effort: request.reasoning?.effort ?? undefined,
  });
  const beginning = first && prependInstructions(first.instructions, conversation);
  const outputTokensMax = request.max_output_tokens ?? undefined;
  const storing = { storage: stored, unread };
  const kept = { messages, after: items && [...items.after.values()] };
  const lostMedia = findMissingMedia(
    walkMedia(
      whole.map(({ item }) => item),
      'input',
    ),
    kept,
  ).map(fieldPathOf);
  const messageFields = findDetails({ ...request, input: own }, details);
  const listed = {
    ...(lostMedia.length > 0 && { lostMedia }),
    ...(messageFields.length > 0 && { messageFields }),
    clientNames: { response_format: 'text.format' },
  };
  const call = { beginning, items, instructions, compacts, ...listed };
  const form = { chat: compacts ? dropFieldsForSummary(chat) : chat, call };
  return { ...form, declared, placed, outputTokensMax, droppedTools, ...state, ...storing };
}

/** Text of any form, and no call. */
function dropFieldsForSummary({
  response_format: _form,
  stop: _stop,
  logprobs: _probabilities,
  top_logprobs: _top,
  ...chat
}: ChatRequest): ChatRequest {
  return { ...chat, ...(chat.tools && { tool_choice: 'none' }) };
}

const itemsOf = (input: ResponsesRequest['input']): readonly JsonRecord[] =>
  typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : input;

const prependInstructions = (
  instructions: string | null | undefined,
  conversation: ChatMessage[],
): ChatMessage[] =>
  instructions ? [{ role: 'system', content: instructions }, ...conversation] : conversation;

/** Why a request for something that is not stored for any key is refused, by field. */
const neverStored = {
  conversation:
    'the relay does not store conversation objects. Use previous_response_id, or send the whole conversation as input',
  prompt: 'the relay does not store prompt templates. Send their text as instructions and input',
} as const;

const notForKey = {
  previous_response_id:
    'responses are not stored for this key. Send the whole conversation as input, with store: false',
  background: 'responses are not stored for this key. Leave it out, and read the answer as it is streamed',
  background_options: 'responses are not stored for this key',
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

/** One heartbeat in this many is an event: some clients ignore comments and time out after minutes. */
const idlesPerEvent = 4;

/** Coding agents shorten the conversation on this code; a 413 they would send again. */
const tooLarge = { status: 400, code: 'context_length_exceeded' };

function createStreamRenderer(events: ChatToResponses): Renderer {
  let number = 0;
  let idles = 0;
  const data = ({ type, ...rest }: ResponsesEvent): string =>
    JSON.stringify({ type, sequence_number: number++, ...rest });
  const frame = (event: ResponsesEvent): string => renderEventFrame(event.type, data(event));
  const frames = (list: ResponsesEvent[]): string[] => list.map(frame);
  return {
    ...streamedAnswer,
    tooLarge,
    push(chunk) {
      const written = frames(events.push(chunk));
      if (written.length > 0) idles = 0;
      return written;
    },
    /**
     * The last events repeat the whole answer up to four times, so each is written before the next is made, and its data
     * is not copied into a frame.
     */
    *end() {
      for (const event of events.end()) yield renderEventPieces(event.type, data(event));
    },
    idle() {
      const opening = frames(events.start());
      if (opening.length > 0) return opening.join('');
      idles += 1;
      if (idles % idlesPerEvent > 0) return renderCommentFrame('ping');
      return frames([events.inProgress()]).join('');
    },
    failed: (error) => frames(events.renderFailure(error)).join(''),
    close: () => frames(events.close()),
    ...toObject(events),
  };
}

/** The conversation as it goes on: an object that is no response, and is not stored. */
function createCompactionRenderer(events: ChatToResponses, kept: readonly JsonRecord[]): Renderer {
  return {
    ...createJsonRenderer(events),
    end() {
      events.end();
      const { id, created_at, output, usage, quota } = events.whole();
      const object = 'response.compaction';
      return [JSON.stringify({ id, object, created_at, output: [...kept, ...output], usage, quota })];
    },
  };
}

const toObject = (events: ChatToResponses): Pick<Renderer, 'whole' | 'queued'> => ({
  whole: (error) => events.whole(error),
  queued: () => events.renderQueued(),
});

function createJsonRenderer(events: ChatToResponses): Renderer {
  return {
    ...jsonAnswer,
    tooLarge,
    push(chunk) {
      events.push(chunk);
      return [];
    },
    end: () => [JSON.stringify(events.end().at(-1)?.['response'])],
    close() {
      events.close();
      return [];
    },
    ...toObject(events),
  };
}

/**
 * The fields of the request that OpenAI's and Open Responses' schemas require in the answer, as they are in force:
 * what was not sent has OpenAI's default.
 */
function echoOf(request: ResponsesRequest, chat: ChatRequest, sent: SentFacts): JsonRecord {
  const lost = new Set(sent.dropped);
  const inForce = <T>(field: string, value: T): T | undefined => (lost.has(field) ? undefined : value);
  return {
    background: request['background'] === true,
    frequency_penalty: numberOr(0, inForce('frequency_penalty', request['frequency_penalty'])),
    ...(sent.inputTransformations && { input_transformations: sent.inputTransformations }),
    instructions: request.instructions ?? null,
    max_output_tokens: limitInForce(request.max_output_tokens ?? null, sent),
    max_tool_calls: countOrNull(inForce('max_tool_calls', request['max_tool_calls'])),
    metadata: asRecord(inForce('metadata', request['metadata'])),
    parallel_tool_calls: inForce('parallel_tool_calls', request.parallel_tool_calls) ?? true,
    presence_penalty: numberOr(0, inForce('presence_penalty', request['presence_penalty'])),
    previous_response_id: request.previous_response_id ?? null,
    prompt_cache_key: textOrNull(inForce('prompt_cache_key', request['prompt_cache_key'])),
    reasoning: {
      effort: inForce('reasoning_effort', sent.effort ?? request.reasoning?.effort) ?? null,
      summary: readSummaryKind(request) ?? null,
    },
    safety_identifier: textOrNull(inForce('safety_identifier', request['safety_identifier'])),
    ...echoTier(sent.serviceTier),
    store: false,
    temperature: inForce('temperature', request.temperature) ?? 1,
    text: echoText(request.text, lost),
    tool_choice: echoChoice(sent.toolChoice ?? inForce('tool_choice', chosen(request, chat))),
    tools: echoTools(request, lost.has('tools')),
    top_logprobs: lost.has('logprobs') ? 0 : (inForce('top_logprobs', readTopLogprobs(request)) ?? 0),
    top_p: inForce('top_p', request.top_p) ?? 1,
    truncation: inForce('truncation', request['truncation']) === 'auto' ? 'auto' : 'disabled',
  };
}

function echoTier(tier = 'default'): JsonRecord {
  const hours = readWindow(tier);
  if (hours === undefined) return { service_tier: tier };
  return { background_options: { completion_window: hours }, service_tier: 'default' };
}

/** Null where the client set none, since a limit of the relay's own is no field of its request. */
const limitInForce = (asked: number | null, { outputTokensMax }: SentFacts): number | null =>
  asked === null || outputTokensMax === undefined ? asked : outputTokensMax;

function echoText(text: ResponsesRequest['text'], lost: ReadonlySet<string>): JsonRecord {
  const { verbosity, ...rest } = text ?? {};
  const format = text?.format ?? { type: 'text' };
  return { ...rest, ...(verbosity !== undefined && !lost.has('verbosity') && { verbosity }), format };
}

/** The choice that the call was made with. The canonical call has none where no tool is left to choose among. */
const chosen = ({ tool_choice: choice }: ResponsesRequest, { tool_choice: used }: ChatRequest): unknown =>
  used === 'auto' ? used : choice;

/** Without the tools that run at the upstream, if those were left out. */
const echoTools = ({ tools }: ResponsesRequest, lostHosted: boolean): JsonRecord[] =>
  (tools ?? [])
    .map(translateTool)
    .filter((tool) => isWhole(tool) && !(lostHosted && isHosted(String(tool['type']))))
    .map(echoTool);

const isHosted = (type: string): boolean => type !== 'namespace' && !callersTypes.has(type);

const isWhole = ({ type, name }: JsonRecord): boolean => type !== 'function' || typeof name === 'string';

/** OpenAI's schema requires all keys of a function tool. */
function echoTool(tool: JsonRecord): JsonRecord {
  if (tool['type'] !== 'function') return tool;
  const { description, parameters, strict } = tool;
  return {
    ...tool,
    description: textOrNull(description),
    parameters: isRecord(parameters) ? parameters : null,
    strict: typeof strict === 'boolean' ? strict : null,
  };
}

const textOrNull = (value: unknown): string | null => (typeof value === 'string' ? value : null);
const numberOr = (usual: number, value: unknown): number => (typeof value === 'number' ? value : usual);
const countOrNull = (value: unknown): number | null => (Number.isInteger(value) ? Number(value) : null);

/** OpenAI's schema requires a type in a choice, so a choice without one becomes `auto`. */
const echoChoice = (choice: unknown): unknown =>
  typeof choice === 'string' || (isRecord(choice) && typeof choice['type'] === 'string') ? choice : 'auto';
