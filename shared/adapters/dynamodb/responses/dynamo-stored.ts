/** The table `responses`. */
import type { Clock } from '../../../relay/ports/clock.ts';
import { StoreUnavailable } from '../../../relay/ports/stores/store-errors.ts';
import type { StoredPorts } from '../../../relay/stored/stored-ports.ts';
import type { TableClient } from '../dynamo-client.ts';

export interface StoredParts {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
}

const unbuilt = (): Promise<never> => Promise.reject(new StoreUnavailable('not built yet'));

export const dynamoStored = (_parts: StoredParts): Omit<StoredPorts, 'startRun'> => ({
  responses: { put: unbuilt, read: unbuilt, heads: unbuilt, remove: unbuilt },
  runs: { claim: unbuilt, renew: unbuilt, finish: unbuilt, cancel: unbuilt, fail: unbuilt },
  events: { append: unbuilt, after: unbuilt },
  results: { put: unbuilt, read: unbuilt },
});
