/**
 * An in-memory cache with a lifetime per value and a maximum number of entries. Must never write to disk or
 * share values between processes.
 */
import type { Clock } from '../../relay/ports/host.ts';

interface Entry<Value> {
  value: Promise<Value>;
  /** Epoch milliseconds at which the load began: what it brings may be as old as that. */
  startedAt: number;
  expiresAt: number;
}

/** A load that takes longer may have been interrupted by a freeze of the environment; its result is not shared. */
const loadMsMax = 10_000;

export interface ExpiringCacheOptions<Value> {
  clock: Clock;
  entriesMax: number;
  /** How long a value is cached, in milliseconds from the beginning of its load. */
  lifetimeMs(value: Value): number;
}

/**
 * Evicts the least recently used entry first. Concurrent calls for a key share one load. A failed load is not
 * cached.
 */
export class ExpiringCache<Value> {
  readonly #entries = new Map<string, Entry<Value>>();
  readonly #options: ExpiringCacheOptions<Value>;

  constructor(options: ExpiringCacheOptions<Value>) {
    this.#options = options;
  }

  /** @param ageMsMax an entry whose load began longer ago is loaded again */
  get(key: string, load: () => Promise<Value>, ageMsMax = Infinity): Promise<Value> {
    const startedAt = this.#options.clock.now();
    const found = this.#entries.get(key);
    // Deleting and setting an entry moves it to the end of the map, so the first entry is the least recently
    // used.
    this.#entries.delete(key);
    if (found && startedAt < found.expiresAt && startedAt - found.startedAt <= ageMsMax) {
      this.#entries.set(key, found);
      return found.value;
    }
    const entry: Entry<Value> = { value: load(), startedAt, expiresAt: startedAt + loadMsMax };
    this.#entries.set(key, entry);
    this.#dropOldest();
    entry.value.then(
      (value) => {
        entry.expiresAt = startedAt + this.#options.lifetimeMs(value);
      },
      () => {
        if (this.#entries.get(key) === entry) this.#entries.delete(key);
      },
    );
    return entry.value;
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  #dropOldest(): void {
    for (const key of this.#entries.keys()) {
      if (this.#entries.size <= this.#options.entriesMax) return;
      this.#entries.delete(key);
    }
  }
}
