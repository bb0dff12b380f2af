import type { ItemStatus, OutputItem, ResponsesEvent } from './responses-response.ts';

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
