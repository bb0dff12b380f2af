import type { Annotation, ToolCallDelta, Kept } from '../../wire/chat-response.ts';
import type { AnswerFacts } from '../endpoint.ts';
import {
  incompleteReason,
  type OutputItem,
  type ResponsesEvent,
  type TokenLogprob,
} from './response-object.ts';
import {
  CallWriter,
  type DeclaredTool,
  MessageWriter,
  ReasoningWriter,
  type ItemEnd,
  type ItemWriter,
} from './item-writers.ts';

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
interface ItemsContext {
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
    const item = new MessageWriter(this.#context.suffix, outputIndex, phase);
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
    const seal = (id: string): string | undefined => (hasState() ? this.#seal(id) : undefined);
    const item = new ReasoningWriter(this.#context.suffix, this.#nextIndex(), seal);
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
    const name = called?.name ?? custom?.name ?? '';
    const declared = this.#context.declared.get(name) ?? { name, namespace: undefined };
    const tool = { ...declared, kind: type ?? 'function' };
    return new CallWriter(this.#context.suffix, this.#nextIndex(), id, tool);
  }
}

/** An item and its events that wait until the items before it are done. */
interface Waiting {
  item: ItemWriter;
  events: ResponsesEvent[];
}

/**
 * The items of an answer in the order of their first appearance. One item is open at a time: clients read a change of
 * `output_index` as the end of an item. Events of later items wait until the open one is done, which upstreams do not
 * say: an item that may still grow stays open to the end of the answer. The reader of the answer bounds what waits;
 * pieces that wait are joined.
 */
class ItemQueue {
  /** The items that are done. */
  readonly output: OutputItem[] = [];
  readonly #waiting: Waiting[] = [];
  #added = 0;

  /** The output index of the next item. */
  get nextIndex(): number {
    return this.#added;
  }

  /** The item that was added last, unless it is done. */
  get last(): ItemWriter | undefined {
    return this.#waiting.at(-1)?.item;
  }

  /** Whether the item may still be written. */
  has(item: ItemWriter): boolean {
    return item.outputIndex >= this.output.length;
  }

  /** Opens an item. Its turn comes when all items before it are done. */
  add(item: ItemWriter): ResponsesEvent[] {
    this.#added += 1;
    this.#waiting.push({ item, events: [] });
    return [...this.write(item, item.added()), ...this.#advance()];
  }

  /** Returns the events that can be sent now: those of the open item, and of its followers if it is done. */
  write(item: ItemWriter, events: ResponsesEvent[]): ResponsesEvent[] {
    const [open] = this.#waiting;
    if (open?.item === item) return [...events, ...this.#advance()];
    const waiting = this.#waiting[item.outputIndex - this.output.length];
    for (const event of events) join(waiting?.events, event);
    return [];
  }

  /** Closes all items. `endOf`: how the last item ends. */
  end(endOf: ItemEnd): ResponsesEvent[] {
    const cut = endOf.status !== 'completed';
    const events: ResponsesEvent[] = [];
    for (let open = this.#waiting[0]; open; open = this.#waiting[0]) {
      const last = this.#waiting.length === 1;
      const status = cut && !open.item.finished() ? 'incomplete' : 'completed';
      events.push(...this.#close(open.item, last ? endOf : { status, phase: 'commentary' }));
    }
    return events;
  }

  #advance(): ResponsesEvent[] {
    const events: ResponsesEvent[] = [];
    for (let open = this.#waiting[0]; open; open = this.#waiting[0]) {
      if (this.#waiting.length === 1 || !open.item.finished()) break;
      events.push(...this.#close(open.item, { status: 'completed', phase: 'commentary' }));
    }
    return events;
  }

  /** Closes the open item and opens the next. */
  #close(item: ItemWriter, itemEnd: ItemEnd): ResponsesEvent[] {
    const { item: whole, events } = item.done(itemEnd);
    this.output.push(whole);
    this.#waiting.shift();
    return [...events, ...(this.#waiting[0]?.events.splice(0) ?? [])];
  }
}

/** Adds an event to those that wait. A delta that follows one of its kind lengthens it. */
function join(waiting: ResponsesEvent[] | undefined, event: ResponsesEvent): void {
  const last = waiting?.at(-1);
  if (last?.type !== event.type || typeof event['delta'] !== 'string') {
    waiting?.push(event);
    return;
  }
  last['delta'] = String(last['delta']) + event['delta'];
  if (Array.isArray(last['logprobs']) && Array.isArray(event['logprobs']))
    for (const logprob of event['logprobs']) last['logprobs'].push(logprob);
}
