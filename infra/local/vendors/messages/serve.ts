/** Anthropic's Messages, served: gates, the blocks of a turn, the message around them, and its events. */
import { asRecord, parseJson, recordsIn } from '../../../../shared/wire/json.ts';
import {
  answerAsAsked,
  asks,
  countOutput,
  piecesOf,
  refusalOf,
  wordsOf,
  type Counts,
  type EarlyFailures,
  PrefixMemory,
  type ModelTurn,
} from '../script.ts';
import {
  replyWithJson,
  parseObject,
  refuseByRule,
  formatSseFrame,
  replyWithSse,
  type VendorRefusal,
  type Rules,
  type VendorReply,
  type VendorRequest,
} from '../vendor.ts';
import { createBetaRules, type Betas, type Gate } from './betas.ts';
import type { Block, MessagesBody, ReadBody } from './body.ts';
import {
  readMessagesTranscript,
  listBlocks,
  thinkingOf,
  type ClaudeModel,
  type MessagesCall,
} from './request.ts';
import { parameterRules, thinkingRules } from './rules.ts';
import {
  countCached,
  ownerOf,
  prefixBefore,
  buildRedactedBlock,
  listReturnedThinking,
  buildThinkingBlock,
} from './thinking.ts';
import { messageRules } from './tool-rules.ts';

type Json = Record<string, unknown>;

export interface MessagesServer {
  gate: Rules<Gate>;
  isNewer(gate: Gate): boolean;
  /** Taken out of the body before it is read against the schema. */
  ownFields?: string[];
  modelOf(name: string): ClaudeModel | undefined;
  account(gate: Gate): string;
  refuse: (refusal: VendorRefusal) => VendorReply;
  memory: PrefixMemory;
  /** Conversations to continue, by account and the id of their last answer. */
  threads?: Map<string, HeldThread>;
  betas: Betas;
  /** Frames the events of a stream; default: server-sent events. */
  frame?: EventFraming;
}

type HeldThread = Pick<MessagesBody, 'system' | 'tools' | 'messages'>;

interface EventFraming {
  contentType: string;
  frame: (event: { type: string } & Record<string, unknown>) => string | Uint8Array;
  /** The last bytes of a broken stream. */
  error: string | Uint8Array;
}

export const messagesRules: Rules<MessagesCall> = { ...messageRules, ...parameterRules, ...thinkingRules };

/**
 * Rules of the request's form and model; each vendor adds those of its headers.
 * @param readBody without it, any body passes; enough to list the names of the rules
 */
export const createGateRules = (server: MessagesServer, readBody?: ReadBody): Rules<Gate> => ({
  ...server.gate,
  ...createBetaRules(server.betas),
  // The body has the fields of the schema, all that are required and no others
  // [docs/api/messages (the SDK: MessageCreateParamsBase)].
  body(gate) {
    const read = readBody?.(bodyOf(gate, server), server.isNewer(gate));
    return read !== undefined && 'problem' in read && read.problem;
  },
  // Models that do not exist answer 404 [docs/api/errors].
  model: ({ value }) =>
    !server.modelOf(String(value?.['model'])) && {
      status: 404,
      message: `model: ${String(value?.['model'])}`,
      type: 'not_found_error',
    },
});

const bodyOf = ({ value }: Gate, { ownFields = [] }: MessagesServer): unknown =>
  value && Object.fromEntries(Object.entries(value).filter(([field]) => !ownFields.includes(field)));

type Posted = Pick<VendorRequest, 'headers' | 'text'>;

