import { GrowingText } from '../../../wire/chunk-content.ts';
import type { ItemStatus, ReasoningItem, ResponsesEvent, SummaryText } from './responses-response.ts';
import type { ItemEnd, OpenItem } from './open-item.ts';

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
