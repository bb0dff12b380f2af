import type {
  ItemStatus,
  OutputItem,
  ResponsesEvent,
  MessageItem,
  MessagePart,
  OutputText,
  Refusal,
  ShownAnnotation,
  TokenLogprob,
  ReasoningItem,
  SummaryText,
  CustomToolCallItem,
  FunctionCallItem,
} from './response-object.ts';
import { isUrlCitation, type Annotation, GrowingText } from '../../wire/chat-response.ts';

/** How an item ends. */
export interface ItemEnd {
  status: ItemStatus;
  /** What a message without a phase of its own was; undefined: unknown, because the answer was cut. */
  phase: 'commentary' | 'final_answer' | undefined;
}

/** An output item that is being written, with its events from added to done. */
export interface OpenItem {
  readonly kind: 'message' | 'reasoning' | 'call';
  readonly outputIndex: number;
  /** Whether nothing can follow in this item once another one began. */
  finished(): boolean;
  added(): ResponsesEvent[];
  /** Called once. The last event has the item. */
  done(end: ItemEnd): { item: OutputItem; events: ResponsesEvent[] };
}

const emptyText = (): OutputText => ({ type: 'output_text', text: '', annotations: [], logprobs: [] });
const emptyRefusal = (): Refusal => ({ type: 'refusal', refusal: '' });

/** A message. Its parts are written one after the other; text and refusal are parts of their own. */
export class MessageWriter implements OpenItem {
  readonly kind = 'message';
  readonly outputIndex: number;
  /** The phase that the upstream said; undefined: it said none. */
  readonly phase: string | undefined;
  readonly #id: string;
  readonly #content: MessagePart[] = [];
  /** The text of the open part, which gets it when it closes. */
  #said = new GrowingText();

  constructor(id: string, outputIndex: number, phase: string | undefined) {
    this.#id = id;
    this.outputIndex = outputIndex;
    this.phase = phase;
  }

  finished(): boolean {
    return true;
  }

