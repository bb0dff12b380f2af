import { failedEarly, failing, jsonReply, sseReply } from '../script/frames.ts';
import type { PrefixMemory } from '../script/prefix-memory.ts';
import { scriptedTurn, type Turn } from '../script/script.ts';
import { limited, outputTokens, promptTokens, wordsOf, type Counts } from '../script/tokens.ts';
import {
  firstBroken,
  objectIn,
  textIn,
  type Refusal,
  type Rule,
  type VendorReply,
} from '../script/vendor.ts';
import { asks, earlyFailureIn, lateFailureIn, type EarlyFailure } from '../script/words.ts';
import { encrypted, turnDigits } from './encrypted.ts';
import { emptyResponse, finishedResponse, outputItems, usageOf } from './items.ts';
import {
  isCall,
  promptParts,
  responsesCall,
  transcriptOf,
  type InputItem,
  type ResponsesCall,
} from './request.ts';
import { eventFrame, responseFrames } from './stream.ts';

export interface ResponsesServer {
  rules: Rule<ResponsesCall>[];
  refuse: (refusal: Refusal) => VendorReply;
  failures: Record<EarlyFailure, Refusal>;
  thinks(call: ResponsesCall): boolean;
  memory: PrefixMemory;
}

export interface ResponsesRequest {
  headers: Record<string, string>;
  text: string;
  organization: string;
  /** For `/compact`, which answers with the conversation's summary. */
  compacts?: boolean;
}

export function serveResponses(
  { headers, text, organization, compacts = false }: ResponsesRequest,
  server: ResponsesServer,
): VendorReply {
  const body = objectIn(text);
  if (!body)
    return server.refuse({ status: 400, message: 'We could not parse the JSON body of your request.' });
  if (body['input'] === undefined)
    return server.refuse({
      status: 400,
      message: "Missing required parameter: 'input'.",
      param: 'input',
      code: 'missing_required_parameter',
    });
  const call = responsesCall(headers, body, organization);
  const broken = firstBroken(server.rules, call);
  if (broken) return { ...server.refuse(broken.refusal), rule: broken.rule };
  if (compacts) return compactedReply(call, server);
  return answer(call, server);
}

function answer(call: ResponsesCall, server: ResponsesServer): VendorReply {
  const transcript = transcriptOf(call);
  const early = earlyFailureIn(transcript.said);
  if (early) return failedEarly(server.refuse(server.failures[early]), early, transcript.said);
  const late = lateFailureIn(transcript.said);
  const streams = call.body['stream'] === true;
  if (asks(transcript.said, 'overlong'))
    return streams ? overlong(call, server.failures.window) : server.refuse(server.failures.window);
  if (late === 'cut' && !streams) return server.refuse(brokenOff);
  const scripted = scriptedTurn(transcript);
  const limit = Number(call.body['max_output_tokens'] ?? Infinity);
  const turn = limited(server.thinks(call) ? scripted : { ...scripted, thinking: '' }, limit);
  const counts = countsOf(call, turn, server.memory);
  const asked = call.items.at(-1)?.type === 'compaction_trigger';
  const output = asked ? [compactionItem(call)] : outputItems(call, turn);
  const finished = finishedResponse(call, output, {
    turn: asked ? { ...turn, finish: 'stop' } : turn,
    counts,
  });
  const reply = streams ? sseReply(responseFrames(emptyResponse(call), finished)) : jsonReply(200, finished);
  const { message, type } = brokenOff;
  const error = eventFrame({ type: 'error', code: type, message, param: null, sequence_number: 99 });
  return { ...failing(reply, late, error), notes: notesOn(call) };
}

/** A stream that fails with its first event. */
const overlong = (call: ResponsesCall, { code, message }: Refusal): VendorReply =>
  sseReply([
    eventFrame({
      type: 'response.failed',
      response: { ...emptyResponse(call), status: 'failed', error: { code, message } },
      sequence_number: 0,
    }),
  ]);

const brokenOff = {
  status: 500,
  message: 'The server had an error while processing your request. Sorry about that!',
  type: 'server_error',
};

function countsOf(call: ResponsesCall, turn: Turn, memory: PrefixMemory): Counts {
  const parts = promptParts(call);
  const total = promptTokens(parts.join(''));
  const key = textIn(call.body['prompt_cache_key']);
  const seen = memory.countSeen(`${call.organization} ${call.model} ${key}`, parts);
  const isCached = total >= 1024;
  const cacheRead = isCached ? Math.min(promptTokens(parts.slice(0, seen).join('')), total - 1) : 0;
  const written = isCached ? total - cacheRead - 1 : 0;
  return {
    input: total - cacheRead - written,
    cacheRead,
    cacheWrite5m: written,
    cacheWrite1h: 0,
    output: outputTokens(turn),
    thinking: wordsOf(turn.thinking).length,
  };
}

const compactionItem = (call: ResponsesCall) => {
  const id = `cmp_${turnDigits(call.organization, promptParts(call))}`;
  const text = `${call.items.length} items; the last user text: ${transcriptOf(call).said}`;
  return {
    id,
    type: 'compaction',
    encrypted_content: encrypted({ organization: call.organization, item: id, text }),
  };
};

function compactedReply(call: ResponsesCall, { memory }: ResponsesServer): VendorReply {
  const turn: Turn = {
    thinking: '',
    text: 'a summary of some words',
    calls: [],
    finish: 'stop',
    step: 0,
    question: '',
  };
  const item = compactionItem(call);
  return jsonReply(200, {
    id: item.id.replace('cmp', 'resp'),
    object: 'response.compaction',
    created_at: 1_790_000_000,
    output: [item],
    usage: usageOf(countsOf(call, turn, memory)),
  });
}

/** Calls whose turn had reasoning that did not come back are accepted without an item id, and worse answers follow. */
const notesOn = ({ items }: ResponsesCall): string[] =>
  items.some((item, at) => isCall(item) && isReasoned(item) && !hasReasoning(items.slice(0, at)))
    ? ['a call without the reasoning of its turn']
    : [];

const isReasoned = ({ call_id: id }: InputItem): boolean => /^call_[0-9a-f]{24}r\d+$/.test(String(id));

/** Whether reasoning stands right before the calls of the turn, other calls and a commentary apart. */
function hasReasoning(before: InputItem[]): boolean {
  const last = before.findLast(
    (item) => !isCall(item) && !(item.type === 'message' && item['role'] === 'assistant'),
  );
  return last?.type === 'reasoning';
}
