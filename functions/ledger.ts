/**
 * Consumes the table stream of `quotas`: writes the ledger row of every close and checks that the account
 * balances.
 */
import { tableStreamBatchHandler } from '../shared/adapters/table-streams/table-stream-handler.ts';
import { quotaChangeOf } from '../shared/adapters/table-streams/table-stream-records.ts';
import { ledgerJob } from './compose/ledger-job.ts';

export const handler = tableStreamBatchHandler(quotaChangeOf, ledgerJob());