/** A continued thread is the whole conversation from here on [platform.claude.com, "Message threads", November 2026]. */
export async function serveMessages({ headers, text }: Posted, server: MessagesServer): Promise<VendorReply> {
  const gate = { headers, value: parseObject(text) };
  const { type, previous_message_id: id } = asRecord(gate.value?.['thread']);
  if (type !== 'continue') return serveGate(gate, server, (call) => answer(call, server));
  const held = server.threads?.get(`${server.account(gate)} ${String(id)}`);
  if (!held) return server.refuse({ status: 404, message: 'thread not found', ...threadNotFound });
  const messages = [...held.messages, ...recordsIn(gate.value?.['messages'])];
  const value = { ...gate.value, ...held, messages };
  return serveGate({ headers, value }, server, (call) => answer(call, server));
}

const threadNotFound = { type: 'not_found_error', code: 'thread_not_found' };
const threadsMax = 1000;

function holdThread(call: MessagesCall, answer: MessageAnswer, threads: Map<string, HeldThread>): void {
  const {
    account,
    body: { system, tools, messages },
  } = call;
  const content = answer.made.map(({ block }) => block);
  threads.set(`${account} ${messageIdOf(call, answer)}`, {
    system,
    tools,
    messages: [...messages, { role: 'assistant', content }],
  });
  for (const oldest of threads.keys()) if (threads.size > threadsMax) threads.delete(oldest);
}

/** Fields that no count takes [docs/api/messages-count-tokens (the SDK: MessageCountTokensParams)]. */
const answerFields =
  'max_tokens stream stop_sequences temperature top_p top_k metadata service_tier container inference_geo'.split(
    ' ',
  );

/** Counts as the usage of an answer does. */
export async function serveCount({ headers, text }: Posted, server: MessagesServer): Promise<VendorReply> {
  const value = parseObject(text);
  const extra = answerFields.find((field) => value && field in value);
  if (extra !== undefined)
    return server.refuse({ status: 400, message: `${extra}: Extra inputs are not permitted` });
  const limit = server.modelOf(String(value?.['model']))?.outputMax ?? 1;
  return serveGate({ headers, value: value && { ...value, max_tokens: limit } }, server, (call) => {
    const { input, cacheRead, cacheWrite5m, cacheWrite1h } = countCached(call, new PrefixMemory());
    return replyWithJson(200, { input_tokens: input + cacheRead + cacheWrite5m + cacheWrite1h });
  });
}

async function serveGate(
  gate: Gate,
  server: MessagesServer,
  reply: (call: MessagesCall) => VendorReply,
): Promise<VendorReply> {
  const { readBody } = await import('./body.ts');
  const { refuse } = server;
  const { headers } = gate;
  const stopped = refuseByRule(createGateRules(server, readBody), gate, refuse);
  if (stopped) return stopped;
  const isNewer = server.isNewer(gate);
  const read = readBody(bodyOf(gate, server), isNewer);
  const can = 'body' in read ? server.modelOf(read.body.model) : undefined;
  if ('problem' in read || !can) throw new Error('the gate let a wrong body pass');
  const call = { headers, body: read.body, can, isNewer, account: server.account(gate) };
  return refuseByRule(messagesRules, call, refuse) ?? reply(call);
}

const failures: EarlyFailures = {
  overload: [529, 'Overloaded', { type: 'overloaded_error' }],
  quota: [
    400,
    'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
  ],
  throttle: [
    429,
    "This request would exceed your organization's rate limit of 50 requests per minute.",
    { type: 'rate_limit_error' },
  ],
  window: [400, 'prompt is too long: 1000042 tokens > 1000000 maximum'],
};

