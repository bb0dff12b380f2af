/**
 * The store behind the header Idempotency-Key: one row per owner and header value, kept for 24 hours. Every method
 * throws StoreUnavailable.
 */

/** What a request's Idempotency-Key was found to be. */
export type ClaimReply =
  | { state: 'claimed' }
  | { state: 'running' | 'completed' | 'other_body'; requestId: string };

export interface IdempotencyStore {
  /**
   * Takes a key for a request, if no other request holds it. After `untilMs` the claim of a request that crashed is
   * free again.
   */
  claim(claim: IdempotencyClaim): Promise<ClaimReply>;
  /** The request ended: its key is used up, or free again when nothing was charged. */
  finish(claim: IdempotencyClaim, free: boolean): Promise<void>;
}

export interface IdempotencyClaim {
  /** The hash of the API key: two customers may send the same header value. */
  owner: string;
  idempotencyKey: string;
  requestId: string;
  body: unknown;
  /** When the request can no longer be running, in epoch milliseconds. */
  untilMs: number;
}
