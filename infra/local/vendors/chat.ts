import {
  failedEarly,
  failing,
  sseFrame,
  sseReply,
  firstBroken,
  objectIn,
  textIn,
  type Refusal,
  type Rule,
  type VendorReply,
  isObject,
  objectsIn,
  type RuleFacts,
  jsonReply,
} from './vendor.ts';
import {
  type PrefixMemory,
  scriptedTurn,
  type Turn,
  limited,
  outputTokens,
  promptTokens,
  wordsOf,
  type Counts,
  asks,
  earlyFailureIn,
  lateFailureIn,
  type EarlyFailure,
  type ScriptTool,
  type Transcript,
  type ScriptCall,
  piecesOf,
} from './script.ts';
import type { JsonSchema } from '../demo/upstream.ts';

/** A server of chat completions: its rules, its words, its way to answer. */
export interface ChatServer {
  rules: Rule<ChatCall>[];
  /** Renders a refusal in the vendor's error form. */
  refuse: (refusal: Refusal) => VendorReply;
  failures: Record<EarlyFailure, Refusal>;
  /** The data of the event that ends a broken stream. */
  streamError: unknown;
  style(call: ChatCall): ChatStyle;
  /** Whether the model thinks for this call. */
  thinks(call: ChatCall): boolean;
  /** Prompts of fewer tokens are not cached. */
  cachedFrom: number;
  notes?(call: ChatCall): string[];
}

export function serveChat(
  { headers, text }: { headers: Record<string, string>; text: string },
  server: ChatServer,
  memory: PrefixMemory,
): VendorReply {
  const body = objectIn(text);
  if (!body || !Array.isArray(body['messages']) || typeof body['model'] !== 'string')
    return server.refuse({ status: 400, message: 'A JSON object with a model and messages is wanted.' });
  const call = chatCall(headers, body);
  const broken = firstBroken(server.rules, call);
  if (broken) return { ...server.refuse(broken.refusal), rule: broken.rule };
  const transcript = transcriptOf(call);
  const early = earlyFailureIn(transcript.said);
  if (early) return failedEarly(server.refuse(server.failures[early]), early, transcript.said);
  if (asks(transcript.said, 'overlong')) return overlong(server, body['stream'] === true);
  const late = lateFailureIn(transcript.said);
  if (late === 'cut' && body['stream'] !== true)
    return server.refuse({ status: 500, message: 'Internal server error', type: 'server_error' });
  const scripted = scriptedTurn(transcript);
  const turn = limited(server.thinks(call) ? scripted : { ...scripted, thinking: '' }, tokenLimit(call));
  const answer = { turn, counts: countsOf(call, turn, { memory, from: server.cachedFrom }) };
  const reply = failing(chatReply(call, answer, server.style(call)), late, sseFrame(server.streamError));
  return { ...reply, notes: server.notes?.(call) ?? [] };
}

/** A stream that starts as if all were well. */
function overlong({ refuse, failures }: ChatServer, streams: boolean): VendorReply {
  const refused = refuse(failures.window);
  return streams ? sseReply(refused.frames.map((frame) => sseFrame(String(frame)))) : refused;
}

function countsOf(
  call: ChatCall,
  turn: Turn,
  { memory, from }: { memory: PrefixMemory; from: number },
): Counts {
  const parts = promptParts(call);
  const total = promptTokens(parts.join(''));
  // OpenAI finds prefixes by `prompt_cache_key`, DeepSeek by `user_id`.
  const { prompt_cache_key: key, user_id: user } = call.body;
  const scope = [secretOf(call.headers), call.model, textIn(key), textIn(user)].join(' ');
  const seen = memory.countSeen(scope, parts);
  const read = total < from ? 0 : promptTokens(parts.slice(0, seen).join(''));
  const cacheRead = Math.min(read, total - 1);
  const thinking = wordsOf(turn.thinking).length;
  return {
    input: total - cacheRead,
    cacheRead,
    cacheWrite5m: 0,
    cacheWrite1h: 0,
    output: outputTokens(turn),
    thinking,
  };
}

