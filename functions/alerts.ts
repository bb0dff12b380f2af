/**
 * Decides what operators and customers are reported about accounts: from the table stream of `quotas`, and on a schedule
 * for dates that come near and changes that the stream missed.
 */
import { dynamoAlertAccounts, dynamoAlertStore } from '../shared/adapters/dynamodb/alerts/alert-store.ts';
import { alertSettings } from '../shared/adapters/dynamodb/config-store.ts';
import { eventHandler } from '../shared/adapters/entry/event-handler.ts';
import { quotaChangeOf, tableStreamHandler } from '../shared/adapters/entry/table-streams.ts';
import { timeSortedIds } from '../shared/adapters/system/node-ports.ts';
import { createAlertPass } from '../shared/relay/alerts/alert-pass.ts';
import { balanceWatch } from '../shared/relay/alerts/balance-watch.ts';
import { jobParts } from './compose/job-parts.ts';

const { environment, ...job } = jobParts();
const { client, clock, stack } = job;
const accounts = dynamoAlertAccounts({ client, clock, stack, local: environment.local });
const parts = { ...job, ids: timeSortedIds(clock), marks: dynamoAlertStore(client, stack), accounts };
const watch = balanceWatch(parts);
const poisoned = { event: 'alert_poisoned', metric: 'AlertUndelivered' } as const;

export const handler = eventHandler(job.log, {
  records: tableStreamHandler(quotaChangeOf, { ...job, take: (change) => watch.take(change), poisoned }),
  schedule: createAlertPass({ ...parts, watch, settings: alertSettings(client, stack) }),
});