function answer(
  call: MessagesCall,
  { refuse, memory, threads, frame: framing = serverSent }: MessagesServer,
): VendorReply {
  const { stream: streams = false, max_tokens: limit } = call.body;
  const transcript = readMessagesTranscript(call);
  const { contentType, frame, error } = framing;
  const { message, type = 'invalid_request_error' } = refusalOf(failures.window);
  return answerAsAsked({
    transcript,
    streams,
    thinks: thinkingOf(call) !== 'off',
    limit,
    refuse,
    failures,
    brokenOff: { status: 500, message: 'Internal server error', type: 'api_error' },
    streamError: streams ? error : '',
    overlongStream: () => replyWithSse([frame({ type: 'error', error: { type, message } })], contentType),
    reply(turn) {
      const made = contentOf(call, turn);
      const counts = { ...countCached(call, memory), ...countOutput(turn) };
      const answered: MessageAnswer = { turn, made, counts };
      if (threads && call.body.thread) holdThread(call, answered, threads);
      if (!streams) return replyWithJson(200, buildWholeMessage(call, answered));
      return replyWithSse(buildMessageEvents(call, answered).map(frame), contentType);
    },
    notes: () => noteTolerated(call),
  });
}

const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };

const serverSent: EventFraming = {
  contentType: 'text/event-stream; charset=utf-8',
  frame: (event) => formatSseFrame(event, event.type),
  error: formatSseFrame(overloaded, 'error'),
};

/** Notes on what the vendor tolerates: thinking that was dropped before calls, or belongs to another conversation. */
function noteTolerated(call: MessagesCall): string[] {
  const blocks = listBlocks(call);
  const bare = blocks.some(
    ({ block, message }) =>
      block.type === 'tool_use' &&
      !blocks.some((other) => other.message === message && other.block.type.endsWith('thinking')),
  );
  return [
    ...(thinkingOf(call) !== 'off' && bare ? ['calls without the thinking of their turn'] : []),
    ...(listReturnedThinking(call).some(({ problem }) => problem)
      ? ['thinking of another conversation']
      : []),
  ];
}

/** A block as the model made it: of a cut call `input` is what came, as text. */
type Made = { block: Block; input?: string };

const stopReasons: Record<ModelTurn['finish'], string> = {
  stop: 'end_turn',
  calls: 'tool_use',
  length: 'max_tokens',
  refusal: 'refusal',
};

/** The content of the answer. Each thinking block is signed with all that stands before it. */
function contentOf(call: MessagesCall, turn: ModelTurn): Made[] {
  const { said } = readMessagesTranscript(call);
  const made: Made[] = [];
  const addThinking = (text: string): void => {
    const [shown, prefix] = [
      thinkingOf(call) === 'summarized' ? text : '',
      prefixBefore(
        call.body,
        made.map(({ block }) => block),
      ).at(-1) ?? '',
    ];
    const facts = { text: shown, account: ownerOf(call), prefix };
    made.push({ block: asks(said, 'redacted') ? buildRedactedBlock(facts) : buildThinkingBlock(facts) });
  };
  if (turn.thinking !== '') addThinking(turn.thinking);
  if (turn.text !== '') made.push({ block: { type: 'text', text: turn.text } });
  for (const [index, { name, input }] of turn.calls.entries()) {
    if (index > 0 && turn.thinking !== '' && asks(said, 'interleave')) addThinking(`Now call ${index + 1}.`);
    const id = `toolu_01${turn.question}${String(turn.step).padStart(4, '0')}${index}`;
    // The arguments of a call that max_tokens cut are not valid JSON.
    made.push({ block: { type: 'tool_use', id, name, input: asRecord(parseJson(input)) }, input });
  }
  return made;
}

const usageOf = ({ input, cacheRead, cacheWrite5m, cacheWrite1h, output, thinking }: Counts): Json => ({
  input_tokens: input,
  cache_creation_input_tokens: cacheWrite5m + cacheWrite1h,
  cache_read_input_tokens: cacheRead,
  cache_creation: { ephemeral_5m_input_tokens: cacheWrite5m, ephemeral_1h_input_tokens: cacheWrite1h },
  output_tokens: output,
  output_tokens_details: { thinking_tokens: thinking },
  server_tool_use: null,
  service_tier: 'standard',
});

interface MessageAnswer {
  turn: ModelTurn;
  made: Made[];
  counts: Counts;
}

