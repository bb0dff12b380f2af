/** Counts what passes, for usage and bill. Never changes a chunk but for usage and quota. */
import { deltaText } from '../../wire/chunk-content.ts';
import { estimateTokens } from '../../billing/estimators.ts';
import type { Machine } from '../../stream/machine.ts';
import type { ChatChunk, ChatUsage } from '../../wire/chat-response.ts';

/** Estimates are up to 16 % off: counts that are much lower than what was streamed are older than it. */
const reportedShareMin = 0.7;

export interface Measure {
  usage: ChatUsage;
  /** The upstream's own counts were not seen. */
  estimated: boolean;
  /** The client could see something of an answer. */
  anyContent: boolean;
}

/**
 * Measures the canonical stream as it passes, and completes it: an answer whose upstream reported no usage gets an
 * estimate as its last chunk. `measure` is valid at any moment, for answers that are cut.
 */
export class Meter implements Machine<ChatChunk, ChatChunk> {
  readonly #promptTokensEstimate: () => number;
  readonly #quota: ((usage: ChatUsage) => number) | undefined;
  #last: ChatChunk | undefined;
  #outputTokens = 0;
  #usage: ChatUsage | undefined;

  /** `quota`: in official mode alone, what a usage costs in yuan. */
  constructor(promptTokensEstimate: () => number, quota?: (usage: ChatUsage) => number) {
    this.#promptTokensEstimate = promptTokensEstimate;
    this.#quota = quota;
  }

  /**
   * What is known so far. `reported`: the upstream's counts of an answer that broke off before a chunk could carry
   * them. Counts of an early chunk, after which more was streamed, are worth nothing but their prompt.
   */
  measure(reported?: ChatUsage): Measure {
    const completion = Math.ceil(this.#outputTokens);
    const anyContent = this.#outputTokens > 0;
    if (this.#usage) return { usage: this.#usage, estimated: false, anyContent };
    if (reported && reported.completion_tokens >= this.#outputTokens * reportedShareMin)
      return { usage: reported, estimated: false, anyContent };
    const prompt = reported?.prompt_tokens ?? this.#promptTokensEstimate();
    const usage = {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    };
    return { usage, estimated: true, anyContent };
  }

  push(chunk: ChatChunk): ChatChunk[] {
    this.#last = chunk;
    if (chunk.usage) this.#usage = chunk.usage;
    for (const { delta } of chunk.choices) this.#outputTokens += estimateTokens(deltaText(delta));
    return [this.#withQuota(chunk)];
  }

  end(): ChatChunk[] {
    if (this.#usage || !this.#last) return [];
    return [this.#withQuota({ ...this.#last, choices: [], usage: this.measure().usage })];
  }

  /** Official mode: the cost beside the usage, null before. Elsewhere the key is absent. */
  #withQuota(chunk: ChatChunk): ChatChunk {
    if (!this.#quota) return chunk;
    return { ...chunk, quota: chunk.usage ? this.#quota(chunk.usage) : null };
  }
}
