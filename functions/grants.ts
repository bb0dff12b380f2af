/**
 * Applies every grant exactly once: from the table stream of `grants`, and on a slow schedule for rows that
 * the stream missed.
 */
import { dynamoGrantStore } from '../shared/adapters/dynamodb/grant-store.ts';
import { eventHandler } from '../shared/adapters/entry/event-handler.ts';
import { grantImageOf, tableStreamHandler } from '../shared/adapters/entry/table-streams.ts';
import { grantApplier } from '../shared/relay/jobs/grant-applier.ts';
import { jobParts } from './compose/job-parts.ts';

const { client, stack, ...parts } = jobParts();
const applier = grantApplier({ ...parts, grants: dynamoGrantStore(client, stack) });
const poisoned = { event: 'grant_poisoned', metric: 'GrantPoisoned' } as const;

export const handler = eventHandler(parts.log, {
  records: tableStreamHandler(grantImageOf, { ...parts, take: (grant) => applier.apply(grant), poisoned }),
  schedule: () => applier.applyMissed(),
});
