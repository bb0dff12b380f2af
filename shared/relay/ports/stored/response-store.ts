/**
 * The store of responses. Reads are consistent, and return nothing that has expired. Every method throws
 * StoreUnavailable or StoreBusy.
 */
import type { ResponseHead, StoredResponse } from './stored-response.ts';

/** The response is larger than the store takes. */
export class ResponseTooLarge extends Error {
  override readonly name = 'ResponseTooLarge';
}

/**
 * Told how long contents are together (UTF-16 code units of their JSON) before any of them is unpacked. What it throws ends
 * the read.
 */
export type Admit = (length: number) => void;

export interface ResponseStore {
  /**
   * Writes a response, once: visible to every reader when this resolves, and whole. A try that comes after an earlier one
   * changes nothing, whatever the response has become since, also when it was removed. Throws ResponseTooLarge.
   */
  put(response: StoredResponse): Promise<void>;
  /** By id. Absent: none of the account's that can be read. */
  read(account: string, ids: readonly string[], admit?: Admit): Promise<ReadonlyMap<string, StoredResponse>>;
  /** The same, of which only that is kept what `take` makes of each: no more than one is in memory whole. */
  readEach<Taken>(
    account: string,
    ids: readonly string[],
    take: (response: StoredResponse) => Taken,
    admit?: Admit,
  ): Promise<ReadonlyMap<string, Taken>>;
  /** The same without content. */
  heads(account: string, ids: readonly string[]): Promise<ReadonlyMap<string, ResponseHead>>;
  /** How long the contents are (UTF-16 code units of their JSON), read without them. */
  lengths(account: string, ids: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** Removes a response and its events. Invisible to every reader once this resolves. False: there was none. */
  remove(account: string, id: string): Promise<boolean>;
  /** Removes one whose put has no known outcome, also where that is still on its way: it then writes nothing. */
  withdraw(account: string, id: string): Promise<void>;
}
