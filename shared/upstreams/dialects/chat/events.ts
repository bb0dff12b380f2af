/**
 * Converts the answers of Chat Completions upstreams, chunks or one whole completion, to canonical chunks.
 */
import type { ChatChunk, ChatDelta, ChunkChoice, ReportedUsage } from '../../../wire/chat-response.ts';
import { Kept } from '../../../wire/chunk-content.ts';
import { isRecord, type JsonRecord } from '../../../wire/json-record.ts';
import type { StatePart } from '../../../wire/turn-state.ts';
import type { UpstreamEvent } from '../../body-events.ts';
import type { AnswerReader, ReaderContext } from '../../dialect.ts';
import { ErrorInAnswer, UpstreamFailure } from '../../upstream-failure.ts';
import { serviceTierOf, UsageCounts } from '../../usage-counts.ts';
import { DeclaredNames } from './calls/declared-names.ts';
import { Choice } from './choice.ts';
import { errorOfEvent } from './failure.ts';
import { citationsOfEvent } from './delta.ts';
import { countsOfEvent } from './usage.ts';

/** Far more than a model writes, in any script. */
const keptBytesMax = 4 * 1024 * 1024;
const tooLarge = (): UpstreamFailure => new UpstreamFailure('too_large');
const choicesMax = 128;

/**
 * Deltas are passed on at once; the first of each choice gets the role. At the end comes a finish chunk for
 * each choice. Finish reasons are held until then, because some upstreams send more after them.
 */
export class ChatReader implements AnswerReader {
  done = false;
  serviceTier: string | undefined;
  readonly #context: ReaderContext;
  #names: DeclaredNames | undefined;
  readonly #choices = new Map<number, Choice>();
  readonly #shownIds = new Set<string>();
  #callsShown = 0;
  readonly #usage = new UsageCounts();
  #understood = false;
  /** The last event with `citations` of its own, which each event repeats, longer or not. */
  #cited: JsonRecord | undefined;
  readonly #kept = new Kept(keptBytesMax, tooLarge);

  constructor(context: ReaderContext) {
    this.#context = context;
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.reported;
  }

  get state(): readonly StatePart[] | undefined {
    return this.#choices.get(0)?.state;
  }

  /** Whether the answer is complete: every choice has its finish reason, or `[DONE]` was read. */
  get #whole(): boolean {
    return this.done || (this.#choices.size > 0 && this.finishedChoices === this.#choices.size);
  }

  get finishedChoices(): number {
    let finished = 0;
    for (const { finish } of this.#choices.values()) if (finish) finished += 1;
    return finished;
  }

  push(event: UpstreamEvent): ChatChunk[] {
    if (this.done) return [];
    if (event.kind === 'done') {
      this.done = true;
      return [];
    }
    const { value } = event;
    if (!isRecord(value)) return [];
    const error = this.#whole ? undefined : errorOfEvent(value);
    if (error) throw new ErrorInAnswer(error);
    this.#usage.push(countsOfEvent(value));
    const { service_tier: tier, choices, citations } = value;
    this.serviceTier = serviceTierOf(tier) ?? this.serviceTier;
    if (Array.isArray(citations) && citations.length > 0) this.#cited = value;
    if (!Array.isArray(choices)) return [];
    this.#understood = true;
    const chunks = choices.flatMap((choice: unknown, position) =>
      isRecord(choice) ? this.#pushChoice(choice, position) : [],
    );
    if (event.isWhole) for (const choice of this.#choices.values()) choice.complete();
    return chunks;
  }

  end(): ChatChunk[] {
    if (!this.#whole) {
      if (this.#choices.size > 0) throw new UpstreamFailure('cut');
      throw new UpstreamFailure(this.#understood ? 'empty' : 'junk');
    }
    if (this.#choices.size === 0) throw new UpstreamFailure('empty');
    const choices = [...this.#choices.values()].toSorted((a, b) => a.index - b.index);
    return choices.flatMap((choice) => this.#citations(choice).concat(this.#finish(choice)));
  }

  /** A complete answer ends normally, however the connection ended. */
  fail(error: unknown): ChatChunk[] {
    if (this.#whole) return this.end();
    throw error;
  }

  #pushChoice(source: JsonRecord, position: number): ChatChunk[] {
    const choice = this.#choice(typeof source['index'] === 'number' ? source['index'] : position);
    const said = choice.push(source);
    return said ? [this.#delta(choice, said.delta, said.logprobs)] : [];
  }

  #choice(index: number): Choice {
    const known = this.#choices.get(index);
    if (known) return known;
    if (this.#choices.size >= choicesMax) throw tooLarge();
    const { quirks, sent } = this.#context;
    const kept = this.#kept;
    const choice = new Choice({
      index,
      thinkTags: quirks.thinkTags,
      calls: () => ({
        showId: (id) => this.#showId(id),
        names: (this.#names ??= DeclaredNames.of(sent.body)),
        wrapped: sent.wrapped,
        kept,
      }),
      kept,
    });
    this.#choices.set(index, choice);
    return choice;
  }

  /** An id that the upstream repeats in the answer is replaced. */
  #showId(vendorId: string | undefined): string {
    const { callIds } = this.#context;
    const index = this.#callsShown;
    this.#callsShown += 1;
    const own = callIds.show(vendorId, index);
    const id = this.#shownIds.has(own) ? callIds.show(undefined, index) : own;
    this.#shownIds.add(id);
    return id;
  }

  /** Perplexity and xAI cite beside the choices, which are answers to one question; others in the message, and some in both. */
  #citations(choice: Choice): ChatChunk[] {
    const annotations = this.#cited && !choice.annotated ? citationsOfEvent(this.#cited) : [];
    if (annotations.length === 0) return [];
    this.#kept.value(annotations);
    return [this.#delta(choice, { annotations }, null)];
  }

  #finish(choice: Choice): ChatChunk[] {
    const { deltas, reason } = choice.end();
    const said = deltas.map((delta) => this.#delta(choice, delta, null));
    const opening = choice.roleSent ? [] : [this.#delta(choice, { content: '' }, null)];
    const finish = { index: choice.index, delta: {}, logprobs: null, finish_reason: reason };
    return [...said, ...opening, this.#chunk([finish])];
  }

  #delta(choice: Choice, delta: ChatDelta, logprobs: unknown): ChatChunk {
    const whole: ChatDelta = choice.roleSent ? delta : { role: 'assistant', ...delta };
    choice.roleSent = true;
    return this.#chunk([{ index: choice.index, delta: whole, logprobs, finish_reason: null }]);
  }

  #chunk(choices: ChunkChoice[]): ChatChunk {
    const { requestId, created, model } = this.#context.identity;
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
