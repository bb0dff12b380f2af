/** Port: the configuration as it stands in the tables, and the versions that were published of it. */
import type { Pointer } from '../adapters/dynamodb/runtime/runtime-items.ts';
import type { ConfigRows } from '../config/config-rows.ts';
import type { Snapshot } from '../config/snapshot.ts';

/** The configuration: its tables, and the snapshots that were made of them. Every method throws a Failure. */
export interface ConfigVersions {
  /** The rows as the tables have them. */
  tables(): Promise<ConfigRows>;
  /** Which snapshot requests are served with; undefined: none was ever published. */
  newest(): Promise<Pointer | undefined>;
  /** The snapshots that are kept, newest first. */
  versions(): Promise<Pointer[]>;
  version(number: number): Promise<Pointer>;
  /** The rows that a snapshot was made of. */
  rows(pointer: Pointer): Promise<ConfigRows>;
  snapshot(pointer: Pointer): Promise<Snapshot>;
}
