/** A server of chat completions: its request, the rules that several have, its replies and the parts in which they differ. */
import {
  answerAsAsked,
  countOutput,
  piecesOf,
  PrefixMemory,
  refusalOf,
  wordsOf,
  type AskedTurn,
  type Counts,
  type JsonSchema,
  type ScriptCall,
  type ScriptTool,
  type Transcript,
  type ModelTurn,
} from './script.ts';
import { asRecord, isRecord, jsonText, recordsIn } from '../../../shared/wire/json.ts';
import {
  readContentText,
  replyWithJson,
  parseObject,
  refuseByRule,
  secretOf,
  formatSseFrame,
  replyWithSse,
  type Check,
  type VendorRefusal,
  type Rules,
  type Vendor,
  type VendorReply,
} from './vendor.ts';

/** Its rules, its words, its way to answer. */
export interface ChatServer extends Pick<AskedTurn, 'refuse' | 'failures'> {
  rules: Rules<VendorChatCall>;
  /** The data of the event that ends a broken stream. */
  streamError: unknown;
  style(call: VendorChatCall): ChatStyle;
  thinks(call: VendorChatCall): boolean;
  /** Prompts of fewer tokens are not cached. */
  cachedFrom: number;
  notes?(call: VendorChatCall): string[];
}

/** How a server of chat completions answers. */
export interface ChatStyle {
  id: string;
  callId(place: CallPlace): string;
  /** The field that carries thinking. Default: it is not shown. */
  thinkingField?: 'reasoning_content';
  /** Thinking stands in the content, between tags. */
  thinkTags?: boolean;
  /** The pieces of a text. Default: tokens of the script. */
  wordsOf?: (text: string) => string[];
  usage(counts: Counts): object;
  /** The chunk that carries a stream's usage. Default: a last chunk, if the request asks. */
  usageIn?: 'choice';
  /** Fields of a whole call beside the standard ones. */
  extra?(place: CallPlace): object | undefined;
  /** In a stream these fields come in a last piece that has no index. */
  extraTrails?: boolean;
  /** Index of a call in a stream. Default: its place. */
  callIndex?(index: number): number | string;
  nameInPieces?: boolean;
  /** The last chunk repeats each call as a whole. */
  repeatsCalls?: boolean;
  /** Calls arrive whole, in one chunk each. */
  wholeCalls?: boolean;
}

interface CallPlace {
  turn: ModelTurn;
  index: number;
}

export function createChatDouble(
  { path, notFound, ...named }: Pick<Vendor, 'name' | 'base' | 'models'> & { path: RegExp; notFound: string },
  server: ChatServer,
): Vendor {
  const memory = new PrefixMemory();
  return {
    ...named,
    rules: Object.keys(server.rules),
    serve: (request) =>
      request.method === 'POST' && path.test(request.path)
        ? serveChat(request, server, memory)
        : server.refuse({ status: 404, message: notFound }),
  };
}

export function serveChat(
  { headers, text }: { headers: Record<string, string>; text: string },
  server: ChatServer,
  memory: PrefixMemory,
): VendorReply {
  const { refuse, failures } = server;
  const call = parseChatCall(headers, text);
  if (!call) return refuse({ status: 400, message: 'A JSON object with a model and messages is wanted.' });
  const refused = refuseByRule(server.rules, call, refuse);
  if (refused) return refused;
  const { body } = call;
  return answerAsAsked({
    transcript: readChatTranscript(call),
    streams: body['stream'] === true,
    thinks: server.thinks(call),
    limit: readTokenLimit(call),
    refuse,
    failures,
    brokenOff: { status: 500, message: 'Internal server error', type: 'server_error' },
    streamError: formatSseFrame(server.streamError),
    overlongStream: () =>
      replyWithSse(refuse(refusalOf(failures.window)).frames.map((frame) => formatSseFrame(String(frame)))),
    reply(turn) {
      const { total, seen } = memory.promptCounts(cacheScope(call), listPromptParts(call));
      const cacheRead = total < server.cachedFrom ? 0 : seen;
      const prompt = { input: total - cacheRead, cacheRead, cacheWrite5m: 0, cacheWrite1h: 0 };
      const style = server.style(call);
      const usage = style.usage({ ...prompt, ...countOutput(turn) });
      return replyToChat(call, { turns: [turn], usage }, style);
    },
    notes: () => server.notes?.(call) ?? [],
  });
}

