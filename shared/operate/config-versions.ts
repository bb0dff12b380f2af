/** Port: reads the configuration tables and the published versions. */
import type { ConfigRows } from '../config/config-rows.ts';
import type { Snapshot } from '../config/snapshot.ts';
import type { HistoryWanted, KeptVersion } from '../relay/ports/stores/config-store.ts';

export type PublishedVersion = KeptVersion;

/** Every method may throw a Failure. */
export interface ConfigVersions {
  /** The current rows of the tables. */
  tables(): Promise<ConfigRows>;
  /** The version that serves requests; undefined: none has been published. */
  newest(): Promise<PublishedVersion | undefined>;
  /** The retained versions, newest first. May go on where it may end. */
  versions(wanted?: HistoryWanted): Promise<PublishedVersion[]>;
  version(number: number): Promise<PublishedVersion>;
  /** The rows that a version was compiled from. */
  rows(version: PublishedVersion): Promise<ConfigRows>;
  snapshot(version: PublishedVersion): Promise<Snapshot>;
}
