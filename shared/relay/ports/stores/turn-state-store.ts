/**
 * Keeps the state of turns that called tools, for clients that cannot send it back. What is kept is sealed. The suite in
 * `test/contract/turn-state-store.ts` defines the contract; the in-memory store and the DynamoDB adapter both pass it.
 */

/** A turn: its account, and the id of its first call as the client saw it. */
export interface TurnKey {
  account: string;
  callId: string;
}

export interface TurnStateStore {
  /**
   * Keeps a sealed state until `expiresAt` (Unix seconds); a state that was kept under the same key is replaced. Throws
   * StateTooLarge, StoreUnavailable or the store's own error.
   */
  put(key: TurnKey, sealed: string, expiresAt: number): Promise<void>;
  /**
   * The sealed states of an account's turns, by call id, from consistent reads. Turns without an entry were not kept, or
   * have expired. Throws StoreUnavailable.
   */
  read(account: string, callIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** The state does not fit into the store. */
export class StateTooLarge extends Error {
  override readonly name = 'StateTooLarge';
}
