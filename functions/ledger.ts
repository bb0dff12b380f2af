/**
 * Consumes the table stream of `quotas`: writes the ledger row of every close, checks that the account balances, and
 * registers what is open.
 */
import { dynamoLedgerStore } from '../shared/adapters/dynamodb/ledger-store.ts';
import { dynamoOpenRegistry } from '../shared/adapters/dynamodb/quotas/open-registry.ts';
import { eventHandler } from '../shared/adapters/entry/event-handler.ts';
import { quotaChangeOf, tableStreamBatchHandler } from '../shared/adapters/entry/table-streams.ts';
import { readSweepGraceSeconds } from '../shared/adapters/system/environment.ts';
import { createLedgerProjector } from '../shared/relay/jobs/ledger-projector.ts';
import { openWatch } from '../shared/relay/jobs/sweeper.ts';
import type { QuotaChange } from '../shared/relay/ports/money-stores.ts';
import { jobParts } from './compose/job-parts.ts';

const { client, stack, ...parts } = jobParts();
const registry = dynamoOpenRegistry(client, stack);
const watch = openWatch({ ...parts, registry }, readSweepGraceSeconds());
const project = createLedgerProjector({ ...parts, ledger: dynamoLedgerStore(client, stack) });

export const handler = eventHandler(parts.log, {
  records: tableStreamBatchHandler(quotaChangeOf, {
    ...parts,
    async takeAll(changes: readonly QuotaChange[]) {
      await watch(changes);
      return project(changes);
    },
    poisoned: { event: 'ledger_poisoned', metric: 'LedgerPoisoned' } as const,
  }),
});
