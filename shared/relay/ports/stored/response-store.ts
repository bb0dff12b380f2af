/**
 * The store of responses. Reads are consistent, and return nothing that has expired. Every method throws
 * StoreUnavailable or StoreBusy.
 */
import type { ResponseHead, StoredResponse } from './stored-response.ts';

/** The response is larger than the store takes. */
export class ResponseTooLarge extends Error {
  override readonly name = 'ResponseTooLarge';
}

export interface ResponseStore {
  /** Writes a response, or replaces it: visible to every reader once this resolves, and whole. Throws ResponseTooLarge. */
  put(response: StoredResponse): Promise<void>;
  /** By id. Absent: none of the account's that can be read. */
  read(account: string, ids: readonly string[]): Promise<ReadonlyMap<string, StoredResponse>>;
  /** The same without content. */
  heads(account: string, ids: readonly string[]): Promise<ReadonlyMap<string, ResponseHead>>;
  /** Removes a response and its events. Invisible to every reader once this resolves. False: there was none. */
  remove(account: string, id: string): Promise<boolean>;
}
