/** The first result of an Idempotency-Key. Every method throws StoreUnavailable or StoreBusy. */
import type { Admit } from './response-store.ts';

export interface StoredResult {
  /** The request whose result it is. */
  requestId: string;
  status: number;
  headers: Readonly<Record<string, string>>;
  /** Undefined: the events of the background response that the request created. */
  body: string | undefined;
}

export interface ResultStore {
  /**
   * `key`: the id of the request. `expires`: Unix seconds. The result goes when the response of that request is removed.
   * Throws ResponseTooLarge.
   */
  put(of: { account: string; key: string }, result: StoredResult, expires: number): Promise<void>;
  /** Undefined: none is kept, or it has expired. */
  read(of: { account: string; key: string }, admit?: Admit): Promise<StoredResult | undefined>;
}
