/** The configuration: the tables it is compiled from, the snapshots that are published, and the one that is served. */
import type { ConfigRows } from '../../config/config-rows.ts';
import type { Snapshot } from '../../config/snapshot.ts';

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
