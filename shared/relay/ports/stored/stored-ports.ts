/** The ports to what is stored. */
import type { EventLog } from './event-log.ts';
import type { FollowerCount } from './follower-count.ts';
import type { ResponseStore } from './response-store.ts';
import type { ResultStore } from './result-store.ts';
import type { RunStore } from './run-store.ts';

export interface RunToStart {
  account: string;
  id: string;
  /** The span of its acceptance, as W3C's Trace Context writes it. Absent: the call is not traced. */
  traceparent?: string;
}

export interface StoredPorts {
  responses: ResponseStore;
  runs: RunStore;
  events: EventLog;
  results: ResultStore;
  followers: FollowerCount;
  /**
   * Starts the run of a queued response, which goes on without the caller. Throws StoreUnavailable. Undefined: nothing here
   * runs what nobody waits for.
   */
  startRun: ((response: RunToStart) => Promise<void>) | undefined;
}
