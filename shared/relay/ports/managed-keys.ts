/** Rows of `keys` that customers write. Every method throws StoreUnavailable. */

/** A row as a consistent read found it. */
export interface SeenKey {
  raw: Readonly<Record<string, unknown>>;
  /** As the store has it, for the condition that no right in it has changed. */
  stored: object;
}

/** The writes of one transaction. It fails if the asking key or the changed key has lost a right since it was read. */
export interface KeyChange {
  account: string;
  maker: SeenKey;
  /** The hashes of the keys that customers have made of the account, as they were read and as they will be. */
  made?: { before: readonly string[]; after: readonly string[] };
  create?: Readonly<Record<string, unknown>>;
  /** An undefined attribute is removed. */
  update?: { seen: SeenKey; attributes: Readonly<Record<string, unknown>> };
}

export interface ManagedKeyStore {
  find(hash: string): Promise<SeenKey | undefined>;
  /** Those that exist, in any order. */
  rows(hashes: readonly string[]): Promise<SeenKey[]>;
  made(account: string): Promise<readonly string[]>;
  /** @returns what was changed meanwhile, so that nothing was written; empty: all was. Throws StoreBusy, too. */
  write(change: KeyChange): Promise<('maker' | 'made' | 'key')[]>;
}
