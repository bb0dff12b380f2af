/** Stream of `quotas`: puts the ledger row of every close, and checks that the account balances. */
import { readEnvironment } from '../shared/adapters/system/environment.ts';
import { dynamoLedgerStore } from '../shared/adapters/dynamodb/ledger/dynamo-ledger-store.ts';
import { jsonLog } from '../shared/adapters/telemetry/json-log.ts';
import { streamClient } from '../shared/adapters/dynamodb/stream-client.ts';
import { streamHandler } from '../shared/adapters/table-streams/table-stream-handler.ts';
import { embeddedMetrics } from '../shared/adapters/telemetry/background-metrics.ts';
import { quotaChangeOf } from '../shared/adapters/table-streams/table-stream-records.ts';
import { ledgerProjector } from '../shared/relay/background/ledger-projector.ts';

const { stack, version, aws } = readEnvironment();
const log = jsonLog(version);
const metrics = embeddedMetrics(stack);
const ledger = dynamoLedgerStore(streamClient(aws), stack);

export const handler = streamHandler({
  read: quotaChangeOf,
  keep: ledgerProjector({ ledger, metrics, log }),
  poisoned: { event: 'ledger_poisoned', metric: 'LedgerPoisoned' },
  log,
  metrics,
});
