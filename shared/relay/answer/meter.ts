/**
 * Meters an answer: counts its text, and says what is charged of what its upstream reported. Client and bill have the same
 * counts.
 */
import type { Machine } from '../../stream/machine.ts';
import { findModelLimits } from '../../billing/tariff.ts';
import {
  type CheckedUsage,
  checkUsage,
  estimateInputBelow,
  estimateInputMax,
  StreamedText,
  type UsageBounds,
} from '../../billing/usage.ts';
import { outputTokensMaxOf } from '../../upstreams/called-channel.ts';
import { besideText, type ChatChunk, hasContent, visibleText } from '../../wire/chat-response.ts';
import type { ChatCall, DispatchedCall, DispatchReport } from '../call/call.ts';
import type { Bill } from '../money/bill.ts';

export interface Measure extends CheckedUsage {
  anyContent: boolean;
  /** An answer ended because of its limit on output tokens. */
  atLimit: boolean;
  /** The upstream's answer ended as a whole one does. */
  isWhole: boolean;
}

interface MeterInput {
  bill: Bill;
  dispatch: DispatchedCall;
}

/**
 * Counts the text of the canonical stream, and appends the usage as its last chunk; changes no other. `measure` is valid at
 * any time, also for interrupted answers.
 */
export class Meter implements Machine<ChatChunk, ChatChunk> {
  readonly #call: ChatCall;
  readonly #input: MeterInput;
  readonly #streamed = new StreamedText();
  #last: ChatChunk | undefined;
  #anyContent = false;
  #atLimit = false;
  #whole: CheckedUsage | undefined;

  constructor(call: ChatCall, parts: MeterInput) {
    this.#call = call;
    this.#input = parts;
  }

  /** The client and the bill have the same counts. */
  measure(): Measure {
    const checked = this.#whole ?? this.#checkUsage(true);
    const isWhole = this.#whole !== undefined;
    return { ...checked, anyContent: this.#anyContent, atLimit: this.#atLimit, isWhole };
  }

  /** Compares the upstream's usage with what was streamed. `isCut` means the answer broke off. */
  #checkUsage(isCut: boolean): CheckedUsage {
    const { dispatch, bill } = this.#input;
    const report = dispatch.report();
    return checkUsage(report.usage, {
      ...computeUsageBounds(this.#call, report, bill),
      streamed: this.#streamed,
      isCut: isCut || report.isCut === true,
    });
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
    this.#whole = this.#checkUsage(false);
    if (!this.#last) return [];
    return [this.#withQuota({ ...this.#last, choices: [], usage: this.#whole.usage })];
  }

  /**
   * Official mode: adds the cost to the chunk with the usage, and null to the others. Other modes: adds
   * nothing.
   */
  #withQuota(chunk: ChatChunk): ChatChunk {
    const { quota } = this.#input.bill;
    if (!quota) return chunk;
    if (!chunk.usage) return { ...chunk, quota: null };
    return { ...chunk, quota: quota(chunk.usage, this.#input.dispatch.report()) };
  }
}

// Bounds for the counts of an answer, from the call as it was sent upstream.

/** More than any model writes in one answer; holds where neither request nor row says a limit. */
const outputTokensEver = 512 * 1024;
/** Vendors stop some tokens after the limit and count the end marks. */
const outputSlack = 1.05;
const outputSlackTokens = 64;
const hostedToolsTokens = 200_000;

export function computeUsageBounds(
  call: ChatCall,
  report: DispatchReport,
  bill: Pick<Bill, 'inputTokens'>,
): Omit<UsageBounds, 'streamed' | 'isCut'> {
  const { request, channel, sent, model } = report;
  const params = channel?.params;
  const { maxOutputTokens = Infinity } = findModelLimits(call.tariff, model);
  const known = Math.min((channel && outputTokensMaxOf(channel, model)) ?? Infinity, maxOutputTokens);
  const limit = Math.min(sent.outputTokensMax ?? outputTokensEver, known);
  const hosted = (params?.allow.length ?? 0) > 0 ? hostedToolsTokens : 0;
  // States of earlier turns go up too, though no client sent them.
  const putBack = [...call.states.values()];
  const { items, embedding } = call;
  const native = sent.isNative ? call.native : undefined;
  // Not every upstream is asked in words for a summary.
  const read = call.compacts ? { ...request, messages: request.messages.slice(0, -1) } : request;
  const carried = items && [...items.after.values(), ...items.instead.values()];
  const { unknown, thread } = call;
  return {
    inputBelow: () => estimateInputBelow({ request: read, unknown, embedding }),
    inputUnbiased: () => bill.inputTokens(request, model, sent),
    // The row allowed what multiplies, and its limits are the vendor's.
    inputMax: () => {
      if (sent.isMultiplied) return Infinity;
      const { dropped, unsentMedia } = sent;
      return (
        estimateInputMax(
          { request, unknown, embedding, native, items, thread, dropped, unsentMedia },
          { putBack, carried },
        ) + hosted
      );
    },
    outputMax: sent.isMultiplied ? Infinity : limit * (request.n ?? 1) * outputSlack + outputSlackTokens,
  };
}
