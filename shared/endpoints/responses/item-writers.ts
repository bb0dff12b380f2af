/** Messages, reasoning and calls of an answer, each written as one output item with its events from added to done. */
import type {
  CustomToolCallItem,
  FunctionCallItem,
  ItemStatus,
  MessageItem,
  MessagePart,
  OutputItem,
  OutputText,
  ReasoningItem,
  RefusalPart,
  ResponsesEvent,
  ShownAnnotation,
  SummaryText,
  TokenLogprob,
} from './response-object.ts';
import { JsonScan } from '../../stream/json-scan.ts';
import { isUrlCitation, type Annotation, GrowingText } from '../../wire/chat-response.ts';

/** How an item ends. */
export interface ItemEnd {
  status: ItemStatus;
  /** What a message without a phase of its own was; undefined: unknown, because the answer was cut. */
  phase: 'commentary' | 'final_answer' | undefined;
}

/** An output item that is being written. */
export abstract class ItemWriter {
  readonly outputIndex: number;
  readonly #id: string;

  /** `suffix`: the end of the ids of all items of the answer. */
  constructor(prefix: string, suffix: string, outputIndex: number) {
    this.#id = `${prefix}_${suffix}_${outputIndex}`;
    this.outputIndex = outputIndex;
  }

  /** Whether nothing can follow in this item once another one began. */
  finished(): boolean {
    return true;
  }

  added(): ResponsesEvent[] {
    const item = this.item(this.#id, { status: 'in_progress', phase: undefined });
    return [{ type: 'response.output_item.added', output_index: this.outputIndex, item }];
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

  /** The events that close its last part. */
  protected abstract closing(): ResponsesEvent[];

  /** The item as it is. */
  protected abstract item(id: string, end: ItemEnd): OutputItem;
}

const emptyText = (): OutputText => ({ type: 'output_text', text: '', annotations: [], logprobs: [] });
const emptyRefusal = (): RefusalPart => ({ type: 'refusal', refusal: '' });

/** A message. Its parts are written one after the other; text and refusal are parts of their own. */
export class MessageWriter extends ItemWriter {
  /** The phase that the upstream said. */
  readonly phase: string | undefined;
  readonly #content: MessagePart[] = [];
  /** The text of the open part, which gets it when it closes. */
  #said = new GrowingText();

  constructor(suffix: string, outputIndex: number, phase: string | undefined) {
    super('msg', suffix, outputIndex);
    this.phase = phase;
  }

  text(delta: string, logprobs: TokenLogprob[]): ResponsesEvent[] {
    const { part, events } = this.#part('output_text', emptyText);
    this.#said.add(delta);
    for (const each of logprobs) part.logprobs.push(each);
    return [...events, this.#partEvent('output_text.delta', { delta, logprobs })];
  }

  refusal(delta: string): ResponsesEvent[] {
    const { events } = this.#part('refusal', emptyRefusal);
    this.#said.add(delta);
    return [...events, this.#partEvent('refusal.delta', { delta })];
  }

  /** Belongs to the text before it, or to the one after it if there is none yet. */
  annotate(noted: Annotation): ResponsesEvent[] {
    const { part, events } = this.#part('output_text', emptyText);
    const annotation: ShownAnnotation = isUrlCitation(noted)
      ? { type: noted.type, ...noted.url_citation }
      : noted;
    const place = { annotation_index: part.annotations.length };
    part.annotations.push(annotation);
    return [...events, this.#partEvent('output_text.annotation.added', { ...place, annotation })];
  }

  protected closing(): ResponsesEvent[] {
    const part = this.#content.at(-1);
    if (!part) return [];
    const { text } = this.#said;
    this.#said = new GrowingText();
    if (part.type === 'refusal') part.refusal = text;
    else part.text = text;
    const said =
      part.type === 'refusal'
        ? this.#partEvent('refusal.done', { refusal: text })
        : this.#partEvent('output_text.done', { text, logprobs: part.logprobs });
    return [said, this.#partEvent('content_part.done', { part })];
  }

  protected item(id: string, end: ItemEnd): MessageItem {
    const phase = this.phase ?? end.phase;
    return {
      id,
      type: 'message',
      status: end.status,
      role: 'assistant',
      ...(phase !== undefined && { phase }),
      content: [...this.#content],
    };
  }

  #partEvent(type: string, more: object): ResponsesEvent {
    return this.event(type, { content_index: this.#content.length - 1, ...more });
  }

  /** The open part if it is of this type, otherwise a new one. */
  #part<P extends MessagePart>(type: P['type'], empty: () => P): { part: P; events: ResponsesEvent[] } {
    const last = this.#content.at(-1);
    if (last?.type === type) return { part: last as P, events: [] };
    const events = this.closing();
    const part = empty();
    this.#content.push(part);
    return { part, events: [...events, this.#partEvent('content_part.added', { part: empty() })] };
  }
}

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

  protected item(id: string, { status }: ItemEnd): ReasoningItem {
    const sealed = status === 'in_progress' ? undefined : this.#seal(id);
    const encrypted = sealed === undefined ? {} : { encrypted_content: sealed };
    return { id, type: 'reasoning', status, summary: this.#parts(), ...encrypted };
  }

  #parts(): SummaryText[] {
    return this.#summary ? [summaryText(this.#summary.text)] : [];
  }

  #summaryEvent(type: string, more: object): ResponsesEvent {
    return this.event(type, { summary_index: 0, ...more });
  }
}

const summaryText = (text: string): SummaryText => ({ type: 'summary_text', text });

/** A tool as a Responses client declared it. The upstream knows it by a flat name. */
export interface DeclaredTool {
  kind: 'function' | 'custom';
  name: string;
  namespace: string | undefined;
}

/** A call of a function, or of a custom tool, whose input is free text. */
export class CallWriter extends ItemWriter {
  readonly #callId: string;
  readonly #tool: DeclaredTool;
  readonly #scan = new JsonScan();
  readonly #input = new GrowingText();

  /** `tool`: by the names that the client gave it. */
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
    return [
      this.event(`${this.#inputName}.done`, kind === 'custom' ? { input: text } : { name, arguments: text }),
    ];
  }

  protected item(id: string, { status }: ItemEnd): FunctionCallItem | CustomToolCallItem {
    const { kind, name, namespace } = this.#tool;
    const named = { name, ...(namespace !== undefined && { namespace }) };
    const common = { id, status, ...named, call_id: this.#callId };
    return kind === 'custom'
      ? { ...common, type: 'custom_tool_call', input: this.#input.text }
      : { ...common, type: 'function_call', arguments: this.#input.text };
  }

  get #inputName(): string {
    return this.#tool.kind === 'custom' ? 'custom_tool_call_input' : 'function_call_arguments';
  }
}
