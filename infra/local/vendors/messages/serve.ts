import { failedEarly, failing, jsonReply, sseFrame, sseReply } from '../script/frames.ts';
import type { PrefixMemory } from '../script/prefix-memory.ts';
import { scriptedTurn, type Turn } from '../script/script.ts';
import { limited, outputTokens, wordsOf } from '../script/tokens.ts';
import { firstBroken, objectIn, type Refusal, type Rule, type VendorReply } from '../script/vendor.ts';
import { asks, earlyFailureIn, lateFailureIn, type EarlyFailure } from '../script/words.ts';
import { cachedCounts } from './cache.ts';
import { placedBlocks, thinkingOf, transcriptOf, type MessagesCall } from './call.ts';
import type { ClaudeModel } from './models.ts';
import { contentOf, messageEvents, wholeMessage, type MessageAnswer } from './reply.ts';
import { parameterRules, thinkingRules } from './rules.ts';
import { readBody } from './schema.ts';
import { returnedThinking } from './thinking.ts';
import { messageRules } from './tool-rules.ts';

/** What is known before the body is read. */
export interface Gate {
  headers: Record<string, string>;
  value: Record<string, unknown> | undefined;
}

export interface MessagesServer {
  gate: Rule<Gate>[];
  isNewer(gate: Gate): boolean;
  /** Taken out of the body before it is read against the schema. */
  ownFields?: string[];
  modelOf(name: string): ClaudeModel | undefined;
  account(gate: Gate): string;
  refuse: (refusal: Refusal) => VendorReply;
  memory: PrefixMemory;
  /** Frames the events of a stream; default: server-sent events. */
  frame?: EventFraming;
}

export interface EventFraming {
  contentType: string;
  frame: (event: { type: string } & Record<string, unknown>) => string | Uint8Array;
  /** What ends a broken stream. */
  error: string | Uint8Array;
}

export const messagesRules: Rule<MessagesCall>[] = [...messageRules, ...parameterRules, ...thinkingRules];

/** Rules of the request's form and model; each vendor adds those of its headers. */
export const gateRules = (server: MessagesServer): Rule<Gate>[] => [
  ...server.gate,
  {
    id: 'body',
    says: 'The body has the fields of the schema, all that are required and no others.',
    source: 'https://platform.claude.com/docs/en/api/messages (the SDK: MessageCreateParamsBase)',
    date: '2026-11-21',
    check(gate) {
      const read = readBody(bodyOf(gate, server), server.isNewer(gate));
      return 'problem' in read && { status: 400, message: read.problem, type: 'invalid_request_error' };
    },
  },
  {
    id: 'model',
    says: 'Models that do not exist answer 404.',
    source: 'https://platform.claude.com/docs/en/api/errors',
    date: '2026-11-21',
    check: ({ value }) =>
      !server.modelOf(String(value?.['model'])) && {
        status: 404,
        message: `model: ${String(value?.['model'])}`,
        type: 'not_found_error',
      },
  },
];

const bodyOf = ({ value }: Gate, { ownFields = [] }: MessagesServer): unknown =>
  value && Object.fromEntries(Object.entries(value).filter(([field]) => !ownFields.includes(field)));

export function serveMessages(
  { headers, text }: { headers: Record<string, string>; text: string },
  server: MessagesServer,
): VendorReply {
  const gate = { headers, value: objectIn(text) };
  const stopped = firstBroken(gateRules(server), gate);
  if (stopped) return { ...server.refuse(stopped.refusal), rule: stopped.rule };
  const isNewer = server.isNewer(gate);
  const read = readBody(bodyOf(gate, server), isNewer);
  const can = 'body' in read ? server.modelOf(read.body.model) : undefined;
  if ('problem' in read || !can) throw new Error('the gate let a wrong body pass');
  const call = { headers, body: read.body, can, isNewer, account: server.account(gate) };
  const broken = firstBroken(messagesRules, call);
  if (broken) return { ...server.refuse(broken.refusal), rule: broken.rule };
  return answer(call, server);
}

export const messageFailures: Record<EarlyFailure, Refusal> = {
  overload: { status: 529, message: 'Overloaded', type: 'overloaded_error' },
  quota: {
    status: 400,
    message:
      'Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.',
    type: 'invalid_request_error',
  },
  throttle: {
    status: 429,
    message: "This request would exceed your organization's rate limit of 50 requests per minute.",
    type: 'rate_limit_error',
  },
  window: {
    status: 400,
    message: 'prompt is too long: 1000042 tokens > 1000000 maximum',
    type: 'invalid_request_error',
  },
};

function answer(call: MessagesCall, server: MessagesServer): VendorReply {
  const { said } = transcriptOf(call);
  const early = earlyFailureIn(said);
  if (early) return failedEarly(server.refuse(messageFailures[early]), early, said);
  if (asks(said, 'overlong')) return overlong(call, server);
  const late = lateFailureIn(said);
  if (late === 'cut' && !call.body.stream)
    return server.refuse({ status: 500, message: 'Internal server error', type: 'api_error' });
  const turn = turnOf(call);
  const made = contentOf(call, turn);
  const reply: MessageAnswer = {
    turn,
    made,
    counts: {
      ...cachedCounts(call, server.memory),
      output: outputTokens(turn),
      thinking: wordsOf(turn.thinking).length,
    },
    // The end of the context window, without a request that fills it.
    ...(asks(said, 'overflow') && { stopReason: 'model_context_window_exceeded' }),
  };
  const notes = notesOn(call);
  if (!call.body.stream) return { ...failing(jsonReply(200, wholeMessage(call, reply)), late, ''), notes };
  const { contentType, frame, error } = server.frame ?? serverSent;
  const streamed = { ...sseReply([]), frames: messageEvents(call, reply).map(frame) };
  const headers = { ...streamed.headers, 'content-type': contentType };
  return { ...failing({ ...streamed, headers }, late, error), notes };
}

/** A stream whose first event is an error. */
function overlong(
  { body }: MessagesCall,
  { refuse, frame: framing = serverSent }: MessagesServer,
): VendorReply {
  const { message, type } = messageFailures.window;
  if (!body.stream) return refuse(messageFailures.window);
  const reply = sseReply([]);
  return {
    ...reply,
    headers: { ...reply.headers, 'content-type': framing.contentType },
    frames: [framing.frame({ type: 'error', error: { type, message } })],
  };
}

const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };

const serverSent: EventFraming = {
  contentType: 'text/event-stream; charset=utf-8',
  frame: (event) => sseFrame(event, event.type),
  error: sseFrame(overloaded, 'error'),
};

function turnOf(call: MessagesCall): Turn {
  const scripted = scriptedTurn(transcriptOf(call));
  const thinking = thinkingOf(call) === 'off' ? '' : scripted.thinking;
  return limited({ ...scripted, thinking }, call.body.max_tokens);
}

/** What the vendor tolerates: thinking that was dropped before calls, or belongs to another conversation. */
function notesOn(call: MessagesCall): string[] {
  const blocks = placedBlocks(call);
  const bare = blocks.some(
    ({ block, message }) =>
      block.type === 'tool_use' &&
      !blocks.some((other) => other.message === message && other.block.type.endsWith('thinking')),
  );
  return [
    ...(thinkingOf(call) !== 'off' && bare ? ['calls without the thinking of their turn'] : []),
    ...(returnedThinking(call).some(({ problem }) => problem) ? ['thinking of another conversation'] : []),
  ];
}
