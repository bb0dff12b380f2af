/** The stores on the table `responses`. */
import type { Clock } from '../../../relay/ports/clock.ts';
import type { StoredPorts } from '../../../relay/ports/stored/stored-ports.ts';
import { physicalTableName } from '../../../tables/table-names.ts';
import type { TableClient } from '../dynamo-client.ts';
import { dynamoEventLog } from './dynamo-event-log.ts';
import { dynamoFollowerCount } from './dynamo-follower-count.ts';
import { dynamoResponseStore } from './dynamo-response-store.ts';
import { dynamoResultStore } from './dynamo-result-store.ts';
import { dynamoRunStore } from './dynamo-run-store.ts';
import type { ResponseTable } from './response-items.ts';

export interface StoredParts {
  client: TableClient;
  clock: Pick<Clock, 'now'>;
  stack: string;
}

export function dynamoStored({ client, clock, stack }: StoredParts): Omit<StoredPorts, 'startRun'> {
  const now = (): number => Math.floor(clock.now() / 1000);
  const table: ResponseTable = { client, name: physicalTableName(stack, 'responses'), now };
  return {
    responses: dynamoResponseStore(table),
    runs: dynamoRunStore(table),
    events: dynamoEventLog(table),
    results: dynamoResultStore(table),
    followers: dynamoFollowerCount(table),
  };
}
