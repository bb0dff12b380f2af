/** Why a store did not do what it was asked. */

/** The store could not be reached; nothing was read or written. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** The store refused before it did anything: throttled, or another write was under way. Safe to repeat. */
export class StoreBusy extends Error {
  override readonly name = 'StoreBusy';
}

/** A record or item that can never be read, however often it comes. The message is in our own words. */
export class Poisoned extends Error {
  override readonly name = 'Poisoned';
}
