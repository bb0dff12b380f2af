/**
 * Bounds how many calls of one environment try a resting candidate at once. For each candidate by itself, so that
 * calls that hang at one do not keep calls from another. Every place is released: by its call, or when its time is over.
 */
import type { Clock } from '../ports/clock.ts';

const placesMax = 3;
/** A call that waits for its first content for minutes must not keep the others from trying. */
const heldMs = 5_000;
/** How long no one waits after an answer. */
const openMs = 30_000;

interface Waiting {
  readonly account: string;
  readonly wake: () => void;
}

interface Places {
  /** The accounts whose calls have them. */
  readonly taken: string[];
  openUntilMs: number;
  /** In the order of their arrival. */
  readonly waiting: Set<Waiting>;
}

export class TrialPlaces {
  readonly #clock: Clock;
  readonly #places = new Map<number, Places>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves to what releases the place; undefined: the signal aborted first. */
  async take(key: number, account: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    const places = this.#places.get(key) ?? { taken: [], openUntilMs: 0, waiting: new Set() };
    this.#places.set(key, places);
    while (places.taken.length >= placesMax && places.openUntilMs <= this.#clock.now() && !signal.aborted)
      await turn(places, account, signal);
    if (signal.aborted) {
      this.#wakeNext(key, places);
      return undefined;
    }
    places.taken.push(account);
    const over = new AbortController();
    const release = (): void => {
      if (over.signal.aborted) return;
      over.abort();
      places.taken.splice(places.taken.indexOf(account), 1);
      this.#wakeNext(key, places);
    };
    void this.#clock.sleep(heldMs, over.signal).then(release);
    return release;
  }

  /** The candidate has answered: all that wait may try it. */
  open(key: number): void {
    const places = this.#places.get(key);
    if (!places) return;
    places.openUntilMs = this.#clock.now() + openMs;
    for (const { wake } of places.waiting) wake();
  }

  #wakeNext(key: number, places: Places): void {
    const taken = ({ account }: Waiting): number => places.taken.filter((one) => one === account).length;
    const [next] = [...places.waiting].toSorted((a, b) => taken(a) - taken(b));
    if (next) next.wake();
    else if (places.taken.length === 0 && places.openUntilMs <= this.#clock.now()) this.#places.delete(key);
  }
}

async function turn(places: Places, account: string, signal: AbortSignal): Promise<void> {
  const woken = Promise.withResolvers<void>();
  const waiting: Waiting = {
    account,
    wake: () => {
      places.waiting.delete(waiting);
      woken.resolve();
    },
  };
  places.waiting.add(waiting);
  signal.addEventListener('abort', waiting.wake, { once: true });
  await woken.promise;
  signal.removeEventListener('abort', waiting.wake);
}
