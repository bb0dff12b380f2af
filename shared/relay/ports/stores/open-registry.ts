/**
 * Remembers which items of `quotas` have open reservations and when somebody must look at them, so that a sweep
 * reads these and not the table. Registering is safe to repeat. Every method throws the store's error.
 */

/** An item to look at. `atSeconds`: when the first of its reservations should have ended, in Unix seconds. */
export interface Lookup {
  /** The key of the item. */
  item: string;
  atSeconds: number;
}

/** How far sweeps came. */
export interface SweepProgress {
  /** Everything that was registered for earlier was looked at. */
  toSeconds: number;
  /** When the latest pass over the whole table began. */
  passBeganSeconds: number;
  /** The key of the item after which that pass goes on; undefined: it ended. */
  passAfter?: string | undefined;
}

export interface OpenRegistry {
  register(lookups: readonly Lookup[]): Promise<void>;
  /** The keys of items that are registered for this time, first and last second included. May repeat a key. */
  due(fromSeconds: number, toSeconds: number): AsyncIterable<string[]>;
  /** Undefined: no sweep has ended yet. */
  progress(): Promise<SweepProgress | undefined>;
  keepProgress(progress: SweepProgress): Promise<void>;
}
