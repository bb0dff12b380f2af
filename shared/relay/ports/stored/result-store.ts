/** The first result of an Idempotency-Key. Every method throws StoreUnavailable or StoreBusy. */

export interface StoredResult {
  /** The request whose result it is. */
  requestId: string;
  status: number;
  headers: Readonly<Record<string, string>>;
  body: string;
}

export interface ResultStore {
  /** `key`: of the claim. `expires`: Unix seconds. Throws ResponseTooLarge. */
  put(of: { account: string; key: string }, result: StoredResult, expires: number): Promise<void>;
  /** Undefined: none is kept, or it has expired. */
  read(of: { account: string; key: string }): Promise<StoredResult | undefined>;
}
