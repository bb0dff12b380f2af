import { failedEarly, failing, sseFrame, sseReply } from '../script/frames.ts';
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
import { chatReply, type ChatStyle } from './reply.ts';
import { chatCall, promptParts, secretOf, tokenLimit, transcriptOf, type ChatCall } from './request.ts';

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
