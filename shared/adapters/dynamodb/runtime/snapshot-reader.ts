/** Joins the parts of a snapshot, or of the rows it was compiled from. */
import { emptySnapshot, type Snapshot } from '../../../config/snapshot.ts';
import { SnapshotBroken, type Pointer } from '../../../relay/ports/stores/config-store.ts';
import { getItems, snapshotPartIds, type RuntimeTable } from './runtime-items.ts';
import { fromParts } from './snapshot-parts.ts';

/** Reads the snapshot that the pointer names; the caller checks its format. Throws SnapshotBroken. */
export async function readSnapshot(table: RuntimeTable, pointer: Pointer): Promise<Snapshot> {
  const { version, publishedAt } = pointer;
  // The cast is safe: rows are validated before they are published, and only functions write snapshots.
  const content = (await readParts(table, snapshotPartIds(pointer))) as Snapshot;
  // A snapshot published by an earlier version of this code lacks newer settings; use their defaults.
  const { settings: defaults } = emptySnapshot(publishedAt);
  const limits = { ...defaults.limits, ...content.settings.limits };
  const settings = { ...defaults, ...content.settings, limits };
  return { ...content, settings, version, publishedAt };
}

/** Throws SnapshotBroken. */
export async function readParts(table: RuntimeTable, ids: string[]): Promise<unknown> {
  const items = await getItems(table, ids);
  const parts = ids.map((id) => {
    const bytes = items.get(id)?.['body'];
    if (!(bytes instanceof Uint8Array)) throw new SnapshotBroken(`${id} is missing`);
    return bytes;
  });
  try {
    return fromParts(parts);
  } catch (error) {
    throw new SnapshotBroken(`${ids[0]} is not readable`, { cause: error });
  }
}
