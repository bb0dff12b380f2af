/** What a request's Idempotency-Key was found to be. */
export type ClaimReply =
  | { state: 'claimed' }
  | { state: 'running' | 'completed' | 'other_body'; requestId: string };

/** The store behind the header: one row per key owner and header value, kept for 24 hours. Throws StoreUnavailable. */
export interface IdempotencyStore {
  /**
   * Takes a key for a request, if nobody has it. `untilMs`: when the request can no longer be running.
   * A claim whose request died without a word is free after that.
   */
  claim(claim: IdempotencyClaim): Promise<ClaimReply>;
  /** The request ended: its key is used up, or free again when nothing was charged. */
  finish(claim: IdempotencyClaim, free: boolean): Promise<void>;
}

export interface IdempotencyClaim {
  /** The hash of the API key: two customers may use the same words. */
  owner: string;
  idempotencyKey: string;
  requestId: string;
  body: unknown;
  untilMs: number;
}