/** A chat request whose outer form is right; the rules look at the rest. */
export interface ChatCall {
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

function chatCall(headers: Record<string, string>, body: Record<string, unknown>): ChatCall {
  const messages = objectsIn(body['messages']).map((message) =>
    Object.assign({}, message, {
      role: textIn(message['role']),
      calls: objectsIn(message['tool_calls']).map(callIn),
    }),
  );
  return { headers, body, model: textIn(body['model']), messages };
}

function callIn(sent: Record<string, unknown>): ChatToolCall {
  const { name, arguments: input, input: free } = inner(sent['function'] ?? sent['custom']);
  return { id: textIn(sent['id']), name: textIn(name), input: textIn(input ?? free), sent };
}

const inner = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});

const contentText = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : objectsIn(content)
        .map((part) => textIn(part['text']))
        .join(' ');

function transcriptOf({ body, messages }: ChatCall): Transcript {
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  const after = messages.slice(lastUser + 1);
  const names = new Map(after.flatMap(({ calls }) => calls.map(({ id, name }) => [id, name])));
  return {
    said: contentText(messages[lastUser]?.['content']),
    turns: after.filter(({ calls }) => calls.length > 0).length,
    results: after
      .filter(({ role }) => role === 'tool')
      .map(({ tool_call_id: id, content }) => ({
        name: names.get(textIn(id)) ?? '',
        text: contentText(content),
      })),
    tools: objectsIn(body['tools']).map(toolIn),
    choice: choiceIn(body['tool_choice']),
    stops: [body['stop'] ?? []].flat().map(textIn),
    ...(body['parallel_tool_calls'] === false && { single: true }),
    ...schemaIn(body['response_format']),
  };
}

function toolIn(tool: Record<string, unknown>): ScriptTool {
  const { name, parameters } = inner(tool['function'] ?? tool['custom']);
  return {
    name: textIn(name),
    ...(isObject(parameters) && { parameters }),
    custom: tool['type'] === 'custom',
  };
}

function choiceIn(choice: unknown): Transcript['choice'] {
  if (choice === 'none' || choice === 'required') return choice;
  const { name } = inner(inner(choice)['function'] ?? inner(choice)['custom']);
  return name === undefined ? 'auto' : { name: textIn(name) };
}

function schemaIn(format: unknown): { schema?: JsonSchema } {
  const { schema } = inner(inner(format)['json_schema']);
  return isObject(schema) ? { schema } : {};
}

/** The highest number of tokens that the request allows. */
const tokenLimit = ({ body }: ChatCall): number =>
  Number(body['max_completion_tokens'] ?? body['max_tokens'] ?? Infinity);

/** Tools, then messages: what a cache of prefixes sees. */
const promptParts = ({ body, messages }: ChatCall): string[] => [
  JSON.stringify(body['tools'] ?? []),
  ...messages.map(({ calls: _calls, ...message }) => JSON.stringify(message)),
];

export const secretOf = (headers: Record<string, string>): string =>
  /^Bearer (.+)$/.exec(headers['authorization'] ?? '')?.[1] ?? '';

/** Rules that several chat servers have, each with its own words and sources. */

/** The first top-level field that is not in the list. */
export const unknownField = (body: Record<string, unknown>, known: string[]): string | undefined =>
  Object.keys(body).find((name) => !known.includes(name));

/** The fields that OpenAI-compatible servers have in common. */
export const commonFields = [
  'model',
  'messages',
  'stream',
  'stream_options',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'n',
  'stop',
  'tools',
  'tool_choice',
  'response_format',
];

type Place = { message: number; call: number };

