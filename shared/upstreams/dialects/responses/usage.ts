/** Converts the usage that a Responses upstream reports to the relay's form. */
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
 * Undefined if there is no count. Input counts what was read from and written to the cache, output counts reasoning.
 * Source: `ResponseUsage` of OpenAI's API description.
 */
export function readUsage(value: unknown): ReadUsage | undefined {
  if (!isRecord(value)) return undefined;
  const { input_tokens: inputRaw, output_tokens: outputRaw } = value;
  if (typeof inputRaw !== 'number' && typeof outputRaw !== 'number') return undefined;
  const inputDetails = asRecord(value['input_tokens_details']);
  const input = tokens(inputRaw);
  const output = tokens(outputRaw);
  const cached = Math.min(tokens(inputDetails['cached_tokens']), input);
  const reportsWrites = typeof inputDetails['cache_write_tokens'] === 'number';
  const written = Math.min(tokens(inputDetails['cache_write_tokens']), input - cached);
  const reasoning = tokens(asRecord(value['output_tokens_details'])['reasoning_tokens']);
  return {
    clamped: isClamped(inputRaw, input) || isClamped(outputRaw, output),
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      total_tokens: input + output,
      prompt_tokens_details: {
        cached_tokens: cached,
        ...(reportsWrites && { cache_write_tokens: written }),
      },
      completion_tokens_details: { reasoning_tokens: Math.min(reasoning, output) },
    },
  };
}

function tokens(value: unknown): number {
  if (typeof value !== 'number' || Number.isNaN(value)) return 0;
  return Math.min(tokensMax, Math.max(0, Math.round(value)));
}

const isClamped = (raw: unknown, read: number): boolean => typeof raw === 'number' && raw !== read;
