/** Retries a write within a time limit, waits for work within a time limit, and works on many items, a few at a time. */
import type { Clock, Random } from './ports/host.ts';
import { type Repeats, StoreUnavailable, StoreBusy } from './ports/store-errors.ts';

const firstPauseMs = 25;
const shortPauseMsMax = 400;

/**
 * Exponential backoff with full jitter, only for writes that are safe to repeat: repeats one until its outcome is known or
 * the time is up. With `repeats`, only while these allow it: for what may be refused, never for a settle.
 */
export class Backoff {
  readonly #ports: { clock: Clock; random: Random };
  readonly #untilMs: number;
  readonly #pauseMsMax: number;
  readonly #repeats: Repeats | undefined;
  #pauseMs = firstPauseMs;
  /** Tries with an unknown outcome: each may have been applied, or may be still. */
  unknowns = 0;
  /** Tries that the store put off. */
  throttled = 0;

  constructor(
    ports: { clock: Clock; random: Random },
    budgetMs: number,
    { pauseMsMax = shortPauseMsMax, repeats }: { pauseMsMax?: number; repeats?: Repeats | undefined } = {},
  ) {
    const { clock } = ports;
    this.#ports = ports;
    this.#untilMs = clock.now() + budgetMs;
    this.#pauseMsMax = pauseMsMax;
    this.#repeats = repeats;
  }

  async until<T>(write: () => Promise<T>): Promise<T> {
    const { clock, random } = this.#ports;
    for (;;) {
      try {
        return await write();
      } catch (error) {
        const unknown = error instanceof StoreUnavailable;
        if (!unknown && !(error instanceof StoreBusy)) throw error;
        if (unknown) this.unknowns += 1;
        else this.throttled += 1;
        // Full jitter: writers that collided must not retry at the same time.
        const pauseMs = Math.ceil(this.#pauseMs * random.next());
        // A store that puts writes off answers, and so does not fail: one hot account must not end the repeats of all others.
        const mayRepeat = !unknown || this.#repeats?.may() !== false;
        if (clock.now() + pauseMs >= this.#untilMs || !mayRepeat)
          throw unknown ? error : new StoreUnavailable('busy', { cause: error });
        await clock.sleep(pauseMs);
        this.#pauseMs = Math.min(this.#pauseMsMax, this.#pauseMs * 2);
      }
    }
  }
}

/** How long a store that throttles is asked again, while a client waits. */
const storeMsMax = 2_000;

/** A call of the store that is safe to repeat. Throws StoreUnavailable. */
export const retry = <T>(
  ports: { clock: Clock; random: Random; repeats?: Repeats | undefined },
  call: () => Promise<T>,
  ms = storeMsMax,
): Promise<T> => new Backoff(ports, ms, { repeats: ports.repeats }).until(call);

/** The result of a work, or `late` when the time is up or the signal aborts before. The work itself goes on. */
export async function within<Result, Late>(
  clock: Clock,
  ms: number,
  { work, late, signal }: { work: Promise<Result>; late: Late; signal?: AbortSignal | undefined },
): Promise<Result | Late> {
  const over = new AbortController();
  const until = signal ? AbortSignal.any([over.signal, signal]) : over.signal;
  try {
    return await Promise.race([work, clock.sleep(ms, until).then(() => late)]);
  } finally {
    over.abort('over');
  }
}

/** Works on all items, a few at a time. Continues after a failure, and finally rejects with the first one. */
export async function workOnEach<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
  atOnceMax = 10,
): Promise<void> {
  const open = items.values();
  const failures: unknown[] = [];
  const runOpen = async (): Promise<void> => {
    for (const item of open) await work(item).catch((error: unknown) => void failures.push(error));
  };
  await Promise.all(Array.from({ length: atOnceMax }, runOpen));
  if (failures.length > 0) throw failures[0];
}
