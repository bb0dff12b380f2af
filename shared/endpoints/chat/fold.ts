/** Folds the chunks of an answer into one completion, for clients that do not stream. */
import {
  isUrlCitation,
  type AssistantMessage,
  type ChatChunk,
  type ChatCompletion,
  type ChatUsage,
  type ChunkChoice,
  type FinishReason,
  type ToolCall,
  type ToolCallDelta,
  type UrlCitation,
  deltaText,
  GrowingText,
  type Kept,
  ReasoningDetails,
} from '../../wire/chat-response.ts';
import { createKeptForAnswer } from '../endpoint.ts';
import { listIn, recordsIn } from '../../wire/json.ts';

export class ChunksToCompletion {
  readonly #choices = new Map<number, FoldedChoice>();
  readonly #kept: Kept;
  #first: ChatChunk | undefined;
  #usage: ChatUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  #quota: number | undefined;

  constructor(kept = createKeptForAnswer()) {
    this.#kept = kept;
  }

  push(chunk: ChatChunk): void {
    this.#first ??= chunk;
    if (chunk.usage) this.#usage = chunk.usage;
    if (typeof chunk.quota === 'number') this.#quota = chunk.quota;
    for (const choice of chunk.choices) {
      const folded = this.#choices.get(choice.index) ?? new FoldedChoice(this.#kept);
      this.#choices.set(choice.index, folded);
      folded.push(choice);
    }
  }

  /** The complete answer. Throws unless a chunk was pushed before. */
  completion(): ChatCompletion {
    const first = this.#first;
    if (!first) throw new Error('a completion needs at least one chunk');
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b);
    return {
      id: first.id,
      object: 'chat.completion',
      created: first.created,
      model: first.model,
      choices: choices.map(([index, folded]) => folded.whole(index)),
      usage: this.#usage,
      ...(this.#quota === undefined ? {} : { quota: this.#quota }),
    };
  }
}

const callBytes = 512;

interface FoldedCall extends Pick<ToolCall, 'id' | 'type'> {
  name: string;
  text: GrowingText;
  extra: unknown;
}

class FoldedChoice {
  readonly #kept: Kept;
  readonly #content = new GrowingText();
  readonly #reasoning = new GrowingText();
  readonly #refusal = new GrowingText();
  readonly #details: ReasoningDetails;
  readonly #calls = new Map<number, FoldedCall>();
  readonly #annotations: UrlCitation[] = [];
  readonly #images: unknown[] = [];
  #logprobs: Record<'content' | 'refusal', unknown[]> | null = null;
  #finish: FinishReason = 'stop';

  constructor(kept: Kept) {
    this.#kept = kept;
    this.#details = new ReasoningDetails(kept);
  }

  push({ delta, logprobs, finish_reason: finish }: ChunkChoice): void {
    this.#kept.text(deltaText(delta));
    this.#content.add(delta.content ?? '');
    this.#reasoning.add(delta.reasoning_content ?? '');
    this.#refusal.add(delta.refusal ?? '');
    this.#details.push(recordsIn(delta.reasoning_details));
    append(this.#annotations, delta.annotations?.filter(isUrlCitation) ?? [], this.#kept);
    append(this.#images, delta.images ?? [], this.#kept);
    for (const piece of delta.tool_calls ?? []) this.#pushCall(piece);
    this.#kept.value(logprobs);
    if (logprobs !== null) {
      const { content, refusal } = logprobs as Record<'content' | 'refusal', unknown>;
      this.#logprobs ??= { content: [], refusal: [] };
      append(this.#logprobs.content, listIn(content));
      append(this.#logprobs.refusal, listIn(refusal));
    }
    this.#finish = finish ?? this.#finish;
  }

  #pushCall({ index, id = '', type = 'function', ...piece }: ToolCallDelta): void {
    const known = this.#calls.get(index);
    if (!known) this.#kept.bytes(callBytes);
    if (piece.extra_content !== undefined) this.#kept.value(piece.extra_content);
    const name = piece.function?.name ?? piece.custom?.name ?? '';
    const call = known ?? { id, type, name, text: new GrowingText(), extra: undefined };
    call.text.add(piece.function?.arguments ?? piece.custom?.input ?? '');
    call.extra = piece.extra_content ?? call.extra;
    this.#calls.set(index, call);
  }

  whole(index: number): ChatCompletion['choices'][number] {
    return { index, message: this.#message(), logprobs: this.#logprobs, finish_reason: this.#finish };
  }

  /** As OpenAI does, `content` is null only when the answer consists of tool calls or a refusal. */
  #message(): AssistantMessage {
    const [content, refusal, reasoning] = [this.#content.text, this.#refusal.text, this.#reasoning.text];
    const toolCalls = [...this.#calls].map(([index, call]) => toolCall(index, call));
    const { list: details } = this.#details;
    return {
      role: 'assistant',
      content: content === '' && (toolCalls.length > 0 || refusal !== '') ? null : content,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(details.length > 0 && { reasoning_details: details }),
      refusal: refusal === '' ? null : refusal,
      tool_calls: toolCalls.length > 0 ? toolCalls : null,
      ...(this.#annotations.length > 0 && { annotations: this.#annotations }),
      ...(this.#images.length > 0 && { images: this.#images }),
    };
  }
}

/** One by one, since a list of an upstream may be longer than a call may have arguments. */
function append<T>(list: T[], more: readonly T[], kept?: Kept): void {
  for (const each of more) {
    kept?.value(each);
    list.push(each);
  }
}

function toolCall(index: number, { id, type, name, text, extra }: FoldedCall): ToolCall {
  const whole = text.text;
  const called =
    type === 'custom' ? { custom: { name, input: whole } } : { function: { name, arguments: whole } };
  return { index, id, type, ...called, ...(extra !== undefined && { extra_content: extra }) };
}
