/** Applies every grant once: from the table stream of `grants`, and on a schedule for rows that the stream missed. */
import { createGrantStore } from '../shared/adapters/dynamodb/grant-store.ts';
import { createEventHandler } from '../shared/adapters/entry/event-handler.ts';
import { readGrantRecord, createTableStreamHandler } from '../shared/adapters/entry/table-streams.ts';
import { grantApplier } from '../shared/relay/jobs/grant-applier.ts';
import { composeJobDeps } from './compose/job-deps.ts';

const { client, stack, ...deps } = composeJobDeps();
const applier = grantApplier({ ...deps, grants: createGrantStore(client, stack) });
const poisoned = { event: 'grant_poisoned', metric: 'GrantPoisoned' } as const;

export const handler = createEventHandler(deps.log, {
  records: createTableStreamHandler(readGrantRecord, {
    ...deps,
    take: (grant) => applier.apply(grant),
    poisonReport: poisoned,
  }),
  schedule: () => applier.applyMissed(),
});
