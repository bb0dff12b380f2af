import type { Snapshot } from '../../config/snapshot.ts';

export interface ConfigSource {
  /** The configuration to serve this request with. Throws StoreUnavailable when there has never been one. */
  current(): Promise<Snapshot>;
}
