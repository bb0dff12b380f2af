/**
 * Counts tokens of the canonical stream for usage and bill. Must not change chunks except for usage and
 * quota.
 */
import { deltaText } from '../../wire/chunk-content.ts';
import { boundedUsage } from '../../billing/cache-counts.ts';
import { TextShape } from '../../billing/estimate/text-shape.ts';
import type { Machine } from '../../stream/machine.ts';
import type { ChatChunk, ChatUsage, PromptTokensDetails } from '../../wire/chat-response.ts';

/** Minimum ratio of reported tokens to the estimate from below: lower counts were reported before the rest came. */
const reportedShareMin = 0.7;

/** Of an estimated prompt nobody knows what the upstream's cache held. */
const noCache: PromptTokensDetails = { cached_tokens: 0 };

export interface Measure {
  usage: ChatUsage;
  /** The upstream reported no usable counts. */
  estimated: boolean;
  /** Output was streamed to the client. */
  anyContent: boolean;
  /** An answer ended because of its limit on output tokens. */
  atLimit: boolean;
}

/**
 * Measures the canonical stream. Without usage from the upstream, it appends an estimate as the last chunk.
 * `measure` is valid at any time, also for interrupted answers.
 */
export class Meter implements Machine<ChatChunk, ChatChunk> {
  readonly #promptTokensEstimate: () => number;
  readonly #quota: ((usage: ChatUsage) => number) | undefined;
  #last: ChatChunk | undefined;
  readonly #output = new TextShape();
  #anyContent = false;
  #atLimit = false;
  #usage: ChatUsage | undefined;

  /** `quota`: the cost of a usage in yuan; only in official mode. */
  constructor(promptTokensEstimate: () => number, quota?: (usage: ChatUsage) => number) {
    this.#promptTokensEstimate = promptTokensEstimate;
    this.#quota = quota;
  }

  /**
   * The usage so far. `reported`: counts that the upstream reported but that reached no chunk before the
   * answer broke off. When much more was streamed after these counts, only their prompt tokens are used, with
   * their cache counts.
   */
  measure(reported?: ChatUsage): Measure {
    const seen = { anyContent: this.#anyContent, atLimit: this.#atLimit };
    if (this.#usage) return { usage: this.#usage, estimated: false, ...seen };
    if (reported && reported.completion_tokens >= this.#output.tokensFromBelow * reportedShareMin)
      return { usage: boundedUsage(reported), estimated: false, ...seen };
    const completion = Math.ceil(this.#output.tokens);
    const prompt = reported?.prompt_tokens ?? this.#promptTokensEstimate();
    const details = reported?.prompt_tokens_details ?? noCache;
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: details,
      completion_tokens_details: { reasoning_tokens: 0 },
    };
    return { usage: boundedUsage(usage), estimated: true, ...seen };
  }

  push(chunk: ChatChunk): ChatChunk[] {
    this.#last = chunk;
    for (const { delta, finish_reason: reason } of chunk.choices) {
      if (reason === 'length') this.#atLimit = true;
      const text = deltaText(delta);
      if (text !== '') this.#anyContent = true;
      this.#output.add(text);
    }
    if (!chunk.usage) return [this.#withQuota(chunk)];
    this.#usage = boundedUsage(chunk.usage);
    return [this.#withQuota({ ...chunk, usage: this.#usage })];
  }

  end(): ChatChunk[] {
    if (this.#usage || !this.#last) return [];
    return [this.#withQuota({ ...this.#last, choices: [], usage: this.measure().usage })];
  }

  /**
   * Official mode: adds the cost to the chunk with the usage, and null to the others. Other modes: adds
   * nothing.
   */
  #withQuota(chunk: ChatChunk): ChatChunk {
    if (!this.#quota) return chunk;
    return { ...chunk, quota: chunk.usage ? this.#quota(chunk.usage) : null };
  }
}
