/**
 * Requests whose bodies are on their way. They keep a place here and no place among those that are answered: a client that
 * sends slowly, or nothing more, must never keep out one that sends at once.
 */

/** Why a request goes before its body has come. */
export type Leaving = 'slow' | 'ending';

export interface Arrival {
  /** Its body has come, or never will. */
  end(): void;
  /** Whether others hold room that they can be made to give up. */
  canMakeRoom(): boolean;
  /** Lets the slowest of the others go, so that its room is free. False: none of them is slow. */
  makeRoom(): boolean;
}

interface Place {
  sinceMs: number;
  leave: (why: Leaving) => void;
}

export interface ArrivalBounds {
  /** At once. */
  most: number;
  /** A body that takes longer goes where another one needs its room. */
  slowMs: number;
}

export class Arrivals {
  readonly #bounds: ArrivalBounds;
  /** The oldest first. */
  readonly #places = new Set<Place>();

  constructor(bounds: ArrivalBounds) {
    this.#bounds = bounds;
  }

  get count(): number {
    return this.#places.size;
  }

  /**
   * Where there is no place, the oldest goes: most bodies come within a second, and those of slow clients are the oldest.
   * @param leave is called at most once, and then drops what has come of the body
   */
  begin(leave: (why: Leaving) => void): Arrival {
    const [oldest] = this.#places;
    if (oldest && this.#places.size >= this.#bounds.most) this.#leave(oldest, 'slow');
    const place = { sinceMs: performance.now(), leave };
    this.#places.add(place);
    return {
      end: () => void this.#places.delete(place),
      canMakeRoom: () => this.#slowest(place) !== undefined,
      makeRoom: () => {
        const slow = this.#slowest(place);
        if (slow) this.#leave(slow, 'slow');
        return slow !== undefined;
      },
    };
  }

  allLeave(): void {
    for (const place of this.#places) this.#leave(place, 'ending');
  }

  #slowest(asking: Place): Place | undefined {
    const [oldest] = this.#places;
    const isSlow = oldest !== undefined && performance.now() - oldest.sinceMs >= this.#bounds.slowMs;
    return isSlow && oldest !== asking ? oldest : undefined;
  }

  #leave(place: Place, why: Leaving): void {
    this.#places.delete(place);
    place.leave(why);
  }
}
