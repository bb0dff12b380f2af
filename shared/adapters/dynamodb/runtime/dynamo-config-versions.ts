/**
 * Published versions of the configuration, for operators: the relay's snapshot store with explained errors.
 */
import type { ConfigVersions } from '../../../operate/config-versions.ts';
import type { Pointer } from '../../../relay/ports/stores/config-store.ts';
import { dynamoConfigStore } from './dynamo-config-store.ts';
import { dynamoConfigTables } from '../dynamo-config-tables.ts';
import { usageFailure } from '../../../operate/operator-failure.ts';
import type { Store } from '../operator-client.ts';

export function dynamoConfigVersions({ documents, target, explained }: Store): ConfigVersions {
  const snapshots = dynamoConfigStore(documents, target.stack, { now: () => Date.now() });
  const newest = () => explained(snapshots.newest());
  const versions = async (): Promise<Pointer[]> => {
    const pointer = await newest();
    return pointer ? explained(snapshots.history(pointer)) : [];
  };
  return {
    tables: () => explained(dynamoConfigTables(documents, target.stack).rows()),
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
