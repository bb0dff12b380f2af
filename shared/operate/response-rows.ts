/** Port: the stored responses of an account, for operators. Heads and sizes have no content; `read` has. */
import type { ResponseHead, StoredResponse } from '../relay/ports/stored/stored-response.ts';

/** An item of the table `responses`. */
export interface StoredRow {
  id: string;
  /** Of its content as it is stored, compressed. Of an item that is a part of another: 0. */
  bytes: number;
  /** Unix seconds. */
  expires: number;
}

/** Reads are consistent. Every method may throw a Failure. */
export interface ResponseRows {
  /** Undefined: there is none, or it has expired. */
  head(account: string, id: string): Promise<ResponseHead | undefined>;
  read(account: string, id: string): Promise<StoredResponse | undefined>;
  /** Removes a response and its events. False: there was none. */
  remove(account: string, id: string): Promise<boolean>;
  /** All items of an account, page by page, expired ones included. */
  rows(account: string): AsyncIterable<StoredRow[]>;
}
