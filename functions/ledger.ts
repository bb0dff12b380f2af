/** Writes a ledger row for each close in the stream of `quotas`, checks balances, and registers open entries. */
import { createLedgerStore } from '../shared/adapters/dynamodb/ledger-store.ts';
import { createOpenRegistry } from '../shared/adapters/dynamodb/quotas/open-registry.ts';
import { createEventHandler } from '../shared/adapters/entry/event-handler.ts';
import { readQuotaRecord, createTableStreamBatchHandler } from '../shared/adapters/entry/table-streams.ts';
import { readSweepGraceSeconds } from '../shared/adapters/system/environment.ts';
import { createLedgerProjector } from '../shared/relay/jobs/ledger-projector.ts';
import { openWatch } from '../shared/relay/jobs/sweeper.ts';
import type { QuotaChange } from '../shared/relay/ports/money-stores.ts';
import { composeJobDeps } from './compose/job-deps.ts';

const { client, stack, ...deps } = composeJobDeps();
const registry = createOpenRegistry(client, stack);
const watch = openWatch({ ...deps, registry }, readSweepGraceSeconds());
const project = createLedgerProjector({ ...deps, ledger: createLedgerStore(client, stack) });

export const handler = createEventHandler(deps.log, {
  records: createTableStreamBatchHandler(readQuotaRecord, {
    ...deps,
    async takeAll(changes: readonly QuotaChange[]) {
      await watch(changes);
      return project(changes);
    },
    poisonReport: { event: 'ledger_poisoned', metric: 'LedgerPoisoned' } as const,
  }),
});
