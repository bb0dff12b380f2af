/**
 * Published versions of the configuration, for operators: the relay's snapshot store with explained errors.
 */
import type { ConfigVersions } from '../../../operate/config-versions.ts';
import type { HistoryWanted, KeptVersion } from '../../../relay/ports/stores/config-store.ts';
import { dynamoConfigStore } from './dynamo-config-store.ts';
import { dynamoConfigTables } from '../dynamo-config-tables.ts';
import { usageFailure } from '../../../operate/operator-failure.ts';
import type { Store } from '../operator-client.ts';

export function dynamoConfigVersions({ documents, target, explained }: Store): ConfigVersions {
  const snapshots = dynamoConfigStore(documents, target.stack, { now: () => Date.now() });
  const newest = () => explained(snapshots.newest());
  const versions = async (wanted?: HistoryWanted): Promise<KeptVersion[]> => {
    const pointer = await newest();
    return pointer ? explained(snapshots.history(pointer, wanted)) : [];
  };
  return {
    tables: () => explained(dynamoConfigTables(documents, target.stack).rows()),
    newest,
    versions,
    async version(number) {
      const pointer = await newest();
      const found = pointer && (await explained(snapshots.kept(pointer, number)));
      if (found) return found;
      throw usageFailure(`there is no version ${number}, or none any more: see \`version list\``);
    },
    rows: (pointer) => explained(snapshots.rows(pointer)),
    snapshot: (pointer) => explained(snapshots.snapshot(pointer)),
  };
}