/** A chat request whose outer form is right; the rules look at the rest. */
export interface VendorChatCall {
  headers: Record<string, string>;
  body: Record<string, unknown>;
  model: string;
  messages: ChatMessage[];
}

interface ChatMessage extends Record<string, unknown> {
  role: string;
  calls: ChatToolCall[];
}

interface ChatToolCall {
  id: string;
  name: string;
  input: string;
  /** The call as it was sent. */
  sent: Record<string, unknown>;
}

/** Returns nothing for a body without a model or messages. */
export function parseChatCall(headers: Record<string, string>, text: string): VendorChatCall | undefined {
  const body = parseObject(text);
  const model = body?.['model'];
  if (!body || !Array.isArray(body['messages']) || typeof model !== 'string') return undefined;
  const messages = recordsIn(body['messages']).map((message) =>
    Object.assign({}, message, {
      role: jsonText(message['role']),
      calls: recordsIn(message['tool_calls']).map(callIn),
    }),
  );
  return { headers, body, model, messages };
}

function callIn(sent: Record<string, unknown>): ChatToolCall {
  const { name, arguments: input, input: free } = asRecord(sent['function'] ?? sent['custom']);
  return { id: jsonText(sent['id']), name: jsonText(name), input: jsonText(input ?? free), sent };
}

export function readChatTranscript({ body, messages }: VendorChatCall): Transcript {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  const after = messages.slice(lastUser + 1);
  const names = new Map(after.flatMap(({ calls }) => calls.map(({ id, name }) => [id, name])));
  return {
    said: readContentText(messages[lastUser]?.['content']),
    turns: after.filter(({ calls }) => calls.length > 0).length,
    results: after
      .filter(({ role }) => role === 'tool')
      .map(({ tool_call_id: id, content }) => ({
        name: names.get(jsonText(id)) ?? '',
        text: readContentText(content),
      })),
    tools: recordsIn(body['tools']).map(readTool),
    choice: readChoice(body['tool_choice']),
    stops: [body['stop'] ?? []].flat().map(jsonText),
    ...(body['parallel_tool_calls'] === false && { single: true }),
    ...readSchema(body['response_format']),
    whole: () => JSON.stringify(body['messages']),
  };
}

function readTool(tool: Record<string, unknown>): ScriptTool {
  const { name, parameters } = asRecord(tool['function'] ?? tool['custom']);
  return {
    name: jsonText(name),
    ...(isRecord(parameters) && { parameters }),
    custom: tool['type'] === 'custom',
  };
}

function readChoice(choice: unknown): Transcript['choice'] {
  if (choice === 'none' || choice === 'required') return choice;
  const { name } = asRecord(asRecord(choice)['function'] ?? asRecord(choice)['custom']);
  return name === undefined ? 'auto' : { name: jsonText(name) };
}

function readSchema(format: unknown): { schema?: JsonSchema } {
  const { schema } = asRecord(asRecord(format)['json_schema']);
  return isRecord(schema) ? { schema } : {};
}

export const readTokenLimit = ({ body }: VendorChatCall): number =>
  Number(body['max_completion_tokens'] ?? body['max_tokens'] ?? Infinity);

/** Tools, then messages: what a cache of prefixes sees. */
const listPromptParts = ({ body, messages }: VendorChatCall): string[] => [
  JSON.stringify(body['tools'] ?? []),
  ...messages.map(({ calls: _calls, ...message }) => JSON.stringify(message)),
];

/** OpenAI finds prefixes by `prompt_cache_key`, DeepSeek by `user_id`. */
const cacheScope = ({
  headers,
  model,
  body: { prompt_cache_key: key, user_id: user },
}: VendorChatCall): string => [secretOf(headers), model, jsonText(key), jsonText(user)].join(' ');

