/** The time, real or virtual. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after that many milliseconds, or at once when the signal aborts. Never rejects. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}