/** Creates an id that, in a thread, no other conversation has. */
const messageIdOf = ({ account, body }: MessagesCall, { turn, made }: MessageAnswer): string => {
  const blocks = made.map(({ block }) => block);
  const conversation = body.thread ? prefixBefore(body, blocks).at(-1)?.slice(0, 16) : '';
  return `msg_01Double${account.length}${turn.step}${conversation}`;
};

const buildWholeMessage = (call: MessagesCall, answer: MessageAnswer): Json => ({
  id: messageIdOf(call, answer),
  type: 'message',
  role: 'assistant',
  model: call.body.model,
  container: null,
  content: answer.made.map(({ block }) => block),
  stop_reason: answer.turn.stoppedBy === undefined ? stopReasons[answer.turn.finish] : 'stop_sequence',
  stop_sequence: answer.turn.stoppedBy ?? null,
  stop_details:
    answer.turn.finish === 'refusal'
      ? { type: 'refusal', category: 'general_harms', explanation: 'The double refuses, as asked.' }
      : null,
  ...(call.body.context_management && { context_management: { applied_edits: [] } }),
  ...('block_binding' in (call.body.thinking ?? {}) && { input_transformations: listDroppedThinking(call) }),
  usage: usageOf(answer.counts),
});

/** By the SDK's type, `BetaThinkingDroppedInputTransformation`. */
const listDroppedThinking = (call: MessagesCall): Json[] =>
  listReturnedThinking(call)
    .filter(({ problem }) => problem)
    .map(({ message, index, problem }) => ({
      type: 'thinking_dropped',
      path: `messages.${message}.content.${index}`,
      reason: `${problem === 'foreign' ? 'organization' : 'prefix'}_binding_mismatch`,
    }));

/** The events of a stream, in order. */
function buildMessageEvents(call: MessagesCall, answer: MessageAnswer): ({ type: string } & Json)[] {
  const whole = buildWholeMessage(call, answer);
  const {
    stop_reason: reason,
    stop_sequence: sequence,
    stop_details: details,
    context_management: edits,
    ...started
  } = whole;
  const usage = usageOf({ ...answer.counts, output: 1, thinking: 0 });
  const { cache_creation: _split, service_tier: _tier, ...finalUsage } = usageOf(answer.counts);
  return [
    {
      type: 'message_start',
      message: { ...started, content: [], stop_reason: null, stop_sequence: null, stop_details: null, usage },
    },
    { type: 'ping' },
    ...answer.made.flatMap((made, index) => blockEvents(made, index)),
    {
      type: 'message_delta',
      delta: { stop_reason: reason, stop_sequence: sequence, stop_details: details, container: null },
      ...(edits !== undefined && { context_management: edits }),
      usage: finalUsage,
    },
    { type: 'message_stop' },
  ];
}

function blockEvents({ block, input = '' }: Made, index: number): ({ type: string } & Json)[] {
  const delta = (value: Json) => ({ type: 'content_block_delta', index, delta: value });
  const startBlock = (value: Json) => ({ type: 'content_block_start', index, content_block: value });
  const stopped = { type: 'content_block_stop', index };
  if (block.type === 'thinking')
    return [
      startBlock({ type: 'thinking', thinking: '', signature: '' }),
      ...wordsOf(block.thinking).map((thinking) => delta({ type: 'thinking_delta', thinking })),
      delta({ type: 'signature_delta', signature: block.signature }),
      stopped,
    ];
  if (block.type === 'text')
    return [
      startBlock({ type: 'text', text: '', citations: null }),
      ...wordsOf(block.text).map((text) => delta({ type: 'text_delta', text })),
      stopped,
    ];
  if (block.type === 'tool_use')
    return [
      startBlock({ ...block, input: {}, caller: { type: 'direct' } }),
      ...['', ...piecesOf(input)].map((json) => delta({ type: 'input_json_delta', partial_json: json })),
      stopped,
    ];
  return [startBlock(block), stopped];
}
