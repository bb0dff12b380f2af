/** Converts the usage that a Messages upstream reports, in two events of one stream, to the relay's form. */
import type { ChatUsage, PromptTokensDetails } from '../../../wire/chat-response.ts';
import { asRecord, isRecord, type JsonRecord } from '../../../wire/json-record.ts';

/** More than any model can read or write in one call. */
const tokensMax = 100_000_000;

interface Counts {
  uncached: number;
  read: number;
  written: number;
  written1h: number;
  output: number;
  thinking: number;
}

/**
 * The usage of one answer. `message_start` has the input, `message_delta` the output and often the input again; the
 * larger of each count holds, since vendors repeat a field as 0 where they do not know it yet.
 */
export class MessagesUsage {
  #counts: Counts | undefined;
  #reportsWrites = false;
  #clamped = false;

  push(value: unknown): void {
    if (!isRecord(value)) return;
    const read = this.#read(value);
    if (!Object.values(value).some((each) => typeof each === 'number')) return;
    const known = this.#counts;
    this.#counts = known
      ? {
          uncached: Math.max(known.uncached, read.uncached),
          read: Math.max(known.read, read.read),
          written: Math.max(known.written, read.written),
          written1h: Math.max(known.written1h, read.written1h),
          output: Math.max(known.output, read.output),
          thinking: Math.max(known.thinking, read.thinking),
        }
      : read;
  }

  get clamped(): boolean {
    return this.#clamped;
  }

  /** Undefined until a count came. The prompt includes what was read from and written to the cache. */
  get usage(): ChatUsage | undefined {
    if (!this.#counts) return undefined;
    const { uncached, read, written, written1h, output, thinking } = this.#counts;
    const prompt = uncached + read + written;
    const hour = Math.min(written1h, written);
    const details: PromptTokensDetails = { cached_tokens: read };
    if (this.#reportsWrites) details.cache_write_tokens = written - hour;
    if (hour > 0) details.cache_write_1h_tokens = hour;
    return {
      prompt_tokens: prompt,
      completion_tokens: output,
      total_tokens: prompt + output,
      prompt_tokens_details: details,
      completion_tokens_details: { reasoning_tokens: Math.min(thinking, output) },
    };
  }

  #read(value: JsonRecord): Counts {
    const lifetimes = asRecord(value['cache_creation']);
    const written1h = this.#count(lifetimes['ephemeral_1h_input_tokens']);
    const apart = this.#count(lifetimes['ephemeral_5m_input_tokens']) + written1h;
    const written = this.#count(value['cache_creation_input_tokens']);
    if (typeof value['cache_creation_input_tokens'] === 'number' || apart > 0) this.#reportsWrites = true;
    return {
      uncached: this.#count(value['input_tokens']),
      read: this.#count(value['cache_read_input_tokens']),
      written: Math.max(written, apart),
      written1h,
      output: this.#count(value['output_tokens']),
      thinking: this.#count(asRecord(value['output_tokens_details'])['thinking_tokens']),
    };
  }

  #count(value: unknown): number {
    if (typeof value !== 'number') return 0;
    const clean = Number.isNaN(value) ? 0 : Math.min(tokensMax, Math.max(0, Math.round(value)));
    if (clean !== value) this.#clamped = true;
    return clean;
  }
}
