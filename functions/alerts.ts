/**
 * Raises alerts about accounts and upstream balances, and tops accounts up from stored cards. Runs on the table stream of `quotas`, and
 * hourly for dates and missed changes.
 */
import { createAlertAccounts, createAlertStore } from '../shared/adapters/dynamodb/alerts/alert-store.ts';
import { createAutoTopUpStore } from '../shared/adapters/dynamodb/alerts/auto-top-up-store.ts';
import { createAlertSettings, createJobSettings } from '../shared/adapters/dynamodb/config-store.ts';
import { createEventHandler } from '../shared/adapters/entry/event-handler.ts';
import { readQuotaRecord, createTableStreamHandler } from '../shared/adapters/entry/table-streams.ts';
import { createSecretStore } from '../shared/adapters/secrets/secret-store.ts';
import { generateHex, nodeHmac, timeSortedIds } from '../shared/adapters/system/node-ports.ts';
import { createHttpsTransport } from '../shared/adapters/transport/https-transport.ts';
import { createAlertPass } from '../shared/relay/alerts/alert-pass.ts';
import { autoTopUpWatch } from '../shared/relay/alerts/auto-top-up-watch.ts';
import { balanceWatch } from '../shared/relay/alerts/balance-watch.ts';
import { composeJobDeps } from './compose/job-deps.ts';
import { loadOnFirstCall } from './compose/late-adapters.ts';

const { environment, ...job } = composeJobDeps();
const { client, clock, stack } = job;
const accounts = createAlertAccounts({ client, clock, stack, local: environment.local });
const deps = { ...job, ids: timeSortedIds(clock), marks: createAlertStore(client, stack), accounts };
const watch = balanceWatch(deps);
const transport = createHttpsTransport({ local: environment.local });
const topUpWatch = autoTopUpWatch({
  ...deps,
  topUps: createAutoTopUpStore(client, stack),
  settings: createJobSettings(client, stack),
  secrets: createSecretStore({ environment, clock, purpose: 'payments' }),
  transport,
  hmac: nodeHmac,
  hex: generateHex,
});
// Loaded late, because only the hourly pass needs the schemas of channel rows.
const upstreams = loadOnFirstCall(async () => {
  const { composeUpstreamWatch } = await import('./compose/upstream-watch.ts');
  return composeUpstreamWatch({ ...deps, environment, transport });
});
const poisoned = { event: 'alert_poisoned', metric: 'AlertUndelivered' } as const;

export const handler = createEventHandler(job.log, {
  records: createTableStreamHandler(readQuotaRecord, {
    ...job,
    async take(change) {
      await watch.take(change);
      await topUpWatch.take(change);
    },
    poisonReport: poisoned,
  }),
  schedule: createAlertPass({
    ...deps,
    watch,
    topUpWatch,
    watchUpstreams: () => upstreams.watch(),
    settings: createAlertSettings(client, stack),
  }),
});
