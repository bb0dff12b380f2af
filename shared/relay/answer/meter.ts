import { deltaText } from '../../wire/chunk-content.ts';
import { estimateTokens } from '../../billing/estimators.ts';
import type { Machine } from '../../stream/machine.ts';
import type { ChatChunk, ChatUsage } from '../../wire/chat-response.ts';

/** Estimates are up to 16 % off: counts that are much lower than what was streamed are older than it. */
const toldShareMin = 0.7;

/**
 * Measures the canonical stream as it passes, and completes it: an answer whose upstream told no usage gets an
 * estimate as its last chunk. What the meter knows is valid at any moment, for answers that break off.
 */
export class Meter implements Machine<ChatChunk, ChatChunk> {
  readonly #promptTokensEstimate: () => number;
  readonly #quota: ((usage: ChatUsage) => number) | undefined;
  #last: ChatChunk | undefined;
  #outputTokens = 0;
  #promptTokens: number | undefined;
  #usage: ChatUsage | undefined;

  /** `quota`: in official mode alone, what a usage costs in yuan. */
  constructor(promptTokensEstimate: () => number, quota?: (usage: ChatUsage) => number) {
    this.#promptTokensEstimate = promptTokensEstimate;
    this.#quota = quota;
  }

  /** The upstream's own counts, or the estimate of what has passed so far. */
  get usage(): ChatUsage {
    if (this.#usage) return this.#usage;
    const prompt = this.#promptTokens ?? this.#promptTokensEstimate();
    const completion = Math.ceil(this.#outputTokens);
    return {
      prompt_tokens: prompt,
      completion_tokens: completion,
      total_tokens: prompt + completion,
      prompt_tokens_details: { cached_tokens: 0 },
      completion_tokens_details: { reasoning_tokens: 0 },
    };
  }

  get estimated(): boolean {
    return this.#usage === undefined;
  }

  get anyContent(): boolean {
    return this.#outputTokens > 0;
  }

  /**
   * The upstream's counts of an answer that broke off before it could carry them. Counts of an early chunk, which
   * more was streamed after, are worth nothing but their prompt.
   */
  told(usage: ChatUsage | undefined): void {
    if (this.#usage || !usage) return;
    if (usage.completion_tokens >= this.#outputTokens * toldShareMin) this.#usage = usage;
    else this.#promptTokens = usage.prompt_tokens;
  }

  push(chunk: ChatChunk): ChatChunk[] {
    this.#last = chunk;
    if (chunk.usage) this.#usage = chunk.usage;
    for (const { delta } of chunk.choices) this.#outputTokens += estimateTokens(deltaText(delta));
    return [this.#withQuota(chunk)];
  }

  end(): ChatChunk[] {
    if (this.#usage || !this.#last) return [];
    return [this.#withQuota({ ...this.#last, choices: [], usage: this.usage })];
  }

  /** Official mode: the cost beside the usage, null before. Elsewhere the key is absent. */
  #withQuota(chunk: ChatChunk): ChatChunk {
    if (!this.#quota) return chunk;
    return { ...chunk, quota: chunk.usage ? this.#quota(chunk.usage) : null };
  }
}
