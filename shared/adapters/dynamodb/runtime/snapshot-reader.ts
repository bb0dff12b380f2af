/** Joins the parts of a snapshot, or of the rows it was compiled from. */
import { emptySnapshot, type Snapshot } from '../../../config/snapshot.ts';
import { SnapshotBroken, type Pointer } from '../../../relay/ports/stores/config-store.ts';
import { getItems, snapshotPartIds, type RuntimeItem, type RuntimeTable } from './runtime-items.ts';
import { fromParts } from './snapshot-parts.ts';

/**
 * Reads the snapshot that the pointer names; the caller checks its format. Throws SnapshotBroken.
 * @param found parts that an earlier read of the same pointer has read; takes those of this one
 */
export async function readSnapshot(
  table: RuntimeTable,
  pointer: Pointer,
  found?: Map<string, RuntimeItem>,
): Promise<Snapshot> {
  const { version, publishedAt } = pointer;
  // The cast is safe: rows are validated before they are published, and only functions write snapshots.
  const content = (await readParts(table, snapshotPartIds(pointer), found)) as Snapshot;
  // A snapshot published by an earlier version of this code lacks newer settings; use their defaults.
  const { settings: defaults } = emptySnapshot(publishedAt);
  const limits = { ...defaults.limits, ...content.settings.limits };
  const settings = { ...defaults, ...content.settings, limits };
  return { ...content, settings, version, publishedAt };
}

/** Throws SnapshotBroken. Parts never change, so only one that an eventually consistent read misses is read consistently. */
export async function readParts(
  table: RuntimeTable,
  ids: string[],
  items = new Map<string, RuntimeItem>(),
): Promise<unknown> {
  const missing = (): string[] => ids.filter((id) => !items.has(id));
  await getItems(table, missing(), { mayBeOld: true, found: items });
  await getItems(table, missing(), { found: items });
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

/** Reads snapshots, and keeps the parts of one whose read failed half-way, so that the next try reads the others alone. */
export class PartsUnderWay {
  readonly #table: RuntimeTable;
  #pointer: Pick<Pointer, 'version' | 'digest'> | undefined;
  #found = new Map<string, RuntimeItem>();

  constructor(table: RuntimeTable) {
    this.#table = table;
  }

  /** Throws SnapshotBroken, StoreUnavailable. */
  async read(pointer: Pointer): Promise<Snapshot> {
    const { version, digest } = pointer;
    if (this.#pointer?.version !== version || this.#pointer.digest !== digest) {
      this.#pointer = { version, digest };
      this.#found = new Map();
    }
    const found = this.#found;
    try {
      return await readSnapshot(this.#table, pointer, found);
    } catch (error) {
      // A part that could not be read is not read from memory again.
      if (error instanceof SnapshotBroken) found.clear();
      throw error;
    } finally {
      if (this.#found === found && found.size === pointer.parts) this.#found = new Map();
    }
  }
}