/** The first call id in the history that `keeps` refuses, with its place. */
export function refusedCallId(
  { messages }: ChatCall,
  keeps: (id: string) => boolean,
): (Place & { id: string }) | undefined {
  for (const [message, { calls }] of messages.entries()) {
    const call = calls.findIndex(({ id }) => !keeps(id));
    if (call >= 0) return { message, call, id: calls[call]?.id ?? '' };
  }
  return undefined;
}

/** Each call is answered by a tool message right after its turn. */
export const callsAnswered = (
  facts: Pick<RuleFacts, 'source' | 'date'>,
  refusal: (ids: string[]) => Refusal,
): Rule<ChatCall> => ({
  id: 'calls-answered',
  says: 'Each tool call is answered by a tool message directly after its turn.',
  ...facts,
  check({ messages }) {
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
  },
});

/** Each tool message answers a call of the turn before it. */
export const resultsAsked = (
  facts: Pick<RuleFacts, 'source' | 'date'>,
  refusal: (message: number) => Refusal,
): Rule<ChatCall> => ({
  id: 'results-asked',
  says: 'Each tool message answers a call of the turn before it.',
  ...facts,
  check({ messages }) {
    const stray = messages.findIndex(({ role, tool_call_id: id }, index) => {
      if (role !== 'tool') return false;
      const turn = messages.slice(0, index).findLast((message) => message.role !== 'tool');
      return !turn?.calls.some((call) => call.id === textIn(id));
    });
    return stray >= 0 && refusal(stray);
  },
});

/** Tools are functions: another type is refused. */
export const functionsAlone = (
  facts: Pick<RuleFacts, 'source' | 'date'>,
  refusal: (tool: number, type: string) => Refusal,
): Rule<ChatCall> => ({
  id: 'functions-alone',
  says: 'A tool is a function; tools of another type, such as custom, are refused.',
  ...facts,
  check({ body }) {
    const tools = objectsIn(body['tools']);
    const other = tools.findIndex(({ type }) => type !== 'function');
    return other >= 0 && refusal(other, textIn(tools[other]?.['type']));
  },
});

/** How a server of chat completions answers: the parts in which they differ. */
export interface ChatStyle {
  id: string;
  callId(place: { turn: Turn; index: number }): string;
  /** The field that carries thinking; absent: it is not shown. */
  thinkingField?: 'reasoning_content';
  /** Thinking stands in the content, between tags. */
  thinkTags?: boolean;
  usage(counts: Counts): object;
  /** Where a stream carries its usage; default: a last chunk, if the request asks. */
  usageIn?: 'choice';
  /** Fields of a call beside the standard ones. */
  extra?(place: { turn: Turn; index: number }): object | undefined;
  /** In a stream the extra fields come in a last piece that has no index. */
  extraTrails?: boolean;
  /** Index of a call in a stream; default: its place. */
  callIndex?(index: number): number | string;
  nameInPieces?: boolean;
  /** The last chunk repeats each call as a whole. */
  repeatsCalls?: boolean;
  /** Calls arrive whole, in one chunk each. */
  wholeCalls?: boolean;
}

interface ChatAnswer {
  turn: Turn;
  counts: Counts;
}

const chatReply = (call: ChatCall, answer: ChatAnswer, style: ChatStyle): VendorReply =>
  call.body['stream'] === true ? streamReply(call, answer, style) : wholeReply(call, answer, style);

const finishReasons: Record<Turn['finish'], string> = {
  stop: 'stop',
  calls: 'tool_calls',
  length: 'length',
  refusal: 'stop',
  pause: 'stop',
};