/** The first top-level field that is not in the list. */
export const findUnknownField = (body: Record<string, unknown>, known: string[]): string | undefined =>
  Object.keys(body).find((name) => !known.includes(name));

export const commonFields = (
  'model messages stream stream_options max_tokens max_completion_tokens temperature top_p n stop tools ' +
  'tool_choice response_format'
).split(' ');

/** Call ids in the history are ones that `keeps` takes. */
export const callIds =
  (
    keeps: (id: string) => boolean,
    refusal: (id: string, place: string) => VendorRefusal,
  ): Check<VendorChatCall> =>
  ({ messages }) => {
    const wrong = messages
      .flatMap(({ calls }, message) => calls.map(({ id }, call) => ({ id, message, call })))
      .find(({ id }) => !keeps(id));
    return wrong && refusal(wrong.id, `messages[${wrong.message}].tool_calls[${wrong.call}].id`);
  };

/** Each call is answered by a tool message right after its turn. */
export const callsAnswered =
  (refusal: (ids: string[]) => VendorRefusal | string): Check<VendorChatCall> =>
  ({ messages }) => {
    for (const [index, { calls }] of messages.entries()) {
      const rest = messages.slice(index + 1);
      const end = rest.findIndex(({ role }) => role !== 'tool');
      const answers = new Set(
        rest.slice(0, end === -1 ? rest.length : end).map((message) => message['tool_call_id']),
      );
      const open = calls.filter(({ id }) => !answers.has(id));
      if (open.length > 0) return refusal(open.map(({ id }) => id));
    }
    return undefined;
  };

/** Each tool message answers a call of the turn before it. */
export const checkResultsAsked =
  (refusal: (message: number) => VendorRefusal | string): Check<VendorChatCall> =>
  ({ messages }) => {
    const stray = messages.findIndex(({ role, tool_call_id: id }, index) => {
      if (role !== 'tool') return false;
      const turn = messages.slice(0, index).findLast((message) => message.role !== 'tool');
      return !turn?.calls.some((call) => call.id === jsonText(id));
    });
    return stray >= 0 && refusal(stray);
  };

/** Tools are functions; those of another type, such as custom, are refused. */
export const checkFunctionsOnly =
  (refusal: (tool: number, type: string) => VendorRefusal | string): Check<VendorChatCall> =>
  ({ body }) => {
    const tools = recordsIn(body['tools']);
    const other = tools.findIndex(({ type }) => type !== 'function');
    return other >= 0 && refusal(other, jsonText(tools[other]?.['type']));
  };

interface ChatAnswer {
  /** One for each choice. */
  turns: ModelTurn[];
  usage: object;
}

export const replyToChat = (call: VendorChatCall, answer: ChatAnswer, style: ChatStyle): VendorReply =>
  call.body['stream'] === true ? streamReply(call, answer, style) : buildWholeReply(call, answer, style);

const finishReasons: Record<ModelTurn['finish'], string> = {
  stop: 'stop',
  calls: 'tool_calls',
  length: 'length',
  refusal: 'stop',
};

const created = 1_790_000_000;

const buildWholeReply = (
  { model }: VendorChatCall,
  { turns, usage }: ChatAnswer,
  style: ChatStyle,
): VendorReply =>
  replyWithJson(200, {
    id: style.id,
    object: 'chat.completion',
    created,
    model,
    choices: turns.map((turn, index) => ({
      index,
      message: buildWholeMessage(turn, style),
      logprobs: null,
      finish_reason: finishReasons[turn.finish],
    })),
    usage,
  });

