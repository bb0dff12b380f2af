import { setTimeout as pause } from 'node:timers/promises';
import { documentsOn, tablesOn } from './sdk-tables.ts';
import { createSnapshotStore } from '../../shared/adapters/dynamodb/config-store.ts';
import type { Snapshot } from '../../shared/config/snapshot.ts';
import { emulatorClient } from './emulator.ts';

/**
 * Waits until a published configuration matches. A function that has not answered yet starts with it; others load it up
 * to 8 s later. The test's own time-out limits the wait.
 */
export async function untilPublished(
  dynamodbEndpoint: string,
  passes: (snapshot: Snapshot) => boolean,
): Promise<void> {
  const client = emulatorClient(dynamodbEndpoint);
  try {
    const snapshots = createSnapshotStore(tablesOn(documentsOn(client)), 'relay', Date);
    for (;;) {
      const newest = await snapshots.newest();
      if (newest && passes(await snapshots.snapshot(newest))) return;
      await pause(50);
    }
  } finally {
    client.destroy();
  }
}

/** Waits until models that were just put into a table are in the published configuration. */
export const waitUntilServed = (dynamodbEndpoint: string, models: string[]): Promise<void> =>
  untilPublished(dynamodbEndpoint, (snapshot) => models.every((model) => snapshot.models.includes(model)));
