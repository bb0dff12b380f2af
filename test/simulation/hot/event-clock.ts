import type { Clock } from '../../../shared/relay/ports/host.ts';

interface Timer {
  atMs: number;
  order: number;
  wake: () => void;
}

/** Virtual time for hundreds of thousands of timers: a heap, and one turn of the event loop per timer. */
export class EventClock implements Clock {
  readonly #heap: Timer[] = [];
  #nowMs = Date.UTC(2026, 10, 21);
  #order = 0;

  now(): number {
    return this.#nowMs;
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      signal?.addEventListener('abort', () => resolve());
      this.after(milliseconds, resolve);
    });
  }

  after(milliseconds: number, wake: () => void): void {
    this.#order += 1;
    const timer = { atMs: this.#nowMs + milliseconds, order: this.#order, wake };
    const heap = this.#heap;
    heap.push(timer);
    let at = heap.length - 1;
    while (at > 0) {
      const above = (at - 1) >> 1;
      if (!isBefore(timer, heap[above]!)) break;
      heap[at] = heap[above]!;
      at = above;
    }
    heap[at] = timer;
  }

  async run(untilMs: number): Promise<void> {
    for (;;) {
      await new Promise(setImmediate);
      const next = this.#heap[0];
      if (!next || next.atMs > untilMs) break;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      this.#pop().wake();
    }
    this.#nowMs = untilMs;
  }

  #pop(): Timer {
    const heap = this.#heap;
    const top = heap[0]!;
    const last = heap.pop()!;
    if (heap.length === 0) return top;
    let at = 0;
    for (;;) {
      const left = 2 * at + 1;
      const right = left + 1;
      let least = left;
      if (right < heap.length && isBefore(heap[right]!, heap[left]!)) least = right;
      if (least >= heap.length || !isBefore(heap[least]!, last)) break;
      heap[at] = heap[least]!;
      at = least;
    }
    heap[at] = last;
    return top;
  }
}

const isBefore = (a: Timer, b: Timer): boolean => a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
