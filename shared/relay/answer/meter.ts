/**
 * Counts the text of the canonical stream, and adds the usage at its end. Must not change chunks except for usage and
 * quota.
 */
import type { CheckedUsage } from '../../billing/usage/checked-usage.ts';
import { StreamedText } from '../../billing/usage/estimates.ts';
import type { Machine } from '../../stream/machine.ts';
import type { ChatChunk, ChatUsage } from '../../wire/chat-response.ts';
import { besideText, hasContent, visibleText } from '../../wire/chunk-content.ts';

export interface Measure extends CheckedUsage {
  /** The answer had content. */
  anyContent: boolean;
  /** An answer ended because of its limit on output tokens. */
  atLimit: boolean;
}

export interface MeterParts {
  /** Compares what the upstream reported with what was streamed. `isCut`: the answer broke off. */
  check: (streamed: StreamedText, isCut: boolean) => CheckedUsage;
  /** The cost of a usage in yuan; only in official mode. */
  quota?: ((usage: ChatUsage) => number) | undefined;
}

/** Appends the usage as the last chunk. `measure` is valid at any time, also for interrupted answers. */
export class Meter implements Machine<ChatChunk, ChatChunk> {
  readonly #check: MeterParts['check'];
  readonly #quota: MeterParts['quota'];
  readonly #streamed = new StreamedText();
  #last: ChatChunk | undefined;
  #anyContent = false;
  #atLimit = false;
  #whole: CheckedUsage | undefined;

  constructor({ check, quota }: MeterParts) {
    this.#check = check;
    this.#quota = quota;
  }

  /** The client and the bill have the same counts. */
  measure(): Measure {
    return {
      ...(this.#whole ?? this.#check(this.#streamed, true)),
      anyContent: this.#anyContent,
      atLimit: this.#atLimit,
    };
  }

  push(chunk: ChatChunk): ChatChunk[] {
    this.#last = chunk;
    this.#anyContent ||= hasContent(chunk);
    for (const { delta, finish_reason: reason } of chunk.choices) {
      if (reason === 'length') this.#atLimit = true;
      this.#streamed.add(visibleText(delta), besideText(delta));
    }
    return [this.#withQuota(chunk)];
  }

  end(): ChatChunk[] {
    this.#whole = this.#check(this.#streamed, false);
    if (!this.#last) return [];
    return [this.#withQuota({ ...this.#last, choices: [], usage: this.#whole.usage })];
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
