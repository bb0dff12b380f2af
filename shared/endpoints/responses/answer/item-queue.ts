import type { OutputItem, ResponsesEvent } from './responses-response.ts';
import type { ItemEnd, OpenItem } from './open-item.ts';

/** An item and its events that wait until the items before it are done. */
interface Waiting {
  item: OpenItem;
  events: ResponsesEvent[];
}

/**
 * The items of an answer in the order of their first appearance. One item is open at a time: clients read a change of
 * `output_index` as the end of an item. Events of later items wait until the open one is done, which upstreams do not
 * say: an item that may still grow stays open to the end of the answer. The reader of the answer bounds what waits;
 * pieces that wait are joined.
 */
export class ItemQueue {
  /** The items that are done. */
  readonly output: OutputItem[] = [];
  readonly #waiting: Waiting[] = [];
  #added = 0;

  /** The output index of the next item. */
  get nextIndex(): number {
    return this.#added;
  }

  /** The item that was added last, unless it is done. */
  get last(): OpenItem | undefined {
    return this.#waiting.at(-1)?.item;
  }

  /** Whether the item may still be written. */
  has(item: OpenItem): boolean {
    return item.outputIndex >= this.output.length;
  }

  /** Opens an item. Its turn comes when all items before it are done. */
  add(item: OpenItem): ResponsesEvent[] {
    this.#added += 1;
    this.#waiting.push({ item, events: [] });
    return [...this.write(item, item.added()), ...this.#advance()];
  }

  /** Returns the events that can be sent now: those of the open item, and of its followers if it is done. */
  write(item: OpenItem, events: ResponsesEvent[]): ResponsesEvent[] {
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
  #close(item: OpenItem, itemEnd: ItemEnd): ResponsesEvent[] {
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
