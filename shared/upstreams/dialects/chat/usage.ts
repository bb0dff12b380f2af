/** Converts the usage that a Chat Completions upstream reports to the relay's form. */
import type { ChatUsage } from '../../../wire/chat-response.ts';
import { asRecord, isRecord } from '../../../wire/json-record.ts';

/** More than any model can read or write in one call. */
const tokensMax = 100_000_000;

export interface ReadUsage {
  usage: ChatUsage;
  /** true: a count was negative, fractional or impossibly large and was clamped. */
  clamped: boolean;
}

/**
 * Converts an upstream's usage object; undefined if it has no count. Totals include cached and reasoning
 * tokens. Some upstreams count reasoning tokens outside `completion_tokens`, which their total shows; these
 * tokens are then added to the completion, so that they are charged.
 */
export function readUsage(value: unknown): ReadUsage | undefined {
  if (!isRecord(value)) return undefined;
  const promptRaw = value['prompt_tokens'] ?? value['input_tokens'];
  const completionRaw = value['completion_tokens'] ?? value['output_tokens'];
  if (typeof promptRaw !== 'number' && typeof completionRaw !== 'number') return undefined;

  const prompt = count(promptRaw);
  const counted = count(completionRaw);
  const reasoning = count(asRecord(value['completion_tokens_details'])['reasoning_tokens']);
  const total = count(value['total_tokens']);
  const isBeside = total.value === prompt.value + counted.value + reasoning.value;
  const completion = counted.value + (isBeside ? reasoning.value : 0);
  const cached = count(asRecord(value['prompt_tokens_details'])['cached_tokens']);

  return {
    clamped: prompt.clamped || counted.clamped,
    usage: {
      prompt_tokens: prompt.value,
      completion_tokens: completion,
      total_tokens: prompt.value + completion,
      prompt_tokens_details: { cached_tokens: Math.min(cached.value, prompt.value) },
      completion_tokens_details: { reasoning_tokens: Math.min(reasoning.value, completion) },
    },
  };
}

function count(value: unknown): { value: number; clamped: boolean } {
  if (typeof value !== 'number') return { value: 0, clamped: false };
  const clean = Number.isNaN(value) ? 0 : Math.min(tokensMax, Math.max(0, Math.round(value)));
  return { value: clean, clamped: clean !== value };
}
