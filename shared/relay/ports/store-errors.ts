/** Errors of stores, and how long one try of a call takes at most. */

/** The time-out of one try of a call that a client waits for. */
export const tryMsMax = 1_200;

/**
 * The same for the first reads of an environment: while a dozen start at once on few processors, an answer that is there
 * is noticed late. Such reads change nothing, and on a new connection a long silence means a slow store, not a dead one.
 */
export const firstTryMsMax = 3_000;

/** How many causes deep an error is described. */
export const causesMax = 3;

/**
 * The store's own name of the reply that an error follows from, for whoever runs the store: that of the first of its causes
 * that has one. There is none where the store did not reply. It goes to the log, so what is no id is none; and errors may be
 * each other's cause, so no more of them are asked than the log describes.
 */
export function storeRequestId(error: unknown): string | undefined {
  let cause = error;
  for (let depth = 0; depth <= causesMax && cause instanceof Error; depth += 1, { cause } = cause)
    if ('requestId' in cause && typeof cause.requestId === 'string' && /^[\w-]{1,80}$/.test(cause.requestId))
      return cause.requestId;
  return undefined;
}

/** Bounds the repeats of writes and reads while clients wait. All calls of a process share it, so that a store that is down is not asked in vain. */
export interface Repeats {
  /** Counts one more repeat if it is allowed. */
  may(): boolean;
}

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
