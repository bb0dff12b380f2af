/**
 * Counts tokens of the canonical stream for usage and bill. Must not change chunks except for usage and
 * quota.
 */
import { deltaText } from '../../wire/chunk-content.ts';
import { estimateTokens } from '../../billing/estimators.ts';
import type { Machine } from '../../stream/machine.ts';
import type { ChatChunk, ChatUsage } from '../../wire/chat-response.ts';

/**
 * Minimum ratio of reported to streamed tokens. Estimates are up to 16 % off; much lower counts were reported
 * before the rest was streamed.
 */
const reportedShareMin = 0.7;

export interface Measure {
  usage: ChatUsage;
  /** The upstream reported no usable counts. */
  estimated: boolean;
  /** Output was streamed to the client. */
  anyContent: boolean;
}

/**
 * Measures the canonical stream. Without usage from the upstream, it appends an estimate as the last chunk.
 * `measure` is valid at any time, also for interrupted answers.
 */
export class Meter implements Machine<ChatChunk, ChatChunk> {
  readonly #promptTokensEstimate: () => number;
  readonly #quota: ((usage: ChatUsage) => number) | undefined;
  #last: ChatChunk | undefined;
  #outputTokens = 0;
  #usage: ChatUsage | undefined;

  /** `quota`: the cost of a usage in yuan; only in official mode. */
  constructor(promptTokensEstimate: () => number, quota?: (usage: ChatUsage) => number) {
    this.#promptTokensEstimate = promptTokensEstimate;
    this.#quota = quota;
  }

  /**
   * The usage so far. `reported`: counts that the upstream reported but that reached no chunk before the
   * answer broke off. When much more was streamed after these counts, only their prompt tokens are used.
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

  /**
   * Official mode: adds the cost to the chunk with the usage, and null to the others. Other modes: adds
   * nothing.
   */
  #withQuota(chunk: ChatChunk): ChatChunk {
    if (!this.#quota) return chunk;
    return { ...chunk, quota: chunk.usage ? this.#quota(chunk.usage) : null };
  }
}
