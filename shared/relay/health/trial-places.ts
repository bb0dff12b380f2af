/**
 * Bounds how many calls of one environment try a resting candidate at once. For each candidate by itself, so that calls
 * that hang at one do not keep calls from another. Every place is released: by its call, or when its time is over.
 */
import type { Clock } from '../ports/clock.ts';

const placesMax = 3;
/** A call that waits for its first content for minutes must not keep the others from trying. */
const heldMs = 5_000;
/** How long no one waits after an answer. */
const openMs = 30_000;

interface Places {
  taken: number;
  openUntilMs: number;
  readonly waiting: Set<() => void>;
}

export class TrialPlaces {
  readonly #clock: Clock;
  readonly #places = new Map<number, Places>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves to what releases the place; undefined: the signal aborted first. */
  async take(key: number, signal: AbortSignal): Promise<(() => void) | undefined> {
    const places = this.#places.get(key) ?? { taken: 0, openUntilMs: 0, waiting: new Set() };
    this.#places.set(key, places);
    while (places.taken >= placesMax && places.openUntilMs <= this.#clock.now() && !signal.aborted)
      await turn(places, signal);
    if (signal.aborted) {
      this.#wakeNext(key, places);
      return undefined;
    }
    places.taken += 1;
    const over = new AbortController();
    const release = (): void => {
      if (over.signal.aborted) return;
      over.abort();
      places.taken -= 1;
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
    for (const wake of places.waiting) wake();
  }

  #wakeNext(key: number, places: Places): void {
    const [wake] = places.waiting;
    if (wake) wake();
    else if (places.taken === 0 && places.openUntilMs <= this.#clock.now()) this.#places.delete(key);
  }
}

async function turn(places: Places, signal: AbortSignal): Promise<void> {
  const woken = Promise.withResolvers<void>();
  const wake = (): void => {
    places.waiting.delete(wake);
    woken.resolve();
  };
  places.waiting.add(wake);
  signal.addEventListener('abort', wake, { once: true });
  await woken.promise;
  signal.removeEventListener('abort', wake);
}
