import type { Annotation, ToolCallDelta } from '../../../wire/chat-response.ts';
import type { Kept } from '../../../wire/chunk-content.ts';
import type { AnswerFacts } from '../../endpoint.ts';
import { incompleteReason } from './objects.ts';
import type { OutputItem, ResponsesEvent, TokenLogprob } from './responses-response.ts';
import { CallWriter, type DeclaredTool } from './call-item.ts';
import { ItemQueue } from './item-queue.ts';
import { MessageWriter } from './message-item.ts';
import { ReasoningWriter } from './reasoning-item.ts';

/** What an item takes beside its texts: its ids and the events that open it. */
const itemBytes = 1024;
/** The same of a part of a message. */
const partBytes = 512;

/** What the items of an answer are made with. */
export interface ItemsContext {
  /** The end of the items' ids. */
  suffix: string;
  /** The declared tools, by flat name. */
  declared: ReadonlyMap<string, DeclaredTool>;
  kept: Kept;
  /** The state of the turn; undefined: the client does not keep it. */
  state: Pick<AnswerFacts, 'sealedState' | 'opaqueParts'> | undefined;
}

/**
 * The output items of an answer. Text after a call or after reasoning is a message of its own. The state of the turn
 * stands in the first reasoning item that closes with one; if more of it came later, the last item has the whole. Each
 * seal holds the state so far, so a seal in every reasoning item would grow with the square of the answer.
 */
export class AnswerItems {
  readonly #context: ItemsContext;
  readonly #queue = new ItemQueue();
  /** By index in the canonical stream. */
  readonly #calls = new Map<number, CallWriter>();
  /** Annotations that came before any text. */
  #annotations: Annotation[] = [];
  /** The phase that the upstream said last. */
  #phase: string | undefined;
  /** The number of opaque parts that the last seal had. */
  #sealedParts = 0;
  /** Reasoning came after the last seal. It may lengthen an opaque part. */
  #reasonedSince = false;
  #ending = false;
  /** The kind of the part that was written last. */
  #part: 'text' | 'refusal' | undefined;

  constructor(context: ItemsContext) {
    this.#context = context;
  }

  /** The items that are done. */
  get output(): OutputItem[] {
    return this.#queue.output;
  }

  phase(phase: string): void {
    this.#phase = phase;
  }

  reasoning(text: string): ResponsesEvent[] {
    this.#reasonedSince = true;
    const last = this.#queue.last;
    if (last instanceof ReasoningWriter) return this.#queue.write(last, last.summary(text));
    const { item, events } = this.#openReasoning();
    return [...events, ...this.#queue.write(item, item.summary(text))];
  }

  text(text: string, logprobs: TokenLogprob[]): ResponsesEvent[] {
    this.#countPart('text');
    const { item, events } = this.#message();
    const said = item.text(text, logprobs);
    const annotations = this.#annotations.splice(0).flatMap((each) => item.annotate(each));
    return [...events, ...this.#queue.write(item, [...said, ...annotations])];
  }

  refusal(text: string): ResponsesEvent[] {
    this.#countPart('refusal');
    const { item, events } = this.#message();
    return [...events, ...this.#queue.write(item, item.refusal(text))];
  }

  annotation(annotation: Annotation): ResponsesEvent[] {
    const last = this.#queue.last;
    if (last instanceof MessageWriter) return this.#queue.write(last, last.annotate(annotation));
    this.#annotations.push(annotation);
    return [];
  }

  /** A piece of a call that is done already says nothing: its arguments were complete. */
  call(piece: ToolCallDelta): ResponsesEvent[] {
    const text = piece.function?.arguments ?? piece.custom?.input ?? '';
    const known = this.#calls.get(piece.index);
    if (known) return this.#queue.has(known) ? this.#queue.write(known, known.input(text)) : [];
    const call = this.#newCall(piece);
    this.#calls.set(piece.index, call);
    return [...this.#queue.add(call), ...this.#queue.write(call, call.input(text))];
  }

  /** Closes all items; then comes the state that no item has yet. `finish`: the finish reason. */
  end(finish: string): ResponsesEvent[] {
    const cut = incompleteReason(finish) !== undefined;
    const phase = finish === 'tool_calls' ? 'commentary' : 'final_answer';
    this.#ending = true;
    const events = this.#queue.end({
      status: cut ? 'incomplete' : 'completed',
      phase: cut ? undefined : phase,
    });
    if (!this.#hasUnsealed()) return events;
    const opening = this.#openReasoning().events;
    return [...events, ...opening, ...this.#queue.end({ status: 'completed', phase: undefined })];
  }

  /** The open message, unless the upstream said that another phase began. */
  #message(): { item: MessageWriter; events: ResponsesEvent[] } {
    const last = this.#queue.last;
    const phase = this.#phase;
    if (last instanceof MessageWriter && (phase === undefined || phase === last.phase))
      return { item: last, events: [] };
    const outputIndex = this.#nextIndex();
    const item = new MessageWriter(`msg_${this.#context.suffix}_${outputIndex}`, outputIndex, phase);
    return { item, events: this.#queue.add(item) };
  }

  #openReasoning(): { item: ReasoningWriter; events: ResponsesEvent[] } {
    const outputIndex = this.#nextIndex();
    const id = `rs_${this.#context.suffix}_${outputIndex}`;
    const item = new ReasoningWriter(id, outputIndex, () => this.#seal(id, outputIndex));
    return { item, events: this.#queue.add(item) };
  }

  #seal(id: string, outputIndex: number): string | undefined {
    const { state } = this.#context;
    const isLast = this.#ending && outputIndex === this.#queue.nextIndex - 1;
    const due = this.#sealedParts === 0 || (isLast && this.#hasUnsealed());
    const sealed = due ? state?.sealedState(id) : undefined;
    if (!state || sealed === undefined) return undefined;
    this.#sealedParts = state.opaqueParts();
    this.#reasonedSince = false;
    return sealed;
  }

  /** Whether the client's last seal may lack some of the state. */
  #hasUnsealed(): boolean {
    const parts = this.#context.state?.opaqueParts() ?? 0;
    return parts > this.#sealedParts || (parts > 0 && this.#reasonedSince);
  }

  #countPart(kind: 'text' | 'refusal'): void {
    if (this.#part !== kind) this.#context.kept.bytes(partBytes);
    this.#part = kind;
  }

  /** Of an item that begins now. */
  #nextIndex(): number {
    this.#context.kept.bytes(itemBytes);
    return this.#queue.nextIndex;
  }

  #newCall({ id = '', type, function: called, custom }: ToolCallDelta): CallWriter {
    const outputIndex = this.#nextIndex();
    const flatName = called?.name ?? custom?.name ?? '';
    const { name, namespace } = this.#context.declared.get(flatName) ?? {
      name: flatName,
      namespace: undefined,
    };
    const tool = { kind: type ?? 'function', name, namespace };
    return new CallWriter({
      suffix: `${this.#context.suffix}_${outputIndex}`,
      outputIndex,
      callId: id,
      tool,
    });
  }
}
