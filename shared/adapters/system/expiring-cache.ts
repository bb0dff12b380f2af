/**
 * An in-memory cache with a lifetime per value and a maximum number of entries. Must never write to disk or
 * share values between processes.
 */
import type { Clock } from '../../relay/ports/clock.ts';

interface Entry<Value> {
  value: Promise<Value>;
  /** Epoch milliseconds; Infinity while the value loads. */
  expiresAt: number;
}

export interface ExpiringCacheOptions<Value> {
  clock: Clock;
  entriesMax: number;
  /** How long a value is cached, in milliseconds. */
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

  get(key: string, load: () => Promise<Value>): Promise<Value> {
    const found = this.#entries.get(key);
    // Deleting and setting an entry moves it to the end of the map, so the first entry is the least recently
    // used.
    this.#entries.delete(key);
    if (found && this.#options.clock.now() < found.expiresAt) {
      this.#entries.set(key, found);
      return found.value;
    }
    const entry: Entry<Value> = { value: load(), expiresAt: Infinity };
    this.#entries.set(key, entry);
    this.#dropOldest();
    entry.value.then(
      (value) => {
        entry.expiresAt = this.#options.clock.now() + this.#options.lifetimeMs(value);
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
