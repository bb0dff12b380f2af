/**
 * The events of background responses with `stream: true`, in batches, as texts of the stream. Every method throws
 * StoreUnavailable or StoreBusy.
 */
export interface EventBatch {
  /** The sequence number of the first of them. */
  from: number;
  /** Each a frame of the stream, without comments. */
  frames: readonly string[];
}

export interface EventLog {
  /** Appends events that follow those before. Safe to repeat. `expires`: Unix seconds. */
  append(of: { account: string; id: string }, batch: EventBatch, expires: number): Promise<void>;
  /** Batches that end after a sequence number, in order, at most some 1 MB of them at once. Empty: there are none yet. */
  after(of: { account: string; id: string }, sequence: number): Promise<EventBatch[]>;
  /** The batch that ends with the highest number. Undefined: there is none. */
  last(of: { account: string; id: string }): Promise<EventBatch | undefined>;
}
