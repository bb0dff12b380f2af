/**
 * Converts the answers of Chat Completions upstreams, chunks or one whole completion, to canonical chunks.
 */
import type {
  AnswerIdentity,
  ChatChunk,
  ChatDelta,
  ChatUsage,
  ChunkChoice,
  FinishReason,
  ToolCallDelta,
} from '../../../wire/chat-response.ts';
import { deltaText } from '../../../wire/chunk-content.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, ReaderContext } from '../../dialect.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import { isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import { UpstreamFailure } from '../../upstream-failure.ts';
import { readUsage, type ReadUsage } from './usage.ts';
import { UpstreamToolCalls } from './tool-calls.ts';

/** Far more than a model writes. Limits the memory that an answer takes. */
const textLengthMax = 4 * 1024 * 1024;
const choicesMax = 128;

interface ChoiceState {
  index: number;
  roleSent: boolean;
  finish: FinishReason | undefined;
  /** Undefined before the first piece of a tool call. */
  tools: UpstreamToolCalls | undefined;
}

/**
 * Deltas are passed on at once; the first of each choice gets the role. At the end come a finish chunk for
 * each choice and, if the upstream reported usage, one chunk with usage. Finish reasons are held until the
 * end, because some upstreams send more after them.
 */
export class ChatReader implements AnswerReader {
  done = false;
  readonly #identity: AnswerIdentity;
  readonly #choices = new Map<number, ChoiceState>();
  #usage: ReadUsage | undefined;
  #understood = false;
  /** UTF-16 code units of all texts so far. */
  #textLength = 0;

  /** No part of the turn is opaque yet. */
  readonly state: readonly StatePart[] | undefined = undefined;

  constructor({ identity }: ReaderContext) {
    this.#identity = identity;
  }

  get usage(): ChatUsage | undefined {
    return this.#usage?.usage;
  }

  get usageClamped(): boolean {
    return this.#usage?.clamped ?? false;
  }

  /** Whether the answer is complete: every choice has its finish reason, or `[DONE]` was read. */
  get #whole(): boolean {
    return this.done || (this.#choices.size > 0 && this.finishedChoices === this.#choices.size);
  }

  get finishedChoices(): number {
    return [...this.#choices.values()].filter(({ finish }) => finish).length;
  }

  push(event: UpstreamEvent): ChatChunk[] {
    if (this.done) return [];
    if (event.kind === 'done') {
      this.done = true;
      return [];
    }
    const value = event.value;
    if (!isRecord(value)) return [];
    if (value['error'] && !this.#whole) throw new UpstreamFailure('error_in_answer');
    this.#usage = readUsage(value['usage']) ?? this.#usage;
    if (!Array.isArray(value['choices'])) return [];
    this.#understood = true;
    return value['choices'].flatMap((choice: unknown, position) =>
      isRecord(choice) ? this.#pushChoice(choice, position) : [],
    );
  }

  end(): ChatChunk[] {
    if (!this.#whole) {
      if (this.#choices.size > 0) throw new UpstreamFailure('cut');
      throw new UpstreamFailure(this.#understood ? 'empty' : 'junk');
    }
    if (this.#choices.size === 0) throw new UpstreamFailure('empty');
    const choices = [...this.#choices.values()].toSorted((a, b) => a.index - b.index);
    const last = choices.flatMap((choice) => this.#finish(choice));
    return this.#usage ? [...last, { ...this.#chunk([]), usage: this.#usage.usage }] : last;
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    if (this.#whole) return this.end();
    throw error;
  }

  #pushChoice(source: JsonRecord, position: number): ChatChunk[] {
    const index = typeof source['index'] === 'number' ? source['index'] : position;
    const choice = this.#choice(index);
    if (source['finish_reason'] === 'error') throw new UpstreamFailure('error_in_answer');
    choice.finish = finishReason(source['finish_reason']) ?? choice.finish;

    const piece = source['delta'] ?? source['message'];
    const delta = isRecord(piece) ? readDelta(piece, (calls) => this.#pushCalls(choice, calls)) : {};
    const logprobs = readLogprobs(source['logprobs']);
    this.#textLength += deltaText(delta).length;
    if (this.#textLength > textLengthMax) throw new UpstreamFailure('too_large');
    if (Object.keys(delta).length === 0 && logprobs === null) return [];
    return [this.#delta(choice, delta, logprobs)];
  }

  #choice(index: number): ChoiceState {
    const known = this.#choices.get(index);
    if (known) return known;
    if (this.#choices.size >= choicesMax) throw new UpstreamFailure('too_large');
    const choice = { index, roleSent: false, finish: undefined, tools: undefined };
    this.#choices.set(index, choice);
    return choice;
  }

  #pushCalls(choice: ChoiceState, pieces: unknown[]): ToolCallDelta[] {
    choice.tools ??= new UpstreamToolCalls(`call_${this.#identity.requestId}_${choice.index}_`);
    return choice.tools.push(pieces);
  }

  #finish(choice: ChoiceState): ChatChunk[] {
    const pieces = choice.tools?.end() ?? [];
    const calls = pieces.length > 0 ? [this.#delta(choice, { tool_calls: pieces }, null)] : [];
    const opening = choice.roleSent ? [] : [this.#delta(choice, { content: '' }, null)];
    const reason = agree(choice.finish ?? 'stop', choice.tools?.any ?? false);
    const finish = { index: choice.index, delta: {}, logprobs: null, finish_reason: reason };
    return [...calls, ...opening, this.#chunk([finish])];
  }

  #delta(choice: ChoiceState, delta: ChatDelta, logprobs: unknown): ChatChunk {
    const whole: ChatDelta = choice.roleSent ? delta : { role: 'assistant', ...delta };
    choice.roleSent = true;
    return this.#chunk([{ index: choice.index, delta: whole, logprobs, finish_reason: null }]);
  }

  #chunk(choices: ChunkChoice[]): ChatChunk {
    const { requestId, created, model } = this.#identity;
    return {
      id: `chatcmpl-${requestId}`,
      object: 'chat.completion.chunk',
      created,
      model,
      choices,
      usage: null,
    };
  }
}

/** A delta (or a whole message) without empty fields. An empty string is not content. */
function readDelta(source: JsonRecord, pushCalls: (pieces: unknown[]) => ToolCallDelta[]): ChatDelta {
  const delta: ChatDelta = {};
  const content = textOf(source['content'], 'text');
  const reasoning =
    textOf(source['reasoning_content'] ?? source['reasoning'], 'text') ||
    textOf(source['content'], 'thinking');
  const refusal = textOf(source['refusal'], 'text');
  if (content !== '') delta.content = content;
  if (reasoning !== '') delta.reasoning_content = reasoning;
  if (refusal !== '') delta.refusal = refusal;

  const pieces = Array.isArray(source['tool_calls']) ? source['tool_calls'] : [];
  const legacy = isRecord(source['function_call']) ? [{ index: 0, function: source['function_call'] }] : [];
  const called = pieces.length > 0 ? pieces : legacy;
  const calls = called.length > 0 ? pushCalls(called) : [];
  if (calls.length > 0) delta.tool_calls = calls;
  return delta;
}

/** Text of a string or, as Mistral sends it, of a list of typed parts. */
function textOf(value: unknown, kind: 'text' | 'thinking'): string {
  if (typeof value === 'string') return kind === 'text' ? value : '';
  if (!Array.isArray(value)) return '';
  return value
    .filter(isRecord)
    .filter((part) => part['type'] === kind)
    .map((part) => textOf(part[kind], 'text'))
    .join('');
}

const knownReasons = new Map<string, FinishReason>(
  Object.entries({
    stop: 'stop',
    length: 'length',
    max_tokens: 'length',
    model_length: 'length',
    tool_calls: 'tool_calls',
    tool_use: 'tool_calls',
    function_call: 'tool_calls',
    content_filter: 'content_filter',
    safety: 'content_filter',
    refusal: 'content_filter',
  } as const),
);

/** Undefined for null and empty: the choice continues. An unknown reason counts as `stop`. */
function finishReason(value: unknown): FinishReason | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  return knownReasons.get(value.toLowerCase()) ?? 'stop';
}

/** Clients act on `tool_calls`, so it is sent exactly when there are calls and the answer was not cut. */
function agree(reason: FinishReason, anyToolCalls: boolean): FinishReason {
  if (anyToolCalls) return reason === 'stop' ? 'tool_calls' : reason;
  return reason === 'tool_calls' ? 'stop' : reason;
}

function readLogprobs(value: unknown): unknown {
  if (!isRecord(value)) return null;
  return { content: value['content'] ?? null, refusal: value['refusal'] ?? null };
}
