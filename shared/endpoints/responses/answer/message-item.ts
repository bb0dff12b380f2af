import { isUrlCitation, type Annotation } from '../../../wire/chat-response.ts';
import { GrowingText } from '../../../wire/chunk-content.ts';
import type {
  MessageItem,
  MessagePart,
  OutputText,
  Refusal,
  ResponsesEvent,
  ShownAnnotation,
  TokenLogprob,
} from './responses-response.ts';
import type { ItemEnd, OpenItem } from './open-item.ts';

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
