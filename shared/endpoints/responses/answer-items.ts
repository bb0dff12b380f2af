/** Messages, reasoning and calls of an answer, each written as one output item with its events from added to done. */
import { JsonScan } from '../../stream/json-scan.ts';
import { isUrlCitation, type Annotation, GrowingText } from '../../wire/chat-response.ts';

/** One event without its sequence number, which the stream renderer adds. */
export type ResponsesEvent = { type: string } & Record<string, unknown>;

type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

interface ItemEnd {
  status: ItemStatus;
  /** The phase of a message that has none of its own. */
  phase?: 'commentary' | 'final_answer';
}

abstract class ItemWriter {
  readonly outputIndex: number;
  readonly #id: string;

  /** `suffix`: the end of the ids of all items of the answer. */
  constructor(prefix: string, suffix: string, outputIndex: number) {
    this.#id = `${prefix}_${suffix}_${outputIndex}`;
    this.outputIndex = outputIndex;
  }

  /** True if nothing can follow in this item once another one began. */
  finished(): boolean {
    return true;
  }

  added(): ResponsesEvent {
    const item = this.item(this.#id, { status: 'in_progress' });
    return { type: 'response.output_item.added', output_index: this.outputIndex, item };
  }

  /** Called once. The last event has the item. */
  done(end: ItemEnd): { item: OutputItem; events: ResponsesEvent[] } {
    const closing = this.closing();
    const item = this.item(this.#id, end);
    const done = { type: 'response.output_item.done', output_index: this.outputIndex, item };
    return { item, events: [...closing, done] };
  }

  protected event(type: string, more: object): ResponsesEvent {
    return { type: `response.${type}`, item_id: this.#id, output_index: this.outputIndex, ...more };
  }

  protected abstract closing(): ResponsesEvent[];

  abstract item(id: string, end: ItemEnd): OutputItem;
}

type Item<Type extends string, More> = { id: string; type: Type; status: ItemStatus } & More;
export type OutputItem = MessageItem | ReasoningItem | CallItem | CompactionItem;

export interface TopLogprob {
  token: string;
  logprob: number;
  bytes: number[];
}
export type TokenLogprob = TopLogprob & { top_logprobs: TopLogprob[] };

const emptyParts = {
  output_text: () => ({
    type: 'output_text' as const,
    text: '',
    annotations: [] as object[],
    logprobs: [] as TokenLogprob[],
  }),
  refusal: () => ({ type: 'refusal' as const, refusal: '' }),
};
type PartType = keyof typeof emptyParts;
type PartOf<Type extends PartType> = ReturnType<(typeof emptyParts)[Type]>;

/** `phase`: `commentary` or `final_answer`. Set when the item is done, or at its start if the upstream says it. */
type MessageItem = Item<'message', { role: 'assistant'; phase?: string; content: PartOf<PartType>[] }>;

/** A message. Its parts are written one after the other; text and refusal are parts of their own. */
export class MessageWriter extends ItemWriter {
  readonly phase: string | undefined;
  readonly #content: PartOf<PartType>[] = [];
  /** The text of the open part, which gets it when it closes. */
  #said = new GrowingText();

  constructor(suffix: string, outputIndex: number, phase: string | undefined) {
    super('msg', suffix, outputIndex);
    this.phase = phase;
  }

  text(delta: string, logprobs: TokenLogprob[]): ResponsesEvent[] {
    const { part, events } = this.#part('output_text');
    this.#said.add(delta);
    for (const each of logprobs) part.logprobs.push(each);
    return [...events, this.#partEvent('output_text.delta', { delta, logprobs })];
  }

  refusal(delta: string): ResponsesEvent[] {
    const { events } = this.#part('refusal');
    this.#said.add(delta);
    return [...events, this.#partEvent('refusal.delta', { delta })];
  }

  /** Belongs to the text before it, or to the one after it if there is none yet. */
  annotate(noted: Annotation): ResponsesEvent[] {
    const { part, events } = this.#part('output_text');
    const annotation = isUrlCitation(noted) ? { type: noted.type, ...noted.url_citation } : noted;
    const place = { annotation_index: part.annotations.length };
    part.annotations.push(annotation);
    return [...events, this.#partEvent('output_text.annotation.added', { ...place, annotation })];
  }

  protected closing(): ResponsesEvent[] {
    const part = this.#content.at(-1);
    if (!part) return [];
    const { text } = this.#said;
    this.#said = new GrowingText();
    Object.assign(part, part.type === 'refusal' ? { refusal: text } : { text });
    const said =
      part.type === 'refusal'
        ? this.#partEvent('refusal.done', { refusal: text })
        : this.#partEvent('output_text.done', { text, logprobs: part.logprobs });
    return [said, this.#partEvent('content_part.done', { part })];
  }

  item(id: string, { status, ...end }: ItemEnd): MessageItem {
    const phase = this.phase ?? end.phase;
    const said = { ...(phase !== undefined && { phase }), content: [...this.#content] };
    return { id, type: 'message', status, role: 'assistant', ...said };
  }

  #partEvent(type: string, more: object): ResponsesEvent {
    return this.event(type, { content_index: this.#content.length - 1, ...more });
  }

  #part<Type extends PartType>(type: Type): { part: PartOf<Type>; events: ResponsesEvent[] } {
    const last = this.#content.at(-1);
    if (last?.type === type) return { part: last as PartOf<Type>, events: [] };
    const events = this.closing();
    const part = emptyParts[type]() as PartOf<Type>;
    this.#content.push(part);
    return { part, events: [...events, this.#partEvent('content_part.added', { part: emptyParts[type]() })] };
  }
}

type ReasoningItem = Item<'reasoning', { summary: object[]; encrypted_content?: string }>;

/** Reasoning: a summary with its events, or the sealed state alone. */
export class ReasoningWriter extends ItemWriter {
  readonly #seal: (id: string) => string | undefined;
  #summary: GrowingText | undefined;

  /** `seal` returns the state of the turn so far for the item that closes; undefined: there is none to show. */
  constructor(suffix: string, outputIndex: number, seal: (id: string) => string | undefined) {
    super('rs', suffix, outputIndex);
    this.#seal = seal;
  }

  summary(delta: string): ResponsesEvent[] {
    const opening = this.#summary
      ? []
      : [this.#summaryEvent('reasoning_summary_part.added', { part: summaryText('') })];
    this.#summary ??= new GrowingText();
    this.#summary.add(delta);
    return [...opening, this.#summaryEvent('reasoning_summary_text.delta', { delta })];
  }

  protected closing(): ResponsesEvent[] {
    return this.#parts().flatMap((part) => [
      this.#summaryEvent('reasoning_summary_text.done', { text: part.text }),
      this.#summaryEvent('reasoning_summary_part.done', { part }),
    ]);
  }

  item(id: string, { status }: ItemEnd): ReasoningItem {
    const sealed = status === 'in_progress' ? undefined : this.#seal(id);
    const encrypted = sealed === undefined ? {} : { encrypted_content: sealed };
    return { id, type: 'reasoning', status, summary: this.#parts(), ...encrypted };
  }

  #parts() {
    return this.#summary ? [summaryText(this.#summary.text)] : [];
  }

  #summaryEvent(type: string, more: object): ResponsesEvent {
    return this.event(type, { summary_index: 0, ...more });
  }
}

interface CompactionItem {
  id: string;
  type: 'compaction';
  encrypted_content: string;
}

/** The item that a compacted conversation continues from. `seal`: as in reasoning. */
export class CompactionWriter extends ItemWriter {
  readonly #seal: (id: string) => string | undefined;

  constructor(suffix: string, outputIndex: number, seal: (id: string) => string | undefined) {
    super('cmp', suffix, outputIndex);
    this.#seal = seal;
  }

  protected closing(): ResponsesEvent[] {
    return [];
  }

  item(id: string, { status }: ItemEnd): CompactionItem {
    const sealed = status === 'in_progress' ? undefined : this.#seal(id);
    return { id, type: 'compaction', encrypted_content: sealed ?? '' };
  }
}

const summaryText = (text: string) => ({ type: 'summary_text', text });

/** A tool as a Responses client declared it. The upstream knows it by a flat name. */
export interface DeclaredTool {
  kind: 'function' | 'custom';
  name: string;
  namespace: string | undefined;
  /** The model does not wait for it. */
  isAsync: boolean;
}

type CallItem = { call_id: string; name: string; namespace?: string; async?: boolean } & (
  | Item<'function_call', { arguments: string }>
  | Item<'custom_tool_call', { input: string }>
);

export class CallWriter extends ItemWriter {
  readonly #callId: string;
  readonly #tool: DeclaredTool;
  readonly #scan = new JsonScan();
  readonly #input = new GrowingText();

  constructor(suffix: string, outputIndex: number, callId: string, tool: DeclaredTool) {
    super(tool.kind === 'custom' ? 'ctc' : 'fc', suffix, outputIndex);
    this.#callId = callId;
    this.#tool = tool;
  }

  /** Arguments are one JSON object, so their end is known. Free text may go on until the answer ends. */
  override finished(): boolean {
    return this.#tool.kind === 'function' && this.#scan.deepest > 0 && this.#scan.complete;
  }

  input(delta: string): ResponsesEvent[] {
    this.#input.add(delta);
    if (this.#tool.kind === 'function') this.#scan.push(delta);
    return delta === '' ? [] : [this.event(`${this.#inputName}.delta`, { delta })];
  }

  protected closing(): ResponsesEvent[] {
    const { kind, name } = this.#tool;
    const { text } = this.#input;
    const said = kind === 'custom' ? { input: text } : { name, arguments: text };
    return [this.event(`${this.#inputName}.done`, said)];
  }

  item(id: string, { status }: ItemEnd): CallItem {
    const { kind, name, namespace, isAsync } = this.#tool;
    const named = { name, ...(namespace !== undefined && { namespace }), ...(isAsync && { async: true }) };
    const common = { id, status, ...named, call_id: this.#callId };
    return kind === 'custom'
      ? { ...common, type: 'custom_tool_call', input: this.#input.text }
      : { ...common, type: 'function_call', arguments: this.#input.text };
  }

  get #inputName(): string {
    return this.#tool.kind === 'custom' ? 'custom_tool_call_input' : 'function_call_arguments';
  }
}

/**
 * The items of an answer in the order of their first appearance. One item is open at a time: clients read a change of
 * `output_index` as the end of an item. Events of later items wait until the open one is done, which upstreams do not
 * say: an item that may still grow stays open to the end of the answer. The reader of the answer bounds what waits;
 * pieces that wait are joined.
 */
export class ItemQueue {
  readonly output: OutputItem[] = [];
  readonly #waiting: { item: ItemWriter; events: ResponsesEvent[] }[] = [];

  get nextIndex(): number {
    return this.output.length + this.#waiting.length;
  }

  get last(): ItemWriter | undefined {
    return this.#waiting.at(-1)?.item;
  }

  has(item: ItemWriter): boolean {
    return item.outputIndex >= this.output.length;
  }

  /** Opens an item. Its turn comes when all items before it are done. */
  add(item: ItemWriter): ResponsesEvent[] {
    this.#waiting.push({ item, events: [] });
    return [...this.write(item, [item.added()]), ...this.#advance()];
  }

  /** Returns the events that can be sent now: those of the open item, and of its followers if it is done. */
  write(item: ItemWriter, events: ResponsesEvent[]): ResponsesEvent[] {
    if (this.#waiting[0]?.item === item) return [...events, ...this.#advance()];
    const waiting = this.#waiting[item.outputIndex - this.output.length]?.events ?? [];
    for (const event of events) join(waiting, event);
    return [];
  }

  /** Closes all items. `endOf`: how the last item ends. */
  end(endOf: ItemEnd): ResponsesEvent[] {
    const events: ResponsesEvent[] = [];
    for (let open = this.#waiting[0]; open; open = this.#waiting[0]) {
      const cut = endOf.status !== 'completed' && !open.item.finished();
      const early: ItemEnd = { status: cut ? 'incomplete' : 'completed', phase: 'commentary' };
      events.push(...this.#close(open.item, this.#waiting.length === 1 ? endOf : early));
    }
    return events;
  }

  #advance(): ResponsesEvent[] {
    const events: ResponsesEvent[] = [];
    while (this.#waiting.length > 1 && this.#waiting[0]?.item.finished())
      events.push(...this.#close(this.#waiting[0].item, { status: 'completed', phase: 'commentary' }));
    return events;
  }

  #close(item: ItemWriter, itemEnd: ItemEnd): ResponsesEvent[] {
    const { item: whole, events } = item.done(itemEnd);
    this.output.push(whole);
    this.#waiting.shift();
    return [...events, ...(this.#waiting[0]?.events.splice(0) ?? [])];
  }
}

/** Adds an event to those that wait. A delta that follows one of its kind lengthens it. */
function join(waiting: ResponsesEvent[], event: ResponsesEvent): void {
  const last = waiting.at(-1);
  if (last?.type !== event.type || typeof event['delta'] !== 'string') {
    waiting.push(event);
    return;
  }
  last['delta'] = String(last['delta']) + event['delta'];
  if (Array.isArray(last['logprobs']) && Array.isArray(event['logprobs']))
    for (const logprob of event['logprobs']) last['logprobs'].push(logprob);
}