function wholeReply({ model }: ChatCall, { turn, counts }: ChatAnswer, style: ChatStyle): VendorReply {
  const text = contentOf(turn, style);
  const calls = turn.calls.map((call, index) => wholeCall(call, { turn, index }, style));
  const message = {
    role: 'assistant',
    content: turn.finish === 'refusal' || (text === '' && calls.length > 0) ? null : text,
    refusal: turn.finish === 'refusal' ? turn.text : null,
    ...(style.thinkingField && { [style.thinkingField]: turn.thinking }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: finishReasons[turn.finish] };
  return jsonReply(200, {
    id: style.id,
    object: 'chat.completion',
    created: 1_790_000_000,
    model,
    choices: [choice],
    usage: style.usage(counts),
  });
}

const contentOf = ({ thinking, text }: Turn, { thinkTags }: ChatStyle): string =>
  thinkTags ? `<think>${thinking}</think>\n\n${text}` : text;

type CallPlace = { turn: Turn; index: number };

const wholeCall = ({ name, input, custom }: ScriptCall, place: CallPlace, style: ChatStyle): object => ({
  id: style.callId(place),
  ...style.extra?.(place),
  ...(custom
    ? { type: 'custom', custom: { name, input } }
    : { type: 'function', function: { name, arguments: input } }),
});

function streamReply(call: ChatCall, { turn, counts }: ChatAnswer, style: ChatStyle): VendorReply {
  const options = call.body['stream_options'] as { include_usage?: boolean } | undefined;
  const head = { id: style.id, object: 'chat.completion.chunk', created: 1_790_000_000, model: call.model };
  const usage = style.usage(counts);
  const chunk = (delta: object, finish: string | null = null, more: object = {}): string =>
    sseFrame({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason: finish, ...more }] });
  const last = style.usageIn === 'choice' ? { usage } : {};
  return sseReply([
    chunk({ role: 'assistant', content: '' }),
    ...deltasOf(turn, style).map((delta) => chunk(delta)),
    chunk(lastDelta(turn, style), finishReasons[turn.finish], last),
    ...(options?.include_usage && style.usageIn === undefined
      ? [sseFrame({ ...head, choices: [], usage })]
      : []),
    sseFrame('[DONE]'),
  ]);
}

function deltasOf(turn: Turn, style: ChatStyle): object[] {
  const field = style.thinkingField;
  const textField = turn.finish === 'refusal' ? 'refusal' : 'content';
  return [
    ...(field ? wordsOf(turn.thinking).map((word) => ({ [field]: word })) : []),
    ...textPieces(turn, style).map((word) => ({ [textField]: word })),
    ...turn.calls.flatMap((call, index) =>
      callPieces(call, { turn, index }, style).map((piece) => ({ tool_calls: [piece] })),
    ),
  ];
}

/** Tags are cut over chunks. */
const textPieces = (turn: Turn, style: ChatStyle): string[] =>
  style.thinkTags ? piecesOf(contentOf(turn, style), 5) : wordsOf(turn.text);

function callPieces(call: ScriptCall, place: CallPlace, style: ChatStyle): object[] {
  const index = style.callIndex?.(place.index) ?? place.index;
  const extra = style.extra?.(place);
  const id = style.callId(place);
  if (style.wholeCalls) {
    const piece = { index, ...wholeCall(call, place, style.extraTrails ? { ...style, extra: none } : style) };
    return style.extraTrails && extra ? [piece, extra] : [piece];
  }
  const kind = call.custom ? 'custom' : 'function';
  const inputField = call.custom ? 'input' : 'arguments';
  const [first = '', ...others] = style.nameInPieces ? piecesOf(call.name) : [call.name];
  return [
    {
      index,
      id,
      type: kind,
      [kind]: { name: first, [inputField]: '' },
      ...(style.extraTrails ? undefined : extra),
    },
    ...others.map((name) => ({ index, [kind]: { name } })),
    ...piecesOf(call.input).map((input) => ({ index, [kind]: { [inputField]: input } })),
    ...(style.extraTrails && extra ? [extra] : []),
  ];
}

const none = (): undefined => undefined;

function lastDelta(turn: Turn, style: ChatStyle): object {
  if (!style.repeatsCalls || turn.calls.length === 0) return {};
  const calls = turn.calls.map((call, index) => ({
    index: style.callIndex?.(index) ?? index,
    ...wholeCall(call, { turn, index }, style),
  }));
  return { tool_calls: calls };
}
