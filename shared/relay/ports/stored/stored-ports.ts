/** The ports to what is stored. */
import type { EventLog } from './event-log.ts';
import type { ResponseStore } from './response-store.ts';
import type { ResultStore } from './result-store.ts';
import type { RunStore } from './run-store.ts';

export interface StoredPorts {
  responses: ResponseStore;
  runs: RunStore;
  events: EventLog;
  results: ResultStore;
  /** Starts the run of a queued response, which goes on without the caller. Throws StoreUnavailable. */
  startRun: (response: { account: string; id: string }) => Promise<void>;
}
