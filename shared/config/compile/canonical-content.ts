import type { ConfigRows } from '../config-rows.ts';
import { snapshotFormat, type Snapshot } from '../snapshot.ts';

/** Equal configurations give equal texts, whenever they were compiled and however the store ordered them. */
export const canonicalContent = (snapshot: Snapshot, rows: ConfigRows): string =>
  canonicalJson({ format: snapshotFormat, snapshot: { ...snapshot, publishedAt: 0 }, rows });

const canonicalJson = (value: unknown): string =>
  JSON.stringify(value, (_name, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
