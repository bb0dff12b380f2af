/** Counts who comes to follow a response. Every method throws StoreUnavailable or StoreBusy. */
export interface FollowerCount {
  /** Counts one more, and returns its number; no two have one. `expires`: Unix seconds, of the count. */
  add(of: { account: string; id: string }, expires: number): Promise<number>;
  /** The number of the last one. */
  last(of: { account: string; id: string }): Promise<number>;
}
