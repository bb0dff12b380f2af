/**
 * Counts the text of the canonical stream, and adds the usage at its end. Must not change chunks except for usage and
 * quota.
 */
import {
  type CheckedUsage,
  StreamedText,
  type UsageBounds,
  inputBelow,
  inputMax,
} from '../../billing/usage.ts';
import type { Machine } from '../../stream/machine.ts';
import {
  type ChatChunk,
  type ChatUsage,
  besideText,
  hasContent,
  visibleText,
} from '../../wire/chat-response.ts';
import { ruleLimits } from '../../billing/price.ts';
import type { ChatRequest } from '../../wire/canonical-call.ts';
import type { ChatCall, DispatchReport } from '../call/call.ts';

export interface Measure extends CheckedUsage {
  /** The answer had content. */
  anyContent: boolean;
  /** An answer ended because of its limit on output tokens. */
  atLimit: boolean;
}

interface MeterParts {
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

// What the counts of an answer are compared with, from the call as it was sent to its upstream.

/** More than any model writes in one answer; holds where neither request nor row says a limit. */
const outputTokensEver = 512 * 1024;
/** Vendors stop some tokens after the limit and count the end marks. */
const outputSlack = 1.05;
const outputSlackTokens = 64;
/** What tools that run at the upstream may read. */
const hostedToolsTokens = 200_000;

export function usageBounds(
  call: ChatCall,
  { request, channel, sent }: DispatchReport,
  inputUnbiased: (request: ChatRequest) => number,
): Omit<UsageBounds, 'streamed' | 'isCut'> {
  const asked = { request, unknown: call.unknown };
  const params = channel?.params;
  const { maxOutputTokens = Infinity } = ruleLimits(call.snapshot.charges, call.model.base, call.startedMs);
  const known = Math.min(params?.max_output_tokens ?? Infinity, maxOutputTokens);
  const limit = Math.min(sent.outputTokensMax ?? outputTokensEver, known);
  const hosted = (params?.allow.length ?? 0) > 0 ? hostedToolsTokens : 0;
  // States of earlier turns go up too, though no client sent them.
  const putBack = [...call.states.values()];
  const carried = call.items && [...call.items.after.values(), ...call.items.instead.values()];
  return {
    inputBelow: () => inputBelow(asked),
    inputUnbiased: () => inputUnbiased(request),
    // What multiplies was allowed by the row, and its limits are the vendor's own.
    inputMax: () =>
      sent.isMultiplied
        ? Infinity
        : inputMax({ request, unknown: { ...call.unknown, putBack, carried } }) + hosted,
    outputMax: sent.isMultiplied ? Infinity : limit * (request.n ?? 1) * outputSlack + outputSlackTokens,
  };
}
