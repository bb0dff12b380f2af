import type { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';
import type { Snapshot } from '../../../config/snapshot.ts';
import { getItems, snapshotPartIds, type Pointer } from './runtime-items.ts';
import { fromParts } from './snapshot-parts.ts';

/** Parts are missing, or are not what was written; nothing that trying again would mend. */
export class SnapshotBroken extends Error {
  override readonly name = 'SnapshotBroken';
}

/** The snapshot that the pointer names; its format must be known. Throws SnapshotBroken. */
export async function readSnapshot(
  client: DynamoDBDocumentClient,
  table: string,
  pointer: Pointer,
): Promise<Snapshot> {
  const content = await readParts(client, table, snapshotPartIds(pointer));
  // It was checked row by row before it was published, and only functions write it.
  return { ...(content as Snapshot), version: pointer.version, publishedAt: pointer.publishedAt };
}

/** Throws SnapshotBroken. */
export async function readParts(
  client: DynamoDBDocumentClient,
  table: string,
  ids: string[],
): Promise<unknown> {
  const items = await getItems(client, table, ids);
  const parts = ids.map((id) => {
    const bytes = items.get(id)?.['body']?.B;
    if (bytes === undefined) throw new SnapshotBroken(`${id} is missing`);
    return bytes;
  });
  try {
    return fromParts(parts);
  } catch (error) {
    throw new SnapshotBroken(`${ids[0]} is not readable`, { cause: error });
  }
}
