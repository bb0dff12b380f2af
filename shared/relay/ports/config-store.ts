/**
 * The stores of the configuration: the tables it is compiled from, the published snapshots, the snapshot in
 * use, and the marks (`_problem`, `_warning`) that show operators the problems of a row; beside them keys and secrets.
 */
import type { ConfigRows, ValidationResult } from '../../config/rows/read-table.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { TableName } from '../../tables/table-names.ts';
import type { AccountRow } from '../../config/rows/account-row.ts';
import type { KeyRow } from '../../config/rows/key-row.ts';

export interface ConfigSource {
  /** For a new request. Throws StoreUnavailable when none has been read yet and the read fails. */
  current(): Promise<Snapshot>;
  /**
   * The configuration, read at most so long ago: for refusals that clients take as final, and for public lists. Waits
   * 2.5 s at most, 8 s for a first one. Throws StoreUnavailable when it cannot be read by then.
   */
  notOlderThan(ageMsMax: number): Promise<Snapshot>;
}

/** The relay is not called closed from an older configuration, nor the account shown by one. Together with the compile, an edit is then live within 10 s. */
export const refusalAgeMsMax = 8_000;

/** Public lists are kept by the distribution for 5 s on top. */
export const listAgeMsMax = 3_000;

/** The tables that make up the configuration. */
export const publishedTables = ['channels', 'charges', 'plans', 'settings'] as const;

export interface ConfigTables {
  /** All rows of `publishedTables`, from consistent reads. Throws StoreUnavailable. */
  rows(): Promise<ConfigRows>;
}

export interface Pointer {
  version: number;
  /** The storage format of the snapshot: see `snapshotFormat`. */
  format: number;
  parts: number;
  /** How many times the snapshot is stored, each under keys of its own. */
  copies: number;
  rowParts: number;
  /** The hash of the canonical content. */
  digest: string;
  /** Unix seconds. */
  publishedAt: number;
}

/** A version that can be restored. */
export interface KeptVersion extends Pointer {
  /** The authors of the changed rows. Rows that other tools edited name none. */
  by?: string[];
  /** The changed rows, in a few words each. The first version has no such list. */
  changed?: string[];
}

/** The snapshot that requests use, and the rows it was compiled from. */
export interface SnapshotContent {
  snapshot: Snapshot;
  rows: ConfigRows;
  digest: string;
  /** See `KeptVersion`. */
  by?: string[];
  changed?: string[];
}

/** Bounds of a history. Each 50 versions cost one request. */
export interface HistoryWanted {
  /** With the version that was the newest then, in epoch milliseconds. */
  sinceMs?: number;
  /** With so many. */
  count?: number;
}

/** `taken`: the version is already in use. `moved`: another publisher has moved the pointer. */
export type Publication = 'published' | 'taken' | 'moved';

/** Every method may throw StoreUnavailable or the store's own error. */
export interface SnapshotStore {
  /** The hash of a content's canonical text, for `Pointer.digest`. */
  digest(canonicalContent: string): string;
  newest(): Promise<Pointer | undefined>;
  /** Reads a snapshot. Throws SnapshotBroken, or an Error when its format is unknown. */
  snapshot(pointer: Pointer): Promise<Snapshot>;
  /** The rows that a snapshot of any format was compiled from. Throws SnapshotBroken. */
  rows(pointer: Pointer): Promise<ConfigRows>;
  /** The snapshots that a rollback can restore: those of the last 7 days at least (1,000 at most), newest first. */
  history(newest: Pointer, wanted?: HistoryWanted): Promise<KeptVersion[]>;
  /** One of the history. */
  kept(newest: Pointer, version: number): Promise<KeptVersion | undefined>;
  /** Stores the content as `version`, and makes it the newest if `newest` is still the newest. */
  publish(newest: Pointer | undefined, version: number, content: SnapshotContent): Promise<Publication>;
  /** Sets an expiry, a week ahead, on versions that 50 newer ones followed. Safe to repeat. */
  expireOld(newest: Pointer): Promise<void>;
}

/** Parts of a snapshot are missing or damaged. Permanent: a retry does not help. */
export class SnapshotBroken extends Error {
  override readonly name = 'SnapshotBroken';
}

/** Tables whose rows are validated by themselves when they are written. They are not part of the configuration. */
export const markedTables = ['keys', 'accounts'] as const;

/** After its last write. */
export interface WrittenRow {
  table: (typeof markedTables)[number];
  key: string | number;
  raw: unknown;
}

export interface ValidatedRow extends Omit<WrittenRow, 'table'> {
  table: TableName;
  result: ValidationResult;
}

/** The existing accounts: a key that names none of them gets a warning. */
export interface AccountRows {
  /** Those of the names that have a row. Throws StoreUnavailable or the store's own error. */
  existing(names: string[]): Promise<ReadonlySet<string>>;
}

export interface RowMarks {
  /**
   * Writes marks that differ from the row's current ones. Unchanged marks are not rewritten, so our own
   * stream events do not loop. Deleted rows are not recreated. Logs a row that cannot be marked and
   * continues. Throws MarksLost after all rows were tried.
   */
  write(rows: ValidatedRow[]): Promise<void>;
}

/**
 * The store did not answer for all marks. The configuration is already published. The local start depends on
 * the name: Lambda reports it as the error's type, and the start then continues without marks.
 */
export class MarksLost extends Error {
  override readonly name = 'MarksLost';
}

// API keys with the row of their account.

/** `missing`: why no key was found. Only for the log; clients see the same message for all reasons. */
export type KeyLookup =
  | {
      row: KeyRow;
      /** An account without a valid row has no plan. */
      account?: AccountRow | undefined;
      /** The account's row switches all its keys off. */
      accountOff?: boolean;
      /** The number of parts of the account's balance, when it was read. */
      shardCount?: number | undefined;
    }
  | { missing: 'unknown' | 'invalid_row' };

export interface KeyStore {
  /**
   * Looks up a complete `sk-` key by its hash. Throws StoreUnavailable.
   * @param ageMsMax how long ago it may have been read; absent: for as long as lookups are kept
   */
  find(secretKey: string, ageMsMax?: number): Promise<KeyLookup>;
}

// Secrets of one purpose, looked up by the references in rows.

/** `malformed`: the reference or its value has an unusable form. */
export type UnusableReason = 'missing' | 'access_denied' | 'malformed';

/** The secret cannot be used, until an operator changes the reference, the secret or a permission. */
export class SecretUnusable extends Error {
  override readonly name = 'SecretUnusable';
  readonly reason: UnusableReason;

  /** @param detail for the operator; must not quote foreign text or a secret's value */
  constructor(reason: UnusableReason, detail = '', options?: ErrorOptions) {
    super(detail, options);
    this.reason = reason;
  }
}

export interface SecretStore {
  /**
   * The value of a reference such as `ssm:/relay/<stack>/channels/<host>/<name>` or, locally, `env:NAME`. Throws
   * SecretUnusable, or the error of a store that did not answer.
   * @param host where the value will be sent; absent: it signs
   */
  read(reference: string, host?: string): Promise<string>;
  /** Reads the secret again without a cache. True: the value has changed. Never rejects. */
  refresh(reference: string): Promise<boolean>;
}

export interface SecretCheck {
  /** The references that cannot be used, each with an explanation for the operator. Never rejects. */
  unusable(references: readonly string[]): Promise<ReadonlyMap<string, string>>;
}
