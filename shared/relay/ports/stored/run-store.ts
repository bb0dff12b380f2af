/**
 * The states of background responses, each change of them conditional, so that a response has one run and one end:
 *
 *     queued --claim--> in_progress --finish--> completed, incomplete or failed
 *        \                  |
 *         --- cancel ---> cancelled --finish--> cancelled, with what the run had written
 *
 * Every method throws StoreUnavailable or StoreBusy.
 */
import type { ResponseHead, StoredResponse } from './stored-response.ts';

export interface Run {
  account: string;
  id: string;
  /** The name of the run: an event may be delivered twice. */
  run: string;
}

export interface RunStore {
  /** Claims a queued response until a time in Unix seconds. Undefined: it is not queued, or gone. Own claims succeed again. */
  claim(run: Run, until: number): Promise<StoredResponse | undefined>;
  /** Prolongs the run. The head as it is then: `cancelled` ends the run. Undefined: deleted, expired, or another's. */
  renew(run: Run, until: number): Promise<ResponseHead | undefined>;
  /**
   * Ends the run with the whole response. False: it is deleted, or was found dead by a reader, and stays as it is; or it was
   * cancelled, and the response says another status.
   */
  finish(run: Run, response: StoredResponse): Promise<boolean>;
  /** Cancels what is queued or in progress. The head as it is then, also of what had ended before. Undefined: there is none. */
  cancel(account: string, id: string): Promise<ResponseHead | undefined>;
  /** Marks a response whose `until` has passed as failed, with its number of events. The head as it is then. */
  fail(account: string, id: string, events: number): Promise<ResponseHead | undefined>;
}
