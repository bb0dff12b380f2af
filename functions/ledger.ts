/** Stream of `quotas`: puts the ledger row of every close, and checks that the books balance. */
import { readEnvironment } from '../shared/adapters/environment.ts';
import { dynamoLedgerStore } from '../shared/adapters/ledger-store.ts';
import { jsonLog } from '../shared/adapters/log.ts';
import { streamClient } from '../shared/adapters/stream-client.ts';
import { streamHandler } from '../shared/adapters/stream-handler.ts';
import { embeddedMetrics } from '../shared/adapters/stream-metrics.ts';
import { quotaChangeOf } from '../shared/adapters/stream-records.ts';
import { ledgerKeeper } from '../shared/relay/ledger-keeper.ts';

const { stack, version, aws } = readEnvironment();
const log = jsonLog(version);
const metrics = embeddedMetrics(stack);
const ledger = dynamoLedgerStore(streamClient(aws), stack);

export const handler = streamHandler({
  read: quotaChangeOf,
  keep: ledgerKeeper({ ledger, metrics, log }),
  poisoned: { event: 'ledger_poisoned', metric: 'LedgerPoisoned' },
  log,
  metrics,
});
