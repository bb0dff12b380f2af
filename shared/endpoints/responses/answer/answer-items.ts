import type { Annotation, ToolCallDelta } from '../../../wire/chat-response.ts';
import type { Kept } from '../../../wire/chunk-content.ts';
import type { AnswerFacts } from '../../endpoint.ts';
import { incompleteReason } from './objects.ts';
import type { OutputItem, ResponsesEvent, TokenLogprob } from './responses-response.ts';
import { CallWriter, type DeclaredTool } from './call-item.ts';
import { ItemQueue } from './item-queue.ts';
import { MessageWriter } from './message-item.ts';
import { ReasoningWriter } from './reasoning-item.ts';

/**
 * How much of seals, in characters, one answer has before its end. Each seal holds the state so far, since clients may
 * keep the last one alone: without a bound they would grow with the square of an answer that reasons again and again.
 */
const sealsLengthMax = 128 * 1024;
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
 * stands, sealed, in a reasoning item before the text or the call that it led to, as far as it is known by then; what
 * comes later is in an item after it. Each seal holds the state so far, and the last one all of it.
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
  /** The number of opaque parts that the last seal has, or will have when its item closes. */
  #sealedParts = 0;
  #sealsLength = 0;
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

  /** Reasoning came, shown or not. */
  reasoned(): void {
    this.#reasonedSince = true;
  }

  reasoning(text: string): ResponsesEvent[] {
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
    const state = this.#stateBefore();
    const call = this.#newCall(piece);
    this.#calls.set(piece.index, call);
    return [...state, ...this.#queue.add(call), ...this.#queue.write(call, call.input(text))];
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
    const state = this.#stateBefore();
    if (state.length === 0) return events;
    return [...events, ...state, ...this.#queue.end({ status: 'completed', phase: undefined })];
  }

  /** The open message, unless the upstream said that another phase began. */
  #message(): { item: MessageWriter; events: ResponsesEvent[] } {
    const last = this.#queue.last;
    const phase = this.#phase;
    if (last instanceof MessageWriter && (phase === undefined || phase === last.phase))
      return { item: last, events: [] };
    const state = this.#stateBefore();
    const outputIndex = this.#nextIndex();
    const item = new MessageWriter(`msg_${this.#context.suffix}_${outputIndex}`, outputIndex, phase);
    return { item, events: [...state, ...this.#queue.add(item)] };
  }

  /** Opens an item for the state that led to what comes now, unless reasoning is open, which takes it when it closes. */
  #stateBefore(): ResponsesEvent[] {
    const isOpen = this.#queue.last instanceof ReasoningWriter;
    if (isOpen || !this.#takesState()) return [];
    return this.#openReasoning(() => true).events;
  }

  /** `hasState`: whether the item gets the state, asked when it closes. */
  #openReasoning(hasState = () => this.#takesState()): { item: ReasoningWriter; events: ResponsesEvent[] } {
    const outputIndex = this.#nextIndex();
    const id = `rs_${this.#context.suffix}_${outputIndex}`;
    const item = new ReasoningWriter(id, outputIndex, () => (hasState() ? this.#seal(id) : undefined));
    return { item, events: this.#queue.add(item) };
  }

  #seal(id: string): string | undefined {
    const sealed = this.#context.state?.sealedState(id);
    this.#sealsLength += sealed?.length ?? 0;
    return sealed;
  }

  /** Whether there is state that no item has, which one item then gets. */
  #takesState(): boolean {
    const isDue = this.#hasUnsealed() && (this.#ending || this.#sealsLength < sealsLengthMax);
    if (!isDue) return false;
    this.#sealedParts = this.#context.state?.opaqueParts() ?? 0;
    this.#reasonedSince = false;
    return true;
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
