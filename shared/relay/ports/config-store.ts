import type { Snapshot } from '../../config/snapshot.ts';

export interface ConfigSource {
  /** The configuration to serve this request with. Throws StoreUnavailable when there has never been one. */
  current(): Promise<Snapshot>;
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
