import type { ConfigRows } from '../config-rows.ts';
import { snapshotFormat, type Snapshot } from '../snapshot.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';

/**
 * The configuration as text. Equal configurations give equal texts, independent of the time of compilation
 * and of the order in which the store returned the rows.
 */
export const canonicalContent = (snapshot: Snapshot, rows: ConfigRows): string =>
  canonicalJson({ format: snapshotFormat, snapshot: { ...snapshot, publishedAt: 0 }, rows });
