/**
 * The store behind the header Idempotency-Key: one row per owner and header value, kept for 24 hours. Every method
 * throws StoreUnavailable.
 */

/** The result of a claim. */
export type ClaimReply =
  | { state: 'claimed' }
  | { state: 'running'; requestId: string }
  | { state: 'completed'; requestId: string }
  /** `differs`: a member of the body; absent: that is not known. */
  | { state: 'other_body'; requestId: string; differs?: string };

export interface IdempotencyStore {
  /**
   * Claims a key for a request if no other request holds it. The key of a crashed request is free again once its
   * call has a ledger row that says so, and after `untilMs` in any case.
   */
  claim(claim: IdempotencyClaim): Promise<ClaimReply>;
  /** Ends a claim: the key is then used, or free again if nothing was charged. */
  finish(claim: IdempotencyClaim, free: boolean): Promise<void>;
}

export interface IdempotencyClaim {
  /** The hash of the API key, because two customers may send the same header value. */
  owner: string;
  idempotencyKey: string;
  requestId: string;
  /** Of the API key: whose ledger has the call's row. */
  account: string;
  body: unknown;
  /** A repeat with another body gets the member that differs: hashes of all are kept. */
  namesMembers?: boolean;
  /** From when on the request can no longer be running, in epoch milliseconds. */
  untilMs: number;
}
