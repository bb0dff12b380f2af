/** Errors of stores, and how long one try of a call takes at most. */

/** The time-out of one try of a call that a client waits for. */
export const tryMsMax = 1_200;

/**
 * The same for the first reads of an environment: while a dozen start at once on few processors, an answer that is there
 * is noticed late. Such reads change nothing, and on a new connection a long silence means a slow store, not a dead one.
 */
export const firstTryMsMax = 3_000;

/** The store did not answer. A write may have been applied or may still be applied. */
export class StoreUnavailable extends Error {
  override readonly name = 'StoreUnavailable';
}

/** The store changed nothing: it throttled the call, or another write was running. Safe to repeat. */
export class StoreBusy extends Error {
  override readonly name = 'StoreBusy';
}

/** A record or item that can never be processed; a retry does not help. The message quotes no foreign text. */
export class Poisoned extends Error {
  override readonly name = 'Poisoned';
}
