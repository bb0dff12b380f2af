import type { ConfigRows } from '../config-rows.ts';
import { snapshotFormat, type Snapshot } from '../snapshot.ts';
import { canonicalJson } from '../../wire/canonical-json.ts';

/** Equal configurations give equal texts, whenever they were compiled and in whatever order the store returned them. */
export const canonicalContent = (snapshot: Snapshot, rows: ConfigRows): string =>
  canonicalJson({ format: snapshotFormat, snapshot: { ...snapshot, publishedAt: 0 }, rows });
