/** Port: the configuration as it stands in the tables, and the versions that were published of it. */
import type { ConfigRows } from '../config/config-rows.ts';
import type { Snapshot } from '../config/snapshot.ts';
import type { Pointer } from '../relay/ports/config-store.ts';

/** A version of the configuration as it was published. */
export type PublishedVersion = Pointer;

/** The configuration: its tables, and the snapshots that were made of them. Every method throws a Failure. */
export interface ConfigVersions {
  /** The rows as the tables have them. */
  tables(): Promise<ConfigRows>;
  /** The version that requests are served with; undefined: none was ever published. */
  newest(): Promise<PublishedVersion | undefined>;
  /** The versions that are kept, newest first. */
  versions(): Promise<PublishedVersion[]>;
  version(number: number): Promise<PublishedVersion>;
  /** The rows that a version was made of. */
  rows(version: PublishedVersion): Promise<ConfigRows>;
  snapshot(version: PublishedVersion): Promise<Snapshot>;
}
