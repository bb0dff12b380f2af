import { dynamoConfigStore } from './dynamo-config-store.ts';
import type { Pointer } from '../../../relay/ports/config-store.ts';
import type { ConfigRows } from '../../../config/config-rows.ts';
import type { Snapshot } from '../../../config/snapshot.ts';
import { usageFailure } from '../../../operate/operator-failure.ts';
import type { Store } from '../operator-client.ts';
import type { Tables } from '../dynamo-row-tables.ts';

/** The configuration: its tables, and the snapshots that were made of them. Every method throws a Failure. */
export interface ConfigStore {
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

export function configOf({ documents, target, explained }: Store, tables: Tables): ConfigStore {
  const snapshots = dynamoConfigStore(documents, target.stack, { now: () => Date.now() });
  const newest = () => explained(snapshots.newest());
  const versions = async (): Promise<Pointer[]> => {
    const pointer = await newest();
    return pointer ? explained(snapshots.history(pointer)) : [];
  };
  return {
    async tables() {
      const [channels, charges, plans, settings] = await Promise.all([
        tables.scan('channels'),
        tables.scan('charges'),
        tables.scan('plans'),
        tables.scan('settings'),
      ]);
      return { channels, charges, plans, settings };
    },
    newest,
    versions,
    async version(number) {
      const found = (await versions()).find(({ version }) => version === number);
      if (found) return found;
      throw usageFailure(`there is no version ${number}, or none any more: see \`config show\``);
    },
    rows: (pointer) => explained(snapshots.rows(pointer)),
    snapshot: (pointer) => explained(snapshots.snapshot(pointer)),
  };
}