  added(): ResponsesEvent[] {
    const item: MessageItem = { ...this.#head('in_progress', this.phase), content: [] };
    return [{ type: 'response.output_item.added', output_index: this.outputIndex, item }];
  }

  text(delta: string, logprobs: TokenLogprob[]): ResponsesEvent[] {
    const { part, events } = this.#part('output_text', emptyText);
    this.#said.add(delta);
    for (const each of logprobs) part.logprobs.push(each);
    return [...events, { type: 'response.output_text.delta', ...this.#place(), delta, logprobs }];
  }

  refusal(delta: string): ResponsesEvent[] {
    const { events } = this.#part('refusal', emptyRefusal);
    this.#said.add(delta);
    return [...events, { type: 'response.refusal.delta', ...this.#place(), delta }];
  }

  /** Belongs to the text before it, or to the one after it if there is none yet. */
  annotate(noted: Annotation): ResponsesEvent[] {
    const { part, events } = this.#part('output_text', emptyText);
    const annotation: ShownAnnotation = isUrlCitation(noted)
      ? { type: noted.type, ...noted.url_citation }
      : noted;
    part.annotations.push(annotation);
    const place = { ...this.#place(), annotation_index: part.annotations.length - 1 };
    return [...events, { type: 'response.output_text.annotation.added', ...place, annotation }];
  }

  done({ status, phase }: ItemEnd): { item: MessageItem; events: ResponsesEvent[] } {
    const events = this.#closePart();
    const item: MessageItem = { ...this.#head(status, this.phase ?? phase), content: this.#content };
    const last = { type: 'response.output_item.done', output_index: this.outputIndex, item };
    return { item, events: [...events, last] };
  }

  #head(status: ItemEnd['status'], phase: string | undefined): Omit<MessageItem, 'content'> {
    return {
      id: this.#id,
      type: 'message',
      status,
      role: 'assistant',
      ...(phase !== undefined && { phase }),
    };
  }

  #place(): { item_id: string; output_index: number; content_index: number } {
    return { item_id: this.#id, output_index: this.outputIndex, content_index: this.#content.length - 1 };
  }

  /** The open part if it is of this type, otherwise a new one. */
  #part<P extends MessagePart>(type: P['type'], empty: () => P): { part: P; events: ResponsesEvent[] } {
    const last = this.#content.at(-1);
    if (last?.type === type) return { part: last as P, events: [] };
    const events = this.#closePart();
    const part = empty();
    this.#content.push(part);
    return {
      part,
      events: [...events, { type: 'response.content_part.added', ...this.#place(), part: empty() }],
    };
  }

  #closePart(): ResponsesEvent[] {
    const part = this.#content.at(-1);
    if (!part) return [];
    if (part.type === 'refusal') part.refusal = this.#said.text;
    else part.text = this.#said.text;
    this.#said = new GrowingText();
    const place = this.#place();
    const said =
      part.type === 'refusal'
        ? { type: 'response.refusal.done', ...place, refusal: part.refusal }
        : { type: 'response.output_text.done', ...place, text: part.text, logprobs: part.logprobs };
    return [said, { type: 'response.content_part.done', ...place, part }];
  }
}

/** Reasoning: a summary with its events, or the sealed state alone. */
export class ReasoningWriter implements OpenItem {
  readonly kind = 'reasoning';
  readonly outputIndex: number;
  readonly #id: string;
  readonly #seal: (id: string) => string | undefined;
  #summary: GrowingText | undefined;

  /** `seal` returns the state of the turn so far for the item that closes; undefined: there is none to show. */
  constructor(id: string, outputIndex: number, seal: (id: string) => string | undefined) {
    this.#id = id;
    this.outputIndex = outputIndex;
    this.#seal = seal;
  }

  finished(): boolean {
    return true;
  }

  added(): ResponsesEvent[] {
    const item = this.#item('in_progress', []);
    return [{ type: 'response.output_item.added', output_index: this.outputIndex, item }];
  }

  summary(delta: string): ResponsesEvent[] {
    const place = this.#place();
    const opening: ResponsesEvent[] = this.#summary
      ? []
      : [{ type: 'response.reasoning_summary_part.added', ...place, part: summaryText('') }];
    this.#summary ??= new GrowingText();
    this.#summary.add(delta);
    return [...opening, { type: 'response.reasoning_summary_text.delta', ...place, delta }];
  }

  done({ status }: ItemEnd): { item: ReasoningItem; events: ResponsesEvent[] } {
    const part = this.#summary && summaryText(this.#summary.text);
    const place = this.#place();
    const closing: ResponsesEvent[] = part
      ? [
          { type: 'response.reasoning_summary_text.done', ...place, text: part.text },
          { type: 'response.reasoning_summary_part.done', ...place, part },
        ]
      : [];
    const sealed = this.#seal(this.#id);
    const item: ReasoningItem = {
      ...this.#item(status, part ? [part] : []),
      ...(sealed !== undefined && { encrypted_content: sealed }),
    };
    const last = { type: 'response.output_item.done', output_index: this.outputIndex, item };
    return { item, events: [...closing, last] };
  }

  #item(status: ItemStatus, summary: SummaryText[]): ReasoningItem {
    return { id: this.#id, type: 'reasoning', status, summary };
  }

  #place(): { item_id: string; output_index: number; summary_index: number } {
    return { item_id: this.#id, output_index: this.outputIndex, summary_index: 0 };
  }
}

const summaryText = (text: string): SummaryText => ({ type: 'summary_text', text });

/** A tool as a Responses client declared it. The upstream knows it by a flat name. */
export interface DeclaredTool {
  kind: 'function' | 'custom';
  name: string;
  namespace: string | undefined;
}

interface CallOpening {
  /** The end of the item's id. */
  suffix: string;
  outputIndex: number;
  callId: string;
  /** The tool by the names that the client gave it. */
  tool: DeclaredTool;
}

/** A call of a function, or of a custom tool, whose input is free text. */
export class CallWriter implements OpenItem {
  readonly kind = 'call';
  readonly outputIndex: number;
  readonly #id: string;
  readonly #callId: string;
  readonly #tool: DeclaredTool;
  readonly #jsonEnd = new JsonEnd();
  readonly #input = new GrowingText();

  constructor({ suffix, outputIndex, callId, tool }: CallOpening) {
    this.outputIndex = outputIndex;
    this.#id = `${tool.kind === 'custom' ? 'ctc' : 'fc'}_${suffix}`;
    this.#callId = callId;
    this.#tool = tool;
  }

  /** Arguments are one JSON object, so their end is known. Free text may go on until the answer ends. */
  finished(): boolean {
    return this.#tool.kind === 'function' && this.#jsonEnd.reached;
  }

  added(): ResponsesEvent[] {
    const item = this.#item('in_progress');
    return [{ type: 'response.output_item.added', output_index: this.outputIndex, item }];
  }

  input(delta: string): ResponsesEvent[] {
    this.#input.add(delta);
    if (this.#tool.kind === 'function') this.#jsonEnd.push(delta);
    if (delta === '') return [];
    return [{ type: `response.${this.#inputName}.delta`, ...this.#place(), delta }];
  }

  done({ status }: ItemEnd): { item: FunctionCallItem | CustomToolCallItem; events: ResponsesEvent[] } {
    const item = this.#item(status);
    const whole =
      item.type === 'function_call' ? { name: item.name, arguments: item.arguments } : { input: item.input };
    const events = [
      { type: `response.${this.#inputName}.done`, ...this.#place(), ...whole },
      { type: 'response.output_item.done', output_index: this.outputIndex, item },
    ];
    return { item, events };
  }

  get #inputName(): string {
    return this.#tool.kind === 'custom' ? 'custom_tool_call_input' : 'function_call_arguments';
  }

  #place(): { item_id: string; output_index: number } {
    return { item_id: this.#id, output_index: this.outputIndex };
  }

  #item(status: ItemStatus): FunctionCallItem | CustomToolCallItem {
    const { kind, name, namespace } = this.#tool;
    const common = {
      id: this.#id,
      status,
      name,
      ...(namespace !== undefined && { namespace }),
      call_id: this.#callId,
    };
    return kind === 'custom'
      ? { ...common, type: 'custom_tool_call', input: this.#input.text }
      : { ...common, type: 'function_call', arguments: this.#input.text };
  }
}

/** Finds the end of a JSON object or array that comes in pieces. Each character is read once. */
export class JsonEnd {
  /** The object has ended. */
  reached = false;
  #depth = 0;
  #inString = false;
  #escaped = false;

  push(piece: string): void {
    for (let at = 0; at < piece.length && !this.reached; at += 1) this.#next(piece.charAt(at));
  }

  #next(character: string): void {
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (character === '\\') this.#escaped = true;
      else if (character === '"') this.#inString = false;
    } else if (character === '"') this.#inString = true;
    else if (character === '{' || character === '[') this.#depth += 1;
    else if (character === '}' || character === ']') {
      this.#depth -= 1;
      this.reached = this.#depth <= 0;
    }
  }
}