function buildWholeMessage(turn: ModelTurn, style: ChatStyle): object {
  const text = contentOf(turn, style);
  const calls = turn.calls.map((call, index) => buildWholeCall(call, { turn, index }, style));
  return {
    role: 'assistant',
    content: turn.finish === 'refusal' || (text === '' && calls.length > 0) ? null : text,
    refusal: turn.finish === 'refusal' ? turn.text : null,
    ...(style.thinkingField && { [style.thinkingField]: turn.thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

const contentOf = ({ thinking, text }: ModelTurn, { thinkTags }: ChatStyle): string =>
  thinkTags ? `<think>${thinking}</think>\n\n${text}` : text;

const buildWholeCall = (
  { name, input, custom }: ScriptCall,
  place: CallPlace,
  style: ChatStyle,
  extra = style.extra?.(place),
): object => ({
  id: style.callId(place),
  ...extra,
  ...(custom
    ? { type: 'custom', custom: { name, input } }
    : { type: 'function', function: { name, arguments: input } }),
});

/** All choices in parallel. */
function streamReply(call: VendorChatCall, { turns, usage }: ChatAnswer, style: ChatStyle): VendorReply {
  const options = call.body['stream_options'] as { include_usage?: boolean } | null | undefined;
  const head = { id: style.id, object: 'chat.completion.chunk', created, model: call.model };
  const formatChunk = (
    index: number,
    delta: object,
    finish: string | null = null,
    more: object = {},
  ): string =>
    formatSseFrame({ ...head, choices: [{ index, delta, logprobs: null, finish_reason: finish, ...more }] });
  const last = style.usageIn === 'choice' ? { usage } : {};
  const deltas = turns.map((turn) => [{ role: 'assistant', content: '' }, ...deltasOf(turn, style)]);
  const steps = Array.from({ length: Math.max(...deltas.map(({ length }) => length)) }, (_, step) => step);
  return replyWithSse([
    ...steps.flatMap((step) =>
      deltas.flatMap((list, index) => (list[step] ? [formatChunk(index, list[step])] : [])),
    ),
    ...turns.map((turn, index) =>
      formatChunk(index, buildLastDelta(turn, style), finishReasons[turn.finish], last),
    ),
    ...(options?.include_usage && style.usageIn === undefined
      ? [formatSseFrame({ ...head, choices: [], usage })]
      : []),
    formatSseFrame('[DONE]'),
  ]);
}

function deltasOf(turn: ModelTurn, style: ChatStyle): object[] {
  const field = style.thinkingField;
  const textField = turn.finish === 'refusal' ? 'refusal' : 'content';
  return [
    ...(field ? wordsOf(turn.thinking).map((word) => ({ [field]: word })) : []),
    ...splitText(turn, style).map((word) => ({ [textField]: word })),
    ...turn.calls.flatMap((call, index) =>
      callPieces(call, { turn, index }, style).map((piece) => ({ tool_calls: [piece] })),
    ),
  ];
}

/** Tags are cut over chunks. */
const splitText = (turn: ModelTurn, style: ChatStyle): string[] =>
  style.thinkTags ? piecesOf(contentOf(turn, style), 5) : (style.wordsOf ?? wordsOf)(turn.text);

function callPieces(call: ScriptCall, place: CallPlace, style: ChatStyle): object[] {
  const index = style.callIndex?.(place.index) ?? place.index;
  if (style.wholeCalls) {
    const extra = style.extra?.(place);
    const piece = { index, ...buildWholeCall(call, place, style, style.extraTrails ? {} : extra) };
    return style.extraTrails && extra ? [piece, extra] : [piece];
  }
  const kind = call.custom ? 'custom' : 'function';
  const inputField = call.custom ? 'input' : 'arguments';
  const [first = '', ...others] = style.nameInPieces ? piecesOf(call.name) : [call.name];
  return [
    { index, id: style.callId(place), type: kind, [kind]: { name: first, [inputField]: '' } },
    ...others.map((name) => ({ index, [kind]: { name } })),
    ...piecesOf(call.input).map((input) => ({ index, [kind]: { [inputField]: input } })),
  ];
}

function buildLastDelta(turn: ModelTurn, style: ChatStyle): object {
  if (!style.repeatsCalls || turn.calls.length === 0) return {};
  const calls = turn.calls.map((call, index) => ({
    index: style.callIndex?.(index) ?? index,
    ...buildWholeCall(call, { turn, index }, style),
  }));
  return { tool_calls: calls };
}
