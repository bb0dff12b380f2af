/** Converts the usage that a Chat Completions upstream reports to the relay's form. */
import type { ChatUsage } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';

/** More than any model can read or write in one call. */
const tokensMax = 100_000_000;

export interface ReadUsage {
  usage: ChatUsage;
  /** true: a count was negative, fractional or impossibly large and was clamped. */
  clamped: boolean;
}

/**
 * The usage in an event: beside the choices, in the first choice (Moonshot) or under `x_groq`. Undefined: there is
 * none.
 */
export function usageOfEvent(event: JsonRecord): ReadUsage | undefined {
  const [choice] = Array.isArray(event['choices']) ? event['choices'] : [];
  const places = [event['usage'], asRecord(choice)['usage'], asRecord(event['x_groq'])['usage']];
  return places.map(readUsage).find((read) => read !== undefined);
}

/**
 * Converts an upstream's usage object; undefined if it has no count. Totals include cached, cache-written and
 * reasoning tokens. Some upstreams count reasoning tokens outside `completion_tokens`, which their total shows; these
 * tokens are then added to the completion, so that they are charged.
 */
export function readUsage(value: unknown): ReadUsage | undefined {
  if (!isRecord(value)) return undefined;
  const promptRaw = value['prompt_tokens'] ?? value['input_tokens'];
  const completionRaw = value['completion_tokens'] ?? value['output_tokens'];
  if (typeof promptRaw !== 'number' && typeof completionRaw !== 'number') return undefined;

  const counted = count(completionRaw);
  const reasoning = count(asRecord(value['completion_tokens_details'])['reasoning_tokens']);
  const total = count(value['total_tokens']);
  const uncached = count(promptRaw);
  const cache = cacheOf(value);
  const prompt = uncached.value + cache.beside(uncached.value);
  const isBeside = total.value === prompt + counted.value + reasoning.value;
  const completion = counted.value + (isBeside ? reasoning.value : 0);

  return {
    clamped: uncached.clamped || counted.clamped,
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: splitOf(prompt, cache),
      completion_tokens_details: { reasoning_tokens: Math.min(reasoning.value, completion) },
    },
  };
}

interface CacheCounts {
  read: number;
  /** Undefined: the upstream reports no writes. */
  written: number | undefined;
  writtenForHour: number;
  /** What of these the upstream did not count into the prompt. */
  beside: (prompt: number) => number;
}

/** The names that vendors have for what was read from the cache and written to it. */
function cacheOf(value: JsonRecord): CacheCounts {
  const details = asRecord(value['prompt_tokens_details'] ?? value['input_tokens_details']);
  const ownRead = firstCount(
    details['cached_tokens'],
    value['prompt_cache_hit_tokens'],
    value['cached_tokens'],
  );
  const ownWritten = firstCount(
    details['cache_write_tokens'],
    details['cache_creation_tokens'],
    value['cache_write_tokens'],
  );
  // Anthropic's names. Its own count of input leaves both out; gateways that add them keep the names.
  const foreignRead = firstCount(value['cache_read_input_tokens']);
  const foreignWritten = firstCount(value['cache_creation_input_tokens']);
  const read = ownRead ?? foreignRead ?? 0;
  const written = ownWritten ?? foreignWritten;
  const lifetimes = asRecord(value['cache_creation'] ?? details['cache_creation_token_details']);
  const named = value['prompt_tokens'] === undefined && (foreignRead ?? foreignWritten) !== undefined;
  const cached = read + (written ?? 0);
  return {
    read,
    written,
    writtenForHour: firstCount(lifetimes['ephemeral_1h_input_tokens']) ?? 0,
    beside: (prompt) => (named || (cached > prompt && foreignRead !== undefined) ? cached : 0),
  };
}

/** Keeps what was read and written inside the prompt. */
function splitOf(prompt: number, cache: CacheCounts): NonNullable<ChatUsage['prompt_tokens_details']> {
  const read = Math.min(cache.read, prompt);
  const written = Math.min(cache.written ?? 0, prompt - read);
  const forHour = Math.min(cache.writtenForHour, written);
  return {
    cached_tokens: read,
    ...(cache.written !== undefined && { cache_write_tokens: written - forHour }),
    ...(forHour > 0 && { cache_write_1h_tokens: forHour }),
  };
}

/** Usage that comes in several events: the larger of each count, because some repeat it in part or as zeros. */
export function mergedUsage(
  before: ReadUsage | undefined,
  next: ReadUsage | undefined,
): ReadUsage | undefined {
  if (!before || !next) return next ?? before;
  const [a, b] = [before.usage, next.usage];
  const larger = (of: (usage: ChatUsage) => number | undefined): number => Math.max(of(a) ?? 0, of(b) ?? 0);
  const prompt = larger((usage) => usage.prompt_tokens);
  const completion = larger((usage) => usage.completion_tokens);
  const [inA, inB] = [a.prompt_tokens_details, b.prompt_tokens_details];
  const written = inA?.cache_write_tokens ?? inB?.cache_write_tokens;
  const forHour = larger((usage) => usage.prompt_tokens_details?.cache_write_1h_tokens);
  return {
    clamped: before.clamped || next.clamped,
    usage: {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: {
        cached_tokens: larger((usage) => usage.prompt_tokens_details?.cached_tokens),
        ...(written !== undefined && {
          cache_write_tokens: larger((usage) => usage.prompt_tokens_details?.cache_write_tokens),
        }),
        ...(forHour > 0 && { cache_write_1h_tokens: forHour }),
      },
      completion_tokens_details: {
        reasoning_tokens: larger((usage) => usage.completion_tokens_details?.reasoning_tokens),
      },
    },
  };
}

/** The first that is a number; zero is one. */
function firstCount(...values: unknown[]): number | undefined {
  const found = values.find((value) => typeof value === 'number');
  return found === undefined ? undefined : count(found).value;
}

function count(value: unknown): { value: number; clamped: boolean } {
  if (typeof value !== 'number') return { value: 0, clamped: false };
  const clean = Number.isNaN(value) ? 0 : Math.min(tokensMax, Math.max(0, Math.round(value)));
  return { value: clean, clamped: clean !== value };
}
