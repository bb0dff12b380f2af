/**
 * The configuration: the tables it is compiled from, the snapshots that are published, the one that is served, and the marks
 * (`_problem`, `_warning`) by which rows show operators what is wrong with them.
 */
import type { ConfigRows } from '../../config/config-rows.ts';
import type { Snapshot } from '../../config/snapshot.ts';
import type { ValidationResult } from '../../config/validation-result.ts';
import type { TableName } from '../../tables/table-names.ts';

export interface ConfigSource {
  /** The configuration to serve this request with. Throws StoreUnavailable when there has never been one. */
  current(): Promise<Snapshot>;
}

export interface ConfigTables {
  /** All rows of the tables that make up the configuration, read consistently. Throws StoreUnavailable. */
  rows(): Promise<ConfigRows>;
}

/** Which snapshot is served. */
export interface Pointer {
  version: number;
  /** The form in which the snapshot is stored: see `snapshotFormat`. */
  format: number;
  parts: number;
  rowParts: number;
  /** The hash of the canonical content. */
  digest: string;
  /** Unix seconds. */
  publishedAt: number;
}

/** A configuration to publish: what requests are served with, and the rows it was made of. */
export interface SnapshotContent {
  snapshot: Snapshot;
  rows: ConfigRows;
  digest: string;
}

/** `taken`: that version is used already. `moved`: another publisher moved the pointer since. */
export type Publication = 'published' | 'taken' | 'moved';

/** Every method throws StoreUnavailable, or what the store said. */
export interface SnapshotStore {
  /** The hash of a content's canonical text, as `Pointer.digest` has it. */
  digest(canonicalContent: string): string;
  /** Which snapshot is the newest; undefined: none was ever published. */
  newest(): Promise<Pointer | undefined>;
  /** What requests are served with; its format must be known. Throws SnapshotBroken. */
  snapshot(pointer: Pointer): Promise<Snapshot>;
  /** The rows that a snapshot was made of, whatever its format. Throws SnapshotBroken. */
  rows(pointer: Pointer): Promise<ConfigRows>;
  /** The snapshots that a rollback may go to, newest first. */
  history(newest: Pointer): Promise<Pointer[]>;
  /** Puts the content as that version, and makes it the newest if `newest` still is. */
  publish(newest: Pointer | undefined, version: number, content: SnapshotContent): Promise<Publication>;
  /** Lets the versions expire that are too old for a rollback. Safe to repeat. */
  expireOld(newest: Pointer): Promise<void>;
}

/** Parts of a snapshot are missing, or are not what was written. Permanent: a retry finds the same. */
export class SnapshotBroken extends Error {
  override readonly name = 'SnapshotBroken';
}

/** Tables whose rows are validated one by one, when they are written; they are no part of the configuration. */
export const markedTables = ['keys', 'accounts'] as const;

/** A row of such a table, as its last write left it. */
export interface WrittenRow {
  table: (typeof markedTables)[number];
  key: string | number;
  raw: unknown;
}

/** A row as it was read, with the result of its validation. */
export interface ValidatedRow {
  table: TableName;
  key: string | number;
  raw: unknown;
  result: ValidationResult;
}

export interface RowMarks {
  /**
   * Writes the marks of these rows where they differ from those that the row has: unchanged marks are not rewritten, so
   * our own stream events do not loop; deleted rows are not recreated. A row that cannot be marked is logged and holds
   * up no other. Throws MarksLost, after all rows were tried.
   */
  write(rows: ValidatedRow[]): Promise<void>;
}

/**
 * The store did not answer for all marks; whatever was to be published is published. The name is a signal: Lambda hands
 * it over as the error's type, and the local start goes on without marks when it finds it.
 */
export class MarksLost extends Error {
  override readonly name = 'MarksLost';
}
